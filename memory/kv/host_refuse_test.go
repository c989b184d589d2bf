package kv_test

import (
	"testing"

	"ieg"
	"ieg/memory/kv"
)

// A promise that does not add up is taken in as far as it does.
func TestPromiseRefuses(t *testing.T) {
	root := kv.Root("m", "")
	text := make([]ieg.Token, 2*ieg.BlockTokens+5)
	tail := lastBlock(root, text[:5])
	for name, spoil := range map[string]func(b []ieg.Block) []ieg.Block{
		"a wrong position":         func(b []ieg.Block) []ieg.Block { b[1].Start = 0; return b },
		"another root":             func(b []ieg.Block) []ieg.Block { b[1].Root = kv.Root("m", "t"); return b },
		"no tokens":                func(b []ieg.Block) []ieg.Block { b[1].Tokens = nil; return b },
		"too many tokens":          func(b []ieg.Block) []ieg.Block { b[1].Tokens = text[:ieg.BlockTokens+1]; return b },
		"no bytes":                 func(b []ieg.Block) []ieg.Block { b[1].Bytes = 0; return b },
		"an unknown parent":        func(b []ieg.Block) []ieg.Block { b[1].Parent = kv.Root("x", ""); return b },
		"a parent that is a tail":  func(b []ieg.Block) []ieg.Block { b[0], b[1].Parent = tail, tail.Hash; return b },
		"a first block in the mid": func(b []ieg.Block) []ieg.Block { b[1].Parent = root; return b },
	} {
		h := kv.NewHost(kv.HostConfig{Pages: 4, PageBytes: 512})
		got := h.Promise(ieg.Stored{Blocks: spoil(pathOf(root, text))})
		if err := h.Check(); len(got) != 1 || err != nil {
			t.Errorf("%s: %d blocks are taken in, %v", name, len(got), err)
		}
		h.Want(got, -1)
		if n := len(h.Ledger().Blocks); n != 0 {
			t.Errorf("%s: %d blocks stay known", name, n)
		}
	}
}

// What does not add up in a ledger is found when it is made, or by Check.
func TestFromLedgerRefuses(t *testing.T) {
	root := kv.Root("m", "")
	text := make([]ieg.Token, 2*ieg.BlockTokens)
	good := func() kv.HostLedger {
		h := kv.NewHost(kv.HostConfig{Pages: 6, PageBytes: 512})
		for _, b := range pathOf(root, text) {
			h.Fill(h.Begin(b, 1, true), 1, 1)
		}
		h.Hold(kv.LeasePin, 0, 0, ieg.Never, h.Get(lastBlock(root, text).Hash))
		return h.Ledger()
	}
	load := func(st kv.HostLedger) error {
		h, err := kv.FromLedger(st)
		if err == nil {
			err = h.Check()
		}
		return err
	}
	if err := load(good()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(st *kv.HostLedger){
		"a block twice":             func(st *kv.HostLedger) { st.Blocks[2].Block.Hash = st.Blocks[1].Block.Hash },
		"a block before its parent": func(st *kv.HostLedger) { st.Blocks[1].Parent = 2 },
		"an unknown state":          func(st *kv.HostLedger) { st.Blocks[1].State = 9 },
		"a resident one of none":    func(st *kv.HostLedger) { st.Resident[0] = 7 },
		"a resident one of before":  func(st *kv.HostLedger) { st.Resident[0] = -1 },
		"a lease of none":           func(st *kv.HostLedger) { st.Leases[0].Blocks[0] = 3 },
		"a resident one missing":    func(st *kv.HostLedger) { st.Resident = st.Resident[:1] },
		"a resident one twice":      func(st *kv.HostLedger) { st.Resident[1] = st.Resident[0] },
		"a page twice":              func(st *kv.HostLedger) { st.Free[0] = st.Free[1] },
		"a page missing":            func(st *kv.HostLedger) { st.Free = st.Free[:1] },
		"a page of none":            func(st *kv.HostLedger) { st.Blocks[1].Pages = []ieg.Page{0, 99} },
		"too few pages":             func(st *kv.HostLedger) { st.Blocks[1].Pages = st.Blocks[1].Pages[:1] },
		"a wrong position":          func(st *kv.HostLedger) { st.Blocks[2].Block.Start = 5 },
		"a root with tokens":        func(st *kv.HostLedger) { st.Blocks[0].Block.Tokens = text[:1] },
		"an end of no use": func(st *kv.HostLedger) {
			st.Blocks[2].State, st.Blocks[2].Pages, st.Leases, st.Resident = kv.HostAbsent, nil, nil, st.Resident[:1]
			st.Free = []ieg.Page{2, 3, 4, 5}
		},
	} {
		st := good()
		spoil(&st)
		if load(st) == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
}

// In a large arena a sample is weighed: what is held stays all the same, what
// was used lately mostly does, and equal ledgers choose equally.
func TestLargeArena(t *testing.T) {
	root := kv.Root("m", "")
	block := func(i int) ieg.Block {
		b := lastBlock(root, []ieg.Token{ieg.Token(i)})
		b.Bytes = 1
		return b
	}
	const n = 4 * kv.SampleAll
	h := kv.NewHost(kv.HostConfig{Pages: n, PageBytes: 1, Policy: kv.LRU})
	for i := range n {
		k := h.Begin(block(i), ieg.Time(i), true)
		h.Fill(k, 1, ieg.Time(i))
		if i%2 == 0 {
			h.Hold(kv.LeasePin, 0, 0, ieg.Never, k)
		}
	}
	twin, err := kv.FromLedger(h.Ledger())
	if err != nil {
		t.Fatal(err)
	}
	for i := range n / 4 {
		for _, h := range []*kv.Host{h, twin} {
			k := h.Begin(block(n+i), n, true)
			if k == nil {
				t.Fatalf("no room for block %d", i)
			}
			h.Fill(k, 1, n)
		}
	}
	old := 0
	for i := range n {
		k := h.Get(block(i).Hash)
		if i%2 == 0 && k == nil {
			t.Errorf("block %d was held and is gone", i)
		}
		if k == nil != (twin.Get(block(i).Hash) == nil) {
			t.Errorf("equal ledgers disagree on block %d", i)
		}
		if k == nil && i < n/2 {
			old++
		}
	}
	if old < n/4*9/10 {
		t.Errorf("of %d blocks that gave way %d are of the older half", n/4, old)
	}
	h.Each(func(k *kv.Known) { h.Hold(kv.LeasePin, 0, 0, ieg.Never, k) })
	if h.Begin(block(2*n), n, true) != nil {
		t.Error("there is room although all is held")
	}
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}
