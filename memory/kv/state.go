package kv

import (
	"fmt"
	"slices"

	"ieg"
)

// State is a Pool as plain data: for snapshots.
type State struct {
	Layout     ieg.Layout
	SlotTokens int32
	Cells      int32
	Rows       []RowState
	Segments   []SegmentState
	Free       []int32
}

// RowState is one row. Tokens may be shared with the pool: what they hold
// never changes.
type RowState struct {
	Row
	Segments []int32
}

// SegmentState is a run of cells and the number of rows that hold it.
type SegmentState struct{ N, Refs int32 }

// State copies the pool. The tokens are shared, not copied: it takes time for
// the rows, not for what they hold.
func (p *Pool) State() State {
	st := State{Layout: p.layout, SlotTokens: p.slotTokens, Cells: p.cells,
		Rows: make([]RowState, len(p.rows)), Segments: make([]SegmentState, len(p.segs)), Free: slices.Clone(p.free)}
	for i := range p.rows {
		r := p.rows[i]
		st.Rows[i] = RowState{Row: r, Segments: slices.Clone(r.segs)}
		st.Rows[i].segs = nil
	}
	for i, sg := range p.segs {
		st.Segments[i] = SegmentState{sg.n, sg.refs}
	}
	return st
}

// FromState makes the pool of a state, which it keeps. An error says what does
// not add up.
func FromState(st State) (*Pool, error) {
	p := &Pool{layout: st.Layout, slotTokens: st.SlotTokens, cells: st.Cells,
		rows: make([]Row, len(st.Rows)), segs: make([]segment, len(st.Segments)), free: st.Free}
	for i, sg := range st.Segments {
		p.segs[i] = segment{sg.N, sg.Refs}
	}
	held := make([]bool, len(p.segs))
	for i, r := range st.Rows {
		p.rows[i] = r.Row
		p.rows[i].segs = r.Segments
		for _, id := range r.Segments {
			if id < 0 || int(id) >= len(p.segs) || p.segs[id].n < 1 {
				return nil, fmt.Errorf("kv: row %d holds segment %d, which is none of %d", i, id, len(p.segs))
			}
			if !held[id] {
				held[id] = true
				p.used += p.segs[id].n
			}
		}
		if r.Owner == 0 {
			p.idle += r.Computed
		}
	}
	for _, id := range p.free {
		if id < 0 || int(id) >= len(p.segs) || held[id] {
			return nil, fmt.Errorf("kv: segment %d is free and held, or unknown", id)
		}
		held[id] = true
	}
	if i := slices.Index(held, false); i >= 0 {
		return nil, fmt.Errorf("kv: segment %d is neither free nor held", i)
	}
	return p, p.Check()
}
