package kv_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ieg"
	"ieg/memory/kv"
)

// twin is the pool without cleverness: each row lists its tokens and the cell
// of each computed one, and cells are counted as a set.
type twin struct {
	layout ieg.Layout
	rows   []twinRow
	next   int
}

type twinRow struct {
	tokens []ieg.Token
	cells  []int
	owner  ieg.SeqID
	tenant string
	used   ieg.Time
}

func (w *twin) used() int32 {
	set := map[int]bool{}
	for _, r := range w.rows {
		for _, c := range r.cells {
			set[c] = true
		}
	}
	return int32(len(set))
}

func (w *twin) idle() (n int32) {
	for _, r := range w.rows {
		if r.owner == 0 {
			n += int32(len(r.cells))
		}
	}
	return n
}

func (w *twin) grow(s ieg.Slot, n int) {
	for range n {
		w.next++
		w.rows[s].cells = append(w.rows[s].cells, w.next)
	}
}

// apply does what an engine would do to its slots.
func (w *twin) apply(op ieg.KVOp) {
	to := &w.rows[op.To]
	if op.Kind == ieg.KVTrim {
		to.cells, to.tokens = to.cells[:op.N], to.tokens[:op.N]
		return
	}
	from := w.rows[op.From]
	to.tokens, to.cells = slices.Clone(from.tokens[:op.N]), nil
	if w.layout == ieg.Streams {
		w.grow(op.To, int(op.N))
		return
	}
	to.cells = slices.Clone(from.cells[:op.N])
}

func (w *twin) match(tokens []ieg.Token, tenant string) (here, pending int32) {
	for _, r := range w.rows {
		if r.tenant != tenant {
			continue
		}
		n := 0
		for n < len(r.tokens) && n < len(tokens)-1 && r.tokens[n] == tokens[n] {
			n++
		}
		here = max(here, int32(min(n, len(r.cells))))
		if r.owner != 0 && n > len(r.cells) {
			pending = max(pending, int32(n))
		}
	}
	if pending <= here {
		pending = 0
	}
	return here, pending
}

// equal compares the pool with the twin.
func (w *twin) equal(p *kv.Pool) error {
	if err := p.Check(); err != nil {
		return err
	}
	if p.Used() != w.used() || p.Idle() != w.idle() {
		return fmt.Errorf("used %d, idle %d; the twin has %d, %d", p.Used(), p.Idle(), w.used(), w.idle())
	}
	for i, r := range w.rows {
		row := p.Row(ieg.Slot(i))
		if row.Owner != r.owner || int(row.Computed) != len(r.cells) || !slices.Equal(row.Tokens, r.tokens) {
			return fmt.Errorf("row %d: owner %d, %d computed, tokens %v; the twin has owner %d, %d computed, tokens %v",
				i, row.Owner, row.Computed, row.Tokens, r.owner, len(r.cells), r.tokens)
		}
	}
	return nil
}

// run drives both with the same random operations.
type run struct {
	rng  *rand.Rand
	pool *kv.Pool
	twin *twin
	seqs map[ieg.SeqID]ieg.Slot
	next ieg.SeqID
	now  ieg.Time
}

func (r *run) prompt() []ieg.Token {
	t := make([]ieg.Token, 1+r.rng.IntN(160))
	stem := ieg.Token(r.rng.IntN(3))
	fork := r.rng.IntN(len(t) + 1)
	for i := range t {
		t[i] = stem
		if i >= fork {
			t[i] = ieg.Token(10 + r.rng.IntN(2))
		}
	}
	return t
}

func (r *run) acquire() error {
	tokens, tenant := r.prompt(), []string{"", "a"}[r.rng.IntN(2)]
	m := r.pool.Match(tokens, tenant)
	here, pending := r.twin.match(tokens, tenant)
	if m.N != here || m.PendingN != pending {
		return fmt.Errorf("match %+v; the twin has %d here, %d pending", m, here, pending)
	}
	if int(r.pool.Free()) < len(tokens) {
		return nil
	}
	r.next++
	g, ops, ok := r.pool.Acquire(r.next, tokens, tenant, m, r.now, nil)
	if full := !slices.ContainsFunc(r.twin.rows, func(t twinRow) bool { return t.owner == 0 }); ok == full {
		return fmt.Errorf("acquired: %t, all rows owned: %t", ok, full)
	}
	if !ok {
		return nil
	}
	for _, op := range ops {
		r.twin.apply(op)
	}
	row := &r.twin.rows[g.Slot]
	if row.owner != 0 || len(row.cells) != int(g.Cached) || g.Cached != here || !slices.Equal(row.tokens, tokens[:g.Cached]) {
		return fmt.Errorf("granted %+v for a match of %d; the engine's slot is owned by %d and holds %v", g, here, row.owner, row.tokens)
	}
	row.owner, row.tenant, row.used, row.tokens = r.next, tenant, r.now, slices.Clone(tokens)
	r.seqs[r.next] = g.Slot
	return nil
}

// pick returns a random live sequence, 0 if there is none.
func (r *run) pick() ieg.SeqID {
	ids := make([]ieg.SeqID, 0, len(r.seqs))
	for id := range r.seqs {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return 0
	}
	slices.Sort(ids)
	return ids[r.rng.IntN(len(ids))]
}

