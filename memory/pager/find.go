package pager

import (
	"context"
	"errors"
	"slices"
	"time"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/tier"
)

// Find tells which part of a prompt the store holds. The last block may be one
// that continues differently, or ends: what it shares with the prompt counts,
// to the token. At least the prompt's last token is not covered, since it must
// be computed. It may read the tokens of a few blocks and of nothing else.
func (p *Pager) Find(root ieg.BlockHash, tokens []ieg.Token) ieg.Stored {
	f := finder{p: p, root: root, tokens: tokens}
	if len(tokens) < 2 || !f.full() {
		return ieg.Stored{}
	}
	f.partial()
	return f.settle()
}

// finder is one Find.
type finder struct {
	p      *Pager
	root   ieg.BlockHash
	tokens []ieg.Token
	names  []ieg.BlockHash
	path   []kv.Ref
	found  ieg.Stored
	last   ieg.BlockHash // of the blocks found, or the root
	kids   []ieg.BlockHash
}

// full finds the full blocks, a few at a time so that others are let in; false:
// the tier is down.
func (f *finder) full() bool {
	p := f.p
	f.last = f.root
	f.names = make([]ieg.BlockHash, 0, len(f.tokens)/ieg.BlockTokens)
	for up := true; ; {
		done := len(f.names)
		upTo := min(len(f.tokens), (done+findNames)*ieg.BlockTokens)
		f.names = kv.Names(f.names, f.root, f.tokens[:upTo])
		p.mu.Lock()
		if up = p.health.store != nil; up {
			f.path = p.known.index.Follow(f.path[:0], f.names[done:])
			f.found.Blocks = slices.Grow(f.found.Blocks, len(f.path))
			for _, ref := range f.path {
				f.take(ref)
			}
		}
		over := !up || len(f.path) < findNames
		if over && up {
			f.listKids()
		}
		p.mu.Unlock()
		if over {
			return up
		}
	}
}

// take appends a block that the prompt goes through; Pager.mu is held.
func (f *finder) take(ref kv.Ref) {
	k := &f.p.known
	e, r := k.index.Entry(ref), k.records.at(ref)
	at := f.found.Tokens
	f.found.Blocks = append(f.found.Blocks, ieg.Block{
		Hash: e.Hash, Parent: e.Parent, Root: f.root, Start: at, Tokens: f.tokens[at : at+ieg.BlockTokens : at+ieg.BlockTokens],
		Codec: r.codec, Bytes: e.Bytes, Digest: r.digest,
	})
	f.found.Tokens += ieg.BlockTokens
	f.last = e.Hash
}

// listKids lists what continues the last block; Pager.mu is held.
func (f *finder) listKids() {
	if int(f.found.Tokens) >= len(f.tokens)-1 {
		return
	}
	for ref := range f.p.known.index.Children(f.last) {
		if f.kids = append(f.kids, f.p.known.index.Entry(ref).Hash); len(f.kids) == findChildren {
			return
		}
	}
}

// partial finds the block that shares most of what follows.
func (f *finder) partial() {
	if len(f.kids) == 0 {
		return
	}
	h := f.p.acquire()
	if h == nil {
		return
	}
	defer f.p.release(h)
	at := f.found.Tokens
	rest := f.tokens[at : len(f.tokens)-1]
	var best ieg.Block
	most := 0
	for _, b := range f.ask(h) {
		if n := common(b.Tokens, rest); n > most && f.proves(&b, at) {
			best, most = b, n
		}
	}
	if most > 0 {
		f.found.Blocks = append(f.found.Blocks, best)
		f.found.Tokens += int32(most)
		f.last = best.Hash
	}
}

// proves tells whether a block of the store is what its name says and what
// the index knows.
func (f *finder) proves(b *ieg.Block, at int32) bool {
	return b.Root == f.root && b.Parent == f.last && b.Start == at && len(b.Tokens) <= ieg.BlockTokens &&
		kv.Name(b.Parent, b.Tokens) == b.Hash && f.p.promised(b)
}

func common(a, b []ieg.Token) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// settle cuts what was found to what a prompt may use, counts it and touches
// the blocks.
func (f *finder) settle() ieg.Stored {
	s := &f.found
	s.Tokens = min(s.Tokens, int32(len(f.tokens)-1))
	for k := len(s.Blocks); k > 0 && s.Blocks[k-1].Start >= s.Tokens; k-- {
		s.Blocks = s.Blocks[:k-1]
	}
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.hit += int64(s.Tokens)
	p.count.missed += int64(len(f.tokens)) - int64(s.Tokens)
	if k := len(s.Blocks); k > 0 {
		if ref, ok := p.known.index.Get(s.Blocks[k-1].Hash); ok {
			p.known.index.Touch(ref, p.cfg.Now())
		}
	}
	return *s
}

// ask reads the tokens of the children, as many as there is time for.
func (f *finder) ask(h *handle) (list []ieg.Block) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(f.p.ctx, findTime)
	defer cancel()
	for _, kid := range f.kids {
		if time.Since(began) >= findTime {
			return list
		}
		b, err := h.store.Block(ctx, kid)
		if errors.Is(err, tier.ErrUnusable) {
			f.p.lose(h, err)
			return list
		}
		if err == nil && b.Hash == kid {
			list = append(list, b)
		}
	}
	return list
}
