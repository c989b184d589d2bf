package kv

import "ieg"

// SetRoot says what the blocks of a row follow. Under another root than before
// nothing of the row has been saved.
func (p *Pool) SetRoot(s ieg.Slot, root ieg.BlockHash) {
	if r := &p.rows[s]; r.Root != root {
		p.device.lost(r, 0)
		r.Root, r.Saved, r.chain = root, 0, r.chain[:0]
	}
}

// Chain names the full blocks that the row has computed.
func (p *Pool) Chain(s ieg.Slot) []ieg.BlockHash {
	r := &p.rows[s]
	had := len(r.chain)
	r.chain = Names(r.chain, r.Root, r.Tokens[:r.Computed])
	p.device.gained(r, had)
	return r.chain
}

// cutNames forgets what was known of tokens from n on.
func (p *Pool) cutNames(r *Row, n int32) {
	r.Saved = min(r.Saved, n)
	if k := int(n / ieg.BlockTokens); len(r.chain) > k {
		p.device.lost(r, k)
		r.chain = r.chain[:k]
	}
}

// Unsaved is the next range of a row to be copied below the device: the rest
// of its first block that is not saved. A block that is still growing comes
// last, and only with tails. n is 0 if there is none.
func (p *Pool) Unsaved(s ieg.Slot, tails bool) (start, n int32) {
	r := &p.rows[s]
	if r.Root == (ieg.BlockHash{}) || r.Saved >= r.Computed {
		return 0, 0
	}
	start = r.Saved / ieg.BlockTokens * ieg.BlockTokens
	n = min(r.Computed-start, ieg.BlockTokens)
	if n < ieg.BlockTokens && !tails {
		return 0, 0
	}
	return start, n
}

// Brought makes the first n tokens of an owned row computed: they are copied
// from below the device, unproven as yet.
func (p *Pool) Brought(s ieg.Slot, n int32) {
	r := &p.rows[s]
	p.grow(r, n-r.Computed)
	r.Computed, r.Saved, r.Unproven = n, n, true
}

// Proven takes in whether what was brought is right; a row of which it is not
// is emptied. False: the row was given up meanwhile.
func (p *Pool) Proven(s ieg.Slot, right bool) bool {
	r := &p.rows[s]
	if !r.Unproven {
		return false
	}
	r.Unproven = false
	if !right {
		tokens := r.Tokens
		p.trim(s, 0)
		if r.Owner != 0 {
			r.Tokens = tokens
		}
	}
	return true
}

// Forget marks rows whose content is to be forgotten: they are not saved, and
// nobody but their owner uses them any more.
func (p *Pool) Forget(which func(r *Row) bool) {
	for i := range p.rows {
		if r := &p.rows[i]; r.Computed > 0 && which(r) {
			p.forget(r)
		}
	}
}

// Doubt marks a row of which a part will not be proven: it is forgotten.
func (p *Pool) Doubt(s ieg.Slot) {
	if r := &p.rows[s]; r.Computed > 0 {
		p.forget(r)
	}
}

func (p *Pool) forget(r *Row) {
	p.device.lost(r, 0)
	r.Root, r.Saved, r.chain, r.Dropped = ieg.BlockHash{}, 0, nil, true
}

// Dropped is a row without an owner that is to be emptied, NoSlot if there is
// none.
func (p *Pool) Dropped() ieg.Slot {
	for i := range p.rows {
		if r := &p.rows[i]; r.Dropped && r.idle() {
			return ieg.Slot(i)
		}
	}
	return ieg.NoSlot
}

// Empty takes all tokens out of an idle row and appends the op that does it.
func (p *Pool) Empty(s ieg.Slot, ops []ieg.KVOp) []ieg.KVOp {
	p.trim(s, 0)
	p.rows[s].Tokens = nil
	return append(ops, ieg.KVOp{Kind: ieg.KVTrim, To: s})
}