func (r *run) advance(id ieg.SeqID) {
	slot := r.seqs[id]
	row := &r.twin.rows[slot]
	known := r.pool.Row(slot).Tokens
	n := min(1+r.rng.IntN(40), len(known)-len(row.cells), int(r.pool.Free()))
	if len(row.cells)+n == len(known) {
		t := ieg.Token(r.rng.IntN(3))
		known, row.tokens = append(known, t), append(row.tokens, t)
	}
	r.twin.grow(slot, n)
	row.used = r.now
	r.pool.Advance(slot, known, int32(len(row.cells)), r.now)
}

func (r *run) release(id ieg.SeqID) {
	slot := r.seqs[id]
	row := &r.twin.rows[slot]
	row.owner, row.used, row.tokens = 0, r.now, row.tokens[:len(row.cells)]
	r.pool.Release(slot, r.now, 0)
	delete(r.seqs, id)
}

func (r *run) evict() error {
	keep := ieg.Slot(r.rng.IntN(len(r.twin.rows)+1) - 1)
	oldest := -1
	for i, row := range r.twin.rows {
		if row.owner == 0 && len(row.cells) > 0 && i != int(keep) && (oldest < 0 || row.used < r.twin.rows[oldest].used) {
			oldest = i
		}
	}
	s := r.pool.Oldest(keep)
	if int(s) != oldest {
		return fmt.Errorf("the oldest idle row beside %d is %d, not %d", keep, oldest, s)
	}
	if s == ieg.NoSlot {
		return nil
	}
	ops := r.pool.Empty(s, nil)
	if len(ops) != 1 || ops[0].To != s || ops[0].N != 0 {
		return fmt.Errorf("row %d is emptied by %v", s, ops)
	}
	r.twin.apply(ops[0])
	return nil
}

func (r *run) step() error {
	r.now++
	id := r.pick()
	switch k := r.rng.IntN(10); {
	case k < 3 || id == 0:
		if err := r.acquire(); err != nil {
			return err
		}
	case k < 7:
		r.advance(id)
	case k < 9:
		r.release(id)
	default:
		if err := r.evict(); err != nil {
			return err
		}
	}
	if r.rng.IntN(50) == 0 {
		p, err := kv.FromState(r.pool.State())
		if err != nil {
			return fmt.Errorf("restored: %w", err)
		}
		r.pool = p
	}
	return r.twin.equal(r.pool)
}

func TestPoolAgainstTwin(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 300
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		info := ieg.EngineInfo{Layout: ieg.Layout(seed % 2), Slots: int32(1 + rng.IntN(9)), SlotTokens: 4096}
		info.Cells = 40 + int32(rng.IntN(1500))
		r := &run{rng: rng, pool: kv.NewPool(info), seqs: map[ieg.SeqID]ieg.Slot{},
			twin: &twin{layout: info.Layout, rows: make([]twinRow, info.Slots)}}
		for i := range steps {
			if err := r.step(); err != nil {
				t.Fatalf("seed %d, operation %d (%s): %v", seed, i, info.Layout, err)
			}
		}
	}
}

func TestFromStateRefuses(t *testing.T) {
	good := func() kv.State {
		p := kv.NewPool(ieg.EngineInfo{Slots: 2, SlotTokens: 8, Cells: 16})
		_, _, _ = p.Acquire(1, []ieg.Token{1, 2, 3}, "", kv.Match{Slot: ieg.NoSlot, Pending: ieg.NoSlot}, 1, nil)
		p.Advance(0, []ieg.Token{1, 2, 3}, 2, 2)
		return p.State()
	}
	if _, err := kv.FromState(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*kv.State){
		"unknown segment":  func(s *kv.State) { s.Rows[0].Segments[0] = 7 },
		"negative segment": func(s *kv.State) { s.Rows[0].Segments[0] = -1 },
		"empty segment":    func(s *kv.State) { s.Segments[0].N = 0 },
		"references":       func(s *kv.State) { s.Segments[0].Refs = 2 },
		"free and held":    func(s *kv.State) { s.Free = []int32{0} },
		"free unknown":     func(s *kv.State) { s.Free = []int32{9} },
		"lost segment":     func(s *kv.State) { s.Segments = append(s.Segments, kv.SegmentState{N: 1, Refs: 1}) },
		"computed":         func(s *kv.State) { s.Rows[0].Computed = 3 },
		"tokens":           func(s *kv.State) { s.Rows[0].Tokens = nil },
		"slot":             func(s *kv.State) { s.SlotTokens = 1 },
		"cells":            func(s *kv.State) { s.Cells = 1 },
	} {
		st := good()
		spoil(&st)
		if _, err := kv.FromState(st); err == nil {
			t.Errorf("%s: a state that does not add up was taken", name)
		}
	}
}

func BenchmarkMatchShared(b *testing.B) {
	p := kv.NewPool(ieg.EngineInfo{Slots: 256, SlotTokens: 4096, Cells: 1 << 20, Layout: ieg.Streams})
	for i := range 256 {
		tokens := make([]ieg.Token, 1050)
		tokens[1049] = ieg.Token(i)
		g, _, _ := p.Acquire(ieg.SeqID(i+1), tokens, "", kv.Match{Slot: ieg.NoSlot, Pending: ieg.NoSlot}, 1, nil)
		p.Advance(g.Slot, tokens, 1050, 1)
	}
	tokens := make([]ieg.Token, 1050)
	tokens[1049] = 999
	for b.Loop() {
		if m := p.Match(tokens, ""); m.N != 1049 {
			b.Fatal(m)
		}
	}
}
