package kv

import (
	"fmt"

	"ieg"
)

// Row is one slot of an engine.
type Row struct {
	Tokens   []ieg.Token
	Computed int32
	Owner    ieg.SeqID // 0: nobody
	Tenant   string
	Used     ieg.Time // last acquired, advanced or released
	// Rent is the caller's meter at the time of Release: what idle KV is
	// charged since.
	Rent float64
	// Root names what its blocks follow; the zero root: they stay here.
	Root ieg.BlockHash
	// Saved is the number of leading tokens that were copied below the device
	// since they were computed, or were brought from there.
	Saved int32
	// Unproven tells that its content is on its way from below the device:
	// nobody else may use it before it is known to be right.
	Unproven bool
	// Dropped tells that its content was asked to be forgotten: only its owner
	// may still use it.
	Dropped bool
	wanted  bool    // see Want
	segs    []int32 // ids of the segments that make up [0, Computed)
	chain   []ieg.BlockHash
}

func (r *Row) idle() bool  { return r.Owner == 0 && r.Computed > 0 }
func (r *Row) empty() bool { return r.Owner == 0 && r.Computed == 0 }

// segment is a run of cells that belongs to the same rows.
type segment struct {
	n    int32
	refs int32
}

// Pool is the ledger of the slots of one engine.
type Pool struct {
	layout     ieg.Layout
	slotTokens int32
	cells      int32 // capacity of all rows together
	used       int32 // cells held by any row
	idle       int32 // tokens in idle rows
	rows       []Row
	segs       []segment
	free       []int32 // unused entries of segs
	device     *onDevice
}

// NewPool returns the ledger of an engine that has just started: all empty.
func NewPool(info ieg.EngineInfo) *Pool {
	return &Pool{
		layout: info.Layout, slotTokens: info.SlotTokens, cells: info.Cells,
		rows: make([]Row, info.Slots),
	}
}

// Slots is the number of rows.
func (p *Pool) Slots() int { return len(p.rows) }

// Row gives read access to a row.
func (p *Pool) Row(s ieg.Slot) *Row { return &p.rows[s] }

// Cells is the capacity, Used the cells held by any row, Idle the tokens of
// rows without an owner.
func (p *Pool) Cells() int32 { return p.cells }

// Used is the number of cells held by any row.
func (p *Pool) Used() int32 { return p.used }

// Idle is the number of tokens in rows without an owner.
func (p *Pool) Idle() int32 { return p.idle }

// Free is the number of cells nobody holds.
func (p *Pool) Free() int32 { return p.cells - p.used }

// Layout is the engine's layout.
func (p *Pool) Layout() ieg.Layout { return p.layout }

// Counts returns the numbers of owned and of idle rows.
func (p *Pool) Counts() (owned, idle int) {
	for i := range p.rows {
		switch r := &p.rows[i]; {
		case r.Owner != 0:
			owned++
		case r.Computed > 0:
			idle++
		}
	}
	return owned, idle
}

// Match is where the longest known prefix of some tokens lies.
type Match struct {
	Slot ieg.Slot // NoSlot: nothing
	N    int32    // tokens in KV that may be reused
	// Pending is a row whose owner is about to compute more of the prefix,
	// up to PendingN tokens; NoSlot if no row promises more than N.
	Pending  ieg.Slot
	PendingN int32
}

// Match looks for the longest prefix of tokens, to the token, in rows of the
// tenant. At most len(tokens)-1 are ever matched: the last token's logits are
// needed. Among equals an idle row wins, then the lower slot.
func (p *Pool) Match(tokens []ieg.Token, tenant string) Match {
	m := Match{Slot: ieg.NoSlot, Pending: ieg.NoSlot}
	most := int32(len(tokens)) - 1
	for i := range p.rows {
		r := &p.rows[i]
		if r.Tenant != tenant || len(r.Tokens) == 0 || r.Dropped {
			continue
		}
		known := min(common(r.Tokens, tokens), most)
		here := min(known, r.Computed)
		if r.Unproven {
			here = 0
		}
		if here > m.N || here == m.N && here > 0 && r.Owner == 0 && p.rows[m.Slot].Owner != 0 {
			m.Slot, m.N = ieg.Slot(i), here
		}
		if r.Owner != 0 && known > here && known > m.PendingN {
			m.Pending, m.PendingN = ieg.Slot(i), known
		}
	}
	if m.PendingN <= m.N {
		m.Pending, m.PendingN = ieg.NoSlot, 0
	}
	return m
}

// stride is the number of tokens that common compares at once.
const stride = 64

