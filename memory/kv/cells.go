package kv

import (
	"fmt"

	"ieg"
)

// grow appends n cells to a row.
func (p *Pool) grow(r *Row, n int32) {
	if n == 0 {
		return
	}
	p.used += n
	if k := len(r.segs); k > 0 && p.segs[r.segs[k-1]].refs == 1 {
		p.segs[r.segs[k-1]].n += n
		return
	}
	r.segs = append(r.segs, p.newSegment(n))
}

func (p *Pool) newSegment(n int32) int32 {
	if k := len(p.free); k > 0 {
		id := p.free[k-1]
		p.free = p.free[:k-1]
		p.segs[id] = segment{n: n, refs: 1}
		return id
	}
	p.segs = append(p.segs, segment{n: n, refs: 1})
	return int32(len(p.segs) - 1)
}

// trim keeps the first n cells of a row; it updates Computed and, for an
// unowned row, the idle count.
func (p *Pool) trim(s ieg.Slot, n int32) {
	r := &p.rows[s]
	if n > r.Computed {
		panic(fmt.Sprintf("kv: slot %d trimmed to %d of %d tokens", s, n, r.Computed))
	}
	if r.Owner == 0 {
		p.idle -= r.Computed
	}
	keep := p.cut(s, n)
	for _, id := range r.segs[keep:] {
		p.drop(id)
	}
	r.segs = r.segs[:keep]
	r.Computed = n
	p.cutNames(r, n)
	r.Unproven, r.Dropped = r.Unproven && n > 0, r.Dropped && n > 0
	if len(r.Tokens) > int(n) {
		r.Tokens = r.Tokens[:n]
	}
}

// share makes the first n tokens of from also those of to, which is empty:
// the same cells in the unified layout, new ones with streams.
func (p *Pool) share(from, to ieg.Slot, n int32) {
	dst := &p.rows[to]
	if p.layout == ieg.Streams {
		p.grow(dst, n)
	} else {
		keep := p.cut(from, n)
		dst.segs = append(dst.segs[:0], p.rows[from].segs[:keep]...)
		for _, id := range dst.segs {
			p.segs[id].refs++
		}
	}
	src := &p.rows[from]
	dst.Computed, dst.Root, dst.Saved = n, src.Root, src.Saved
	dst.chain = append(dst.chain[:0], src.chain[:min(len(src.chain), int(n)/ieg.BlockTokens)]...)
	p.device.gained(dst, 0)
	p.cutNames(dst, n)
}

// cut makes a segment border at token n of the row and returns the number of
// its segments before it.
func (p *Pool) cut(s ieg.Slot, n int32) int {
	at := int32(0)
	for i, id := range p.rows[s].segs {
		if at == n {
			return i
		}
		if size := p.segs[id].n; at+size > n {
			p.split(id, n-at)
			return i + 1
		}
		at += p.segs[id].n
	}
	return len(p.rows[s].segs)
}

// split divides a segment after n cells, in every row that holds it.
func (p *Pool) split(id, n int32) {
	rest := p.newSegment(p.segs[id].n - n)
	p.segs[rest].refs = p.segs[id].refs
	p.segs[id].n = n
	for i := range p.rows {
		segs := p.rows[i].segs
		for j, other := range segs {
			if other == id {
				segs = append(segs, 0)
				copy(segs[j+2:], segs[j+1:])
				segs[j+1] = rest
				p.rows[i].segs = segs
				break
			}
		}
	}
}

func (p *Pool) drop(id int32) {
	sg := &p.segs[id]
	if sg.refs--; sg.refs == 0 {
		p.used -= sg.n
		p.free = append(p.free, id)
	}
}

// Check proves the sums: each row's segments add up to its computed tokens,
// each segment's count is the number of rows that hold it, used and idle are
// what the rows say, and nothing exceeds its capacity.
func (p *Pool) Check() error {
	refs := make([]int32, len(p.segs))
	var idle int32
	for i := range p.rows {
		r := &p.rows[i]
		var n int32
		for _, id := range r.segs {
			n += p.segs[id].n
			refs[id]++
		}
		if n != r.Computed || int(r.Computed) > len(r.Tokens) {
			return fmt.Errorf("kv: row %d has %d cells, %d computed of %d tokens", i, n, r.Computed, len(r.Tokens))
		}
		if r.Computed > p.slotTokens {
			return fmt.Errorf("kv: row %d holds %d tokens of at most %d", i, r.Computed, p.slotTokens)
		}
		if r.Owner == 0 {
			idle += r.Computed
		}
	}
	var used int32
	for id, want := range refs {
		if want > 0 {
			used += p.segs[id].n
			if p.segs[id].refs != want {
				return fmt.Errorf("kv: segment %d counts %d rows, %d hold it", id, p.segs[id].refs, want)
			}
		}
	}
	if used != p.used || idle != p.idle || used > p.cells {
		return fmt.Errorf("kv: %d cells used (counted %d) of %d, %d idle (counted %d)", p.used, used, p.cells, p.idle, idle)
	}
	return nil
}
