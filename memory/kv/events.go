package kv

import "ieg"

// Events collects what tiers got and lost, for whoever publishes it. A nil one
// collects nothing.
type Events struct {
	List  []ieg.KVEvent
	model map[ieg.BlockHash]string // by root
}

// NewEvents returns an empty collection.
func NewEvents() *Events { return &Events{model: map[ieg.BlockHash]string{}} }

// Name says which model a root belongs to.
func (v *Events) Name(root ieg.BlockHash, model string) {
	if v == nil {
		return
	}
	if len(v.model) >= RootsNamed {
		clear(v.model) // what then has no name gets it with its next request
	}
	v.model[root] = model
}

func (v *Events) stored(t ieg.Tier, b *ieg.Block) {
	if v != nil {
		v.List = append(v.List, ieg.KVEvent{Kind: ieg.KVStored, Tier: t, Model: v.model[b.Root],
			Block: ieg.Block{Hash: b.Hash, Parent: b.Parent, Root: b.Root, Start: b.Start, Tokens: b.Tokens}})
	}
}

func (v *Events) removed(t ieg.Tier, root, hash ieg.BlockHash) {
	if v != nil {
		v.List = append(v.List, ieg.KVEvent{Kind: ieg.KVRemoved, Tier: t, Model: v.model[root], Block: ieg.Block{Hash: hash}})
	}
}

// onDevice counts the rows that hold each full block, so that copies of a
// prefix are told once.
type onDevice struct {
	events *Events
	rows   map[ieg.BlockHash]int32
}

// Tell makes the pool tell of full blocks that it computed and gave up.
func (p *Pool) Tell(v *Events) {
	if v != nil {
		p.device = &onDevice{events: v, rows: map[ieg.BlockHash]int32{}}
	}
}

// Gone tells that nothing of what rows held is left: the engine is gone.
func (p *Pool) Gone() {
	for i := range p.rows {
		p.device.lost(&p.rows[i], 0)
	}
}

// Sealed tells of the full blocks that a row has computed since it was asked
// last.
func (p *Pool) Sealed(s ieg.Slot) {
	if r := &p.rows[s]; p.device != nil && r.Root != (ieg.BlockHash{}) && int(r.Computed)/ieg.BlockTokens > len(r.chain) {
		p.Chain(s)
	}
}

// gained tells of the names of a row from the i-th on.
func (d *onDevice) gained(r *Row, i int) {
	if d == nil {
		return
	}
	for ; i < len(r.chain); i++ {
		if d.rows[r.chain[i]]++; d.rows[r.chain[i]] > 1 {
			continue
		}
		b := ieg.Block{Hash: r.chain[i], Parent: r.Root, Root: r.Root, Start: int32(i * ieg.BlockTokens)}
		if i > 0 {
			b.Parent = r.chain[i-1]
		}
		b.Tokens = r.Tokens[b.Start : b.Start+ieg.BlockTokens]
		d.events.stored(ieg.TierDevice, &b)
	}
}

// lost tells that a row no longer has its names from the i-th on.
func (d *onDevice) lost(r *Row, i int) {
	if d == nil {
		return
	}
	for n := len(r.chain) - 1; n >= i; n-- {
		if d.rows[r.chain[n]]--; d.rows[r.chain[n]] == 0 {
			delete(d.rows, r.chain[n])
			d.events.removed(ieg.TierDevice, r.Root, r.chain[n])
		}
	}
}