// common is the length of the common prefix. Blocks of tokens are compared as
// memory; a row and a sequence that share their tokens need no comparison.
func common(a, b []ieg.Token) int32 {
	n := min(len(a), len(b))
	if n == 0 || &a[0] == &b[0] {
		return int32(n)
	}
	i := 0
	for i+stride <= n && *(*[stride]ieg.Token)(a[i:]) == *(*[stride]ieg.Token)(b[i:]) {
		i += stride
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return int32(i)
}

// Grant is the answer to Acquire.
type Grant struct {
	Slot   ieg.Slot
	Cached int32 // tokens that need not be computed
	Source ieg.Slot
	Copied bool
}

// Acquire gives seq a row for tokens (which the pool keeps a reference to)
// and appends to ops what the engine must do. It reuses the match m, which
// must be fresh. False: every row has an owner.
//
// A matched idle row is taken over in place when what it loses by that, its
// tokens beyond the match, is no more than the row that a copy would overwrite
// holds; else it is copied, so that its rest stays useful.
func (p *Pool) Acquire(seq ieg.SeqID, tokens []ieg.Token, tenant string, m Match, now ieg.Time, ops []ieg.KVOp) (Grant, []ieg.KVOp, bool) {
	victim, inPlace := p.Plan(m)
	if victim == ieg.NoSlot {
		return Grant{Slot: ieg.NoSlot}, ops, false
	}
	g := Grant{Slot: victim, Cached: m.N, Source: m.Slot}
	if inPlace {
		if p.rows[g.Slot].Computed > m.N {
			ops = append(ops, ieg.KVOp{Kind: ieg.KVTrim, To: g.Slot, N: m.N})
		}
		p.trim(g.Slot, m.N)
	} else {
		had := p.rows[victim].Computed
		p.trim(victim, 0)
		switch {
		case m.N > 0:
			g.Copied = true
			ops = append(ops, ieg.KVOp{Kind: ieg.KVCopy, From: m.Slot, To: victim, N: m.N})
			p.share(m.Slot, victim, m.N)
		case had > 0:
			ops = append(ops, ieg.KVOp{Kind: ieg.KVTrim, To: victim})
		}
	}
	r := &p.rows[g.Slot]
	r.Owner, r.Tenant, r.Used, r.Tokens = seq, tenant, now, tokens
	return g, ops, true
}

// Plan is the row that Acquire would give for a match, and whether the match
// would be used in place. NoSlot: every row has an owner.
func (p *Pool) Plan(m Match) (s ieg.Slot, inPlace bool) {
	victim := p.victim(m.Slot)
	if m.Slot != ieg.NoSlot && p.rows[m.Slot].Owner == 0 &&
		(victim == ieg.NoSlot || p.rows[m.Slot].Computed-m.N <= p.rows[victim].Computed) {
		return m.Slot, true
	}
	return victim, false
}

// victim is the row to fill: an empty one next to owned rows if there is
// one (engines read neighbouring rows together), else the least recently used
// idle one other than keep.
func (p *Pool) victim(keep ieg.Slot) ieg.Slot {
	if s := p.emptyRow(); s != ieg.NoSlot {
		return s
	}
	return p.Oldest(keep)
}

// emptyRow is the empty row with the least distance to an owned one, the
// lowest among equals; the lowest of all if none is owned.
func (p *Pool) emptyRow() ieg.Slot {
	best, least, lowest := ieg.NoSlot, len(p.rows), ieg.NoSlot
	note := func(i, owned int) {
		d := max(i-owned, owned-i)
		if d < least || d == least && ieg.Slot(i) < best {
			best, least = ieg.Slot(i), d
		}
	}
	owned := -1
	for i := range p.rows {
		switch r := &p.rows[i]; {
		case r.Owner != 0:
			owned = i
		case r.empty():
			if lowest == ieg.NoSlot {
				lowest = ieg.Slot(i)
			}
			if owned >= 0 {
				note(i, owned)
			}
		}
	}
	if owned < 0 {
		return lowest
	}
	owned = -1
	for i := len(p.rows) - 1; i >= 0; i-- {
		switch r := &p.rows[i]; {
		case r.Owner != 0:
			owned = i
		case r.empty() && owned >= 0:
			note(i, owned)
		}
	}
	return best
}

// Advance records that the row's known tokens are now tokens and the first
// computed of them are in KV.
func (p *Pool) Advance(s ieg.Slot, tokens []ieg.Token, computed int32, now ieg.Time) {
	r := &p.rows[s]
	if computed < r.Computed || int(computed) > len(tokens) {
		panic(fmt.Sprintf("kv: slot %d advances from %d to %d of %d tokens", s, r.Computed, computed, len(tokens)))
	}
	p.grow(r, computed-r.Computed)
	r.Tokens, r.Computed, r.Used = tokens, computed, now
}

// Release gives up ownership; the computed tokens stay for their prefix.
func (p *Pool) Release(s ieg.Slot, now ieg.Time, rent float64) {
	r := &p.rows[s]
	r.Owner, r.Used, r.Rent = 0, now, rent
	r.Tokens = r.Tokens[:r.Computed]
	p.idle += r.Computed
}

// Oldest is the idle row other than keep (NoSlot: any) to give up first: the
// least recently used one of those that nobody wants, else of all; among equals
// the lowest; NoSlot if none is idle.
func (p *Pool) Oldest(keep ieg.Slot) ieg.Slot {
	s := ieg.NoSlot
	for i := range p.rows {
		r := &p.rows[i]
		if !r.idle() || ieg.Slot(i) == keep {
			continue
		}
		if b := s; b == ieg.NoSlot || r.wanted != p.rows[b].wanted && !r.wanted || r.wanted == p.rows[b].wanted && r.Used < p.rows[b].Used {
			s = ieg.Slot(i)
		}
	}
	return s
}

// Want marks the row from which a waiting sequence would go on, if there is one
// with at least so many of its tokens: others give way before it.
func (p *Pool) Want(tokens []ieg.Token, tenant string, least int32) {
	if m := p.Match(tokens, tenant); m.Slot != ieg.NoSlot && m.N >= least {
		p.rows[m.Slot].wanted = true
	}
}

// WantNone ends all of that.
func (p *Pool) WantNone() {
	for i := range p.rows {
		p.rows[i].wanted = false
	}
}
