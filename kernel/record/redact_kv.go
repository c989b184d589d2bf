package record

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"ieg"
	"ieg/kernel"
	"ieg/memory/kv"
)

// The names of blocks are hashes of tokens and tenants, so they are made anew
// from the replaced ones: the machine that replays makes the same names itself.

// names says by what blocks' names are replaced.
type names map[ieg.BlockHash]ieg.BlockHash

// roots learns the roots of a whole segment beforehand: a block may lie in the
// snapshot long before the request comes whose tenant made it.
func (r *redactor) learnRoots(segment []byte) {
	r.roots = names{}
	s, err := newSegment(bytes.NewReader(segment))
	if err != nil {
		return
	}
	tenants, kvNames := map[string]bool{}, map[string]bool{}
	for i := range s.snap.Engines {
		e := &s.snap.Engines[i]
		kvNames[e.Info.KVName] = true
		if e.Pool == nil {
			continue
		}
		for j := range e.Pool.Rows {
			tenants[e.Pool.Rows[j].Tenant] = true
		}
	}
	for _, q := range s.snap.Requests {
		if q.Spec != nil {
			tenants[q.Spec.Tenant] = true
		}
	}
	for {
		_, ev, err := s.next()
		if err != nil {
			break
		}
		switch ev := ev.(type) {
		case kernel.Arrived:
			tenants[ev.Request.Tenant] = true
		case kernel.EngineReady:
			kvNames[ev.Info.KVName] = true
		}
	}
	for n := range kvNames {
		for t := range tenants {
			r.roots[kv.Root(n, t)] = kv.Root(n, r.name(t))
		}
	}
}

// root replaces the name of a root. One that nobody in the segment can use
// becomes a keyed hash.
func (r *redactor) root(h ieg.BlockHash) ieg.BlockHash {
	if n, ok := r.roots[h]; ok {
		return n
	}
	return r.opaque(h)
}

// opaque replaces a name that stands for nothing known. None stays none.
func (r *redactor) opaque(h ieg.BlockHash) ieg.BlockHash {
	if h == (ieg.BlockHash{}) {
		return h
	}
	sum := sha256.Sum256(append(r.key[:], h[:]...))
	return ieg.BlockHash(sum[:16])
}

// of replaces a name by what it stands for, if that is known.
func (r *redactor) of(n names, h ieg.BlockHash) ieg.BlockHash {
	if to, ok := n[h]; ok {
		return to
	}
	return r.root(h)
}

// block replaces a block that follows parent, whose replaced name is given,
// and takes the chain to its end.
func (r *redactor) block(b *ieg.Block, parent ieg.BlockHash, c *chain) {
	b.Tokens = r.tokens(c, b.Tokens)
	b.Parent, b.Root = parent, r.root(b.Root)
	b.Hash = kv.Name(parent, b.Tokens)
}

// stored replaces what the NVMe tier has of a prompt.
func (r *redactor) stored(in ieg.Stored) ieg.Stored {
	out := ieg.Stored{Tokens: in.Tokens, Blocks: slices.Clone(in.Blocks)}
	var c chain
	for i := range out.Blocks {
		b := &out.Blocks[i]
		if len(b.Tokens) > ieg.BlockTokens {
			out.Blocks = out.Blocks[:i] // no machine takes it
			break
		}
		parent := r.root(b.Root)
		if i > 0 {
			parent = out.Blocks[i-1].Hash
		}
		r.block(b, parent, &c)
	}
	return out
}

// ledger replaces the blocks of a ledger, parents first, and tells their names.
func (r *redactor) ledger(h *kv.HostLedger) names {
	n := names{}
	if h == nil {
		return n
	}
	ends := make([]chain, len(h.Blocks))
	for i := range h.Blocks {
		k := &h.Blocks[i]
		old := k.Block.Hash
		if k.Parent < 0 {
			k.Block.Hash, k.Block.Root = r.root(old), r.root(old)
		} else {
			ends[i] = ends[k.Parent]
			r.block(&k.Block, h.Blocks[k.Parent].Block.Hash, &ends[i])
		}
		n[old] = k.Block.Hash
	}
	return n
}

// tiers replaces what a snapshot tells of KV below the device.
func (r *redactor) tiers(s *kernel.Snapshot) {
	t := &s.KV
	n := r.ledger(t.Host)
	all := func(list []ieg.BlockHash) {
		for i := range list {
			list[i] = r.of(n, list[i])
		}
	}
	saving := func(sv *kernel.SavedSaving) {
		if sv != nil {
			sv.Block = r.of(n, sv.Block)
		}
	}
	t.Why = reason(t.Why)
	for q := range t.Dirty {
		all(t.Dirty[q])
	}
	for i := range t.Moves {
		t.Moves[i].Block = r.of(n, t.Moves[i].Block)
	}
	for i := range s.Requests {
		for j := range s.Requests[i].Seqs {
			all(s.Requests[i].Seqs[j].Wants)
			all(s.Requests[i].Seqs[j].Awaits)
			if rest := s.Requests[i].Seqs[j].Rest; rest != nil {
				all(rest.Blocks)
			}
		}
	}
	for i := range s.Engines {
		e := &s.Engines[i]
		saving(e.Saving)
		for j := range e.Keeps {
			all(e.Keeps[j])
		}
		for j := range e.Flight.Copies {
			saving(e.Flight.Copies[j].Save)
			all(e.Flight.Copies[j].Blocks)
		}
		if e.Pool == nil {
			continue
		}
		for j := range e.Pool.Rows {
			e.Pool.Rows[j].Root = r.root(e.Pool.Rows[j].Root)
		}
	}
}

// control replaces the name in what a person asked of the arena, by what the
// machine knows just before it.
func (r *redactor) control(m *kernel.Machine, ev kernel.KVControl) kernel.KVControl {
	ev.Hash = r.of(r.ledger(m.Snapshot().KV.Host), ev.Hash)
	return ev
}

// reason replaces a message, if there is one.
func reason(s string) string {
	if s == "" {
		return s
	}
	return "redacted"
}
