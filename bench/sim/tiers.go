package sim

import (
	"time"

	"ieg"
	"ieg/devices/engine/synth"
	"ieg/kernel"
	"ieg/memory/kv"
)

// Tiers is what lies below the devices. Without pages there is nothing.
type Tiers struct {
	Pages     int
	PageBytes int
	// NVMe is the bytes that the NVMe tier takes; 0: there is none.
	NVMe int64
	// Read and Write are its speeds in bytes a second, Latency what a move
	// takes at least. Moves go one after the other.
	Read, Write float64
	Latency     time.Duration
	// Of moves, the part that fails, and that brings or finds wrong bytes; of
	// steps, the part before which a bit flips in a page that holds a block.
	Fail, Rot, Flip float64
	// Outages are times at which the tier goes away for OutageFor.
	Outages   []time.Duration
	OutageFor time.Duration
	// Drops are times at which all KV is dropped, Pins those at which the
	// beginning of the prompt that came last is pinned for two seconds.
	Drops, Pins []time.Duration
	// Kept are blocks that the tier holds at the start (of an earlier run).
	Kept *Shelf
}

// Shelf is the content of an NVMe tier.
type Shelf struct {
	blocks map[ieg.BlockHash]*kept
	order  []ieg.BlockHash // oldest first
	bytes  int64
}

type kept struct {
	ieg.Block
	data []byte
}

// pager is the NVMe tier in virtual time.
type pager struct {
	w     *World
	arena *synth.Arena
	shelf *Shelf
	free  ieg.Time // when the moves planned so far are done
	last  ieg.BlockHash
	up    bool
}

func newPager(w *World) *pager {
	t := &w.cfg.Tiers
	p := &pager{w: w, arena: synth.NewArena(t.Pages, t.PageBytes), shelf: t.Kept}
	if p.shelf == nil {
		p.shelf = &Shelf{blocks: map[ieg.BlockHash]*kept{}}
	}
	return p
}

// start tells the machine what there is.
func (p *pager) start() {
	t := &p.w.cfg.Tiers
	p.w.apply(kernel.HostUp{Pages: int32(t.Pages), PageBytes: int64(t.PageBytes)})
	for _, at := range t.Drops {
		p.w.after(at, func() {
			for len(p.shelf.order) > 0 {
				p.drop(p.shelf.order[0])
			}
			p.w.apply(kernel.KVControl{Kind: kernel.KVDropAll})
		})
	}
	for _, at := range t.Pins {
		p.w.after(at, func() {
			p.w.apply(kernel.KVControl{Kind: kernel.KVPin, Hash: p.last, Until: p.w.now.Add(2 * time.Second)})
		})
	}
	if t.NVMe == 0 {
		return
	}
	p.set(true)
	for _, at := range t.Outages {
		p.w.after(at, func() { p.set(false) })
		p.w.after(at+t.OutageFor, func() { p.set(true) })
	}
}

func (p *pager) set(up bool) {
	p.up = up
	if up {
		p.w.apply(kernel.NVMeUp{})
	} else {
		p.w.apply(kernel.NVMeDown{Reason: "an outage"})
	}
}

// find is what the tier promises of a prompt.
func (p *pager) find(root ieg.BlockHash, tokens []ieg.Token) (s ieg.Stored) {
	if names := kv.Names(nil, root, tokens); len(names) > 0 {
		p.last = names[0]
	}
	if !p.up {
		return s
	}
	parent, most := root, len(tokens)-1
	for _, name := range kv.Names(nil, root, tokens[:max(most, 0)]) {
		k := p.shelf.blocks[name]
		if k == nil {
			break
		}
		s.Blocks, s.Tokens, parent = append(s.Blocks, k.Block), s.Tokens+ieg.BlockTokens, name
	}
	var best *kept
	longest := 0
	for _, name := range p.shelf.order {
		k := p.shelf.blocks[name]
		if k.Parent != parent {
			continue
		}
		n := 0
		for n < len(k.Tokens) && int(s.Tokens)+n < most && k.Tokens[n] == tokens[int(s.Tokens)+n] {
			n++
		}
		if n > longest {
			best, longest = k, n
		}
	}
	if best != nil {
		s.Blocks, s.Tokens = append(s.Blocks, best.Block), s.Tokens+int32(longest)
	}
	return s
}

// move plans a move: its bytes go when it ends.
func (p *pager) move(m ieg.Move) {
	t := &p.w.cfg.Tiers
	speed := t.Write
	if m.Kind == ieg.MoveFetch {
		speed = t.Read
	}
	took := t.Latency + time.Duration(float64(m.Block.Bytes)/speed*1e9)
	p.free = max(p.free, p.w.now).Add(took)
	p.w.after(p.free.Sub(p.w.now), func() {
		d := ieg.MoveDone{ID: m.ID, Took: took}
		x := p.w.rng.Float64()
		switch {
		case !p.up:
			d.Err = "the tier is away"
		case x < t.Fail:
			d.Err = "injected"
		case m.Kind == ieg.MoveStore:
			p.store(&m, &d)
		default:
			p.fetch(&m, &d, x < t.Fail+t.Rot)
		}
		p.w.apply(kernel.MoveDone{Done: d})
	})
}

// bytes gathers what pages hold.
func (p *pager) bytes(pages []ieg.Page, n int64) (b []byte) {
	for _, page := range pages {
		part := p.arena.Page(page)
		b = append(b, part[:min(int64(len(part)), n-int64(len(b)))]...)
	}
	return b
}

func (p *pager) store(m *ieg.Move, d *ieg.MoveDone) {
	b := p.bytes(m.Pages, m.Block.Bytes)
	if p.arena.Digest(0, b) != m.Block.Digest {
		d.Err, d.Gone = "the digest is wrong", true
		return
	}
	s := p.shelf
	for s.bytes+m.Block.Bytes > p.w.cfg.Tiers.NVMe && len(s.order) > 0 {
		p.drop(s.order[0])
	}
	if s.blocks[m.Block.Hash] == nil {
		s.blocks[m.Block.Hash] = &kept{m.Block, b}
		s.order = append(s.order, m.Block.Hash)
		s.bytes += m.Block.Bytes
	}
	d.Bytes, d.Digest = m.Block.Bytes, m.Block.Digest
}

func (p *pager) drop(name ieg.BlockHash) {
	s := p.shelf
	s.bytes -= s.blocks[name].Bytes
	delete(s.blocks, name)
	for i, h := range s.order {
		if h == name {
			s.order = append(s.order[:i], s.order[i+1:]...)
			break
		}
	}
}

func (p *pager) fetch(m *ieg.Move, d *ieg.MoveDone, rotten bool) {
	k := p.shelf.blocks[m.Block.Hash]
	if k == nil || rotten {
		d.Err, d.Gone = "it is not there", true
		if k != nil {
			p.drop(m.Block.Hash)
		}
		return
	}
	rest := k.data
	for _, page := range m.Pages {
		rest = rest[copy(p.arena.Page(page), rest):]
	}
	d.Bytes, d.Digest = k.Bytes, k.Digest
}

// flip harms a page that a step will read.
func (p *pager) flip(b *ieg.Batch) {
	if t := &p.w.cfg.Tiers; t.Flip == 0 || p.w.rng.Float64() >= t.Flip {
		return
	}
	for _, op := range b.Ops {
		if op.Kind == ieg.KVLoad {
			page := p.arena.Page(op.Extents[0].Pages[0])
			page[p.w.rng.IntN(min(len(page), int(op.Extents[0].Bytes)))] ^= 1 << p.w.rng.IntN(8)
			p.w.report.Flips++
			return
		}
	}
}
