package tiertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"ieg"
	"ieg/memory/tier"
)

// Suite checks what a tier.Store promises. open opens the store in a folder;
// after Close it is opened again in the same one and must hold the same. The
// tests use less than 64 MB.
func Suite(t *testing.T, open func(t *testing.T, dir string) tier.Store) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"stores and reads", storesAndReads},
		{"keeps the first", keepsTheFirst},
		{"refuses what is not a block", refuses},
		{"deletes", deletes},
		{"outlives a close", outlives},
		{"obeys its context", obeysContext},
		{"stops where it is told", stopsEach},
		{"is used after close", usedAfterClose},
		{"equals a map", equalsMap},
		{"serves many at once", servesMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{T: t, dir: t.TempDir(), open: open}
			b.store = open(t, b.dir)
			t.Cleanup(func() { b.store.Close() })
			c.run(t, b)
		})
	}
}

// bench holds the store under test.
type bench struct {
	*testing.T
	dir   string
	open  func(*testing.T, string) tier.Store
	store tier.Store
}

func (b *bench) ctx() context.Context { return b.Context() }

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) reopen() {
	b.Helper()
	b.must(b.store.Close())
	b.store = b.open(b.T, b.dir)
}

// holds checks that a block is there, whole.
func (b *bench) holds(it *tier.Item) {
	b.Helper()
	if err := Holds(b.ctx(), b.store, it); err != nil {
		b.Error(err)
	}
}

// Holds says what is wrong with a block of a store; nil: it is there, whole.
func Holds(ctx context.Context, s tier.Store, it *tier.Item) error {
	buf := make([]byte, it.Block.Bytes+3)
	k := len(buf) / 3
	got, err := s.Get(ctx, it.Block.Hash, [][]byte{buf[:k], nil, buf[k:]})
	if err != nil {
		return err
	}
	if err := Same(it, &got, buf[:it.Block.Bytes]); err != nil {
		return err
	}
	if got, err = s.Block(ctx, it.Block.Hash); err != nil {
		return err
	}
	return Same(it, &got, nil)
}

func (b *bench) lacks(h ieg.BlockHash) {
	b.Helper()
	if _, err := b.store.Get(b.ctx(), h, nil); !errors.Is(err, tier.ErrMissing) {
		b.Errorf("Get of %v: %v, want ErrMissing", h, err)
	}
	if _, err := b.store.Block(b.ctx(), h); !errors.Is(err, tier.ErrMissing) {
		b.Errorf("Block of %v: %v, want ErrMissing", h, err)
	}
}

// each lists the blocks of the store.
func (b *bench) each() map[ieg.BlockHash]tier.Meta {
	b.Helper()
	out := map[ieg.BlockHash]tier.Meta{}
	b.must(b.store.Each(b.ctx(), func(m tier.Meta) error {
		if _, twice := out[m.Hash]; twice {
			return fmt.Errorf("%v comes twice", m.Hash)
		}
		out[m.Hash] = m
		return nil
	}))
	return out
}

// agrees checks Each and Usage against the items that should be there.
func (b *bench) agrees(want map[ieg.BlockHash]*tier.Item) {
	b.Helper()
	var live int64
	got := b.each()
	for h, it := range want {
		m, there := got[h]
		w := &it.Block
		live += w.Bytes
		if !there || m.Stored <= 0 {
			b.Errorf("%v: there %v, stored at %d", h, there, m.Stored)
		}
		m.Stored = 0
		if wm := (tier.Meta{Hash: h, Parent: w.Parent, Root: w.Root, Start: w.Start, N: int32(len(w.Tokens)), Codec: w.Codec, Bytes: w.Bytes, Digest: w.Digest}); m != wm {
			b.Errorf("Each has %+v, want %+v", m, wm)
		}
	}
	if len(got) != len(want) {
		b.Errorf("Each lists %d blocks, want %d", len(got), len(want))
	}
	if u := b.store.Usage(); u.Blocks != int64(len(want)) || u.Live != live || u.Disk < live || u.Free < 0 {
		b.Errorf("usage %+v, want %d blocks, %d bytes", u, len(want), live)
	}
}

func storesAndReads(t *testing.T, b *bench) {
	var items []tier.Item
	want := map[ieg.BlockHash]*tier.Item{}
	for i, n := range []int64{1, 4095, 4096, 4097, 100_000, 1 << 20} {
		items = append(items, Make(uint64(i), n))
	}
	b.must(b.store.Put(b.ctx(), nil))
	b.must(b.store.Put(b.ctx(), items))
	for i := range items {
		want[items[i].Block.Hash] = &items[i]
		b.holds(&items[i])
	}
	b.agrees(want)
	b.lacks(name(77, 7))
	if w := b.store.Usage().Written; w < 1<<20 {
		t.Errorf("written %d", w)
	}
	h := items[4].Block.Hash
	if _, err := b.store.Get(b.ctx(), h, [][]byte{make([]byte, 99_999)}); err == nil || errors.Is(err, tier.ErrMissing) {
		t.Errorf("Get into too little room: %v", err)
	}
	b.holds(&items[4])
}

func keepsTheFirst(t *testing.T, b *bench) {
	it := Make(1, 5000)
	b.must(b.store.Put(b.ctx(), []tier.Item{it, it}))
	other := Make(1, 5000)
	other.Block.Start += ieg.BlockTokens
	other.Data = [][]byte{make([]byte, 5000)}
	b.must(b.store.Put(b.ctx(), []tier.Item{other, Make(2, 10)}))
	b.holds(&it)
	if u := b.store.Usage(); u.Blocks != 2 || u.Live != 5010 {
		t.Errorf("usage %+v", u)
	}
}

func refuses(t *testing.T, b *bench) {
	for what, edit := range map[string]func(*tier.Item){
		"more bytes than data": func(it *tier.Item) { it.Block.Bytes++ },
		"more data than bytes": func(it *tier.Item) { it.Block.Bytes-- },
		"no bytes":             func(it *tier.Item) { it.Block.Bytes, it.Data = 0, nil },
		"no tokens":            func(it *tier.Item) { it.Block.Tokens = nil },
		"too many tokens":      func(it *tier.Item) { it.Block.Tokens = make([]ieg.Token, ieg.BlockTokens+1) },
	} {
		it := Make(1, 100)
		edit(&it)
		if err := b.store.Put(b.ctx(), []tier.Item{it}); err == nil || errors.Is(err, tier.ErrUnusable) {
			t.Errorf("%s: %v", what, err)
		}
		b.lacks(it.Block.Hash)
	}
}

func deletes(t *testing.T, b *bench) {
	one, two := Make(1, 3000), Make(2, 5000)
	b.must(b.store.Put(b.ctx(), []tier.Item{one, two}))
	b.must(b.store.Delete(b.ctx(), nil))
	b.must(b.store.Delete(b.ctx(), []ieg.BlockHash{one.Block.Hash, name(9, 9), one.Block.Hash}))
	b.lacks(one.Block.Hash)
	b.holds(&two)
	b.agrees(map[ieg.BlockHash]*tier.Item{two.Block.Hash: &two})
	b.must(b.store.Put(b.ctx(), []tier.Item{one}))
	b.holds(&one)
	b.must(b.store.Delete(b.ctx(), []ieg.BlockHash{one.Block.Hash, two.Block.Hash}))
	b.agrees(nil)
}

func outlives(t *testing.T, b *bench) {
	want := map[ieg.BlockHash]*tier.Item{}
	for i := range uint64(10) {
		it := Make(i, 7000+int64(i))
		want[it.Block.Hash] = &it
		b.must(b.store.Put(b.ctx(), []tier.Item{it}))
	}
	gone := Make(3, 7003).Block.Hash
	b.must(b.store.Delete(b.ctx(), []ieg.BlockHash{gone}))
	delete(want, gone)
	for range 2 {
		b.reopen()
		b.agrees(want)
		if n := b.store.Usage().Day.Sum(time.Now()); n < 10*7000 {
			b.Errorf("%d bytes are said to be written within a day", n)
		}
		for _, it := range want {
			b.holds(it)
		}
		b.lacks(gone)
	}
}

func obeysContext(t *testing.T, b *bench) {
	it := Make(1, 100)
	b.must(b.store.Put(b.ctx(), []tier.Item{it}))
	ctx, cancel := context.WithCancel(b.ctx())
	cancel()
	_, errGet := b.store.Get(ctx, it.Block.Hash, [][]byte{make([]byte, 100)})
	_, errBlock := b.store.Block(ctx, it.Block.Hash)
	for what, err := range map[string]error{
		"Put":    b.store.Put(ctx, []tier.Item{Make(2, 100)}),
		"Get":    errGet,
		"Block":  errBlock,
		"Each":   b.store.Each(ctx, func(tier.Meta) error { return nil }),
		"Delete": b.store.Delete(ctx, []ieg.BlockHash{it.Block.Hash}),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", what, err)
		}
	}
	b.agrees(map[ieg.BlockHash]*tier.Item{it.Block.Hash: &it})
}

func stopsEach(t *testing.T, b *bench) {
	b.must(b.store.Put(b.ctx(), []tier.Item{Make(1, 10), Make(2, 10), Make(3, 10)}))
	stop, calls := errors.New("stop"), 0
	err := b.store.Each(b.ctx(), func(tier.Meta) error {
		calls++
		return stop
	})
	if err != stop || calls != 1 {
		t.Errorf("Each returned %v after %d calls, want its function's error after one", err, calls)
	}
	err = b.store.Each(b.ctx(), func(m tier.Meta) error {
		if err := b.store.Delete(b.ctx(), []ieg.BlockHash{m.Hash}); err != nil {
			return err
		}
		return b.store.Put(b.ctx(), []tier.Item{Make(uint64(m.Bytes)+100, m.Bytes)})
	})
	if err != nil {
		t.Errorf("Each whose function calls the store: %v", err)
	}
}

func usedAfterClose(t *testing.T, b *bench) {
	it := Make(1, 10)
	b.must(b.store.Put(b.ctx(), []tier.Item{it}))
	b.must(b.store.Close())
	b.must(b.store.Close())
	_, errGet := b.store.Get(b.ctx(), it.Block.Hash, nil)
	for what, err := range map[string]error{
		"Put": b.store.Put(b.ctx(), []tier.Item{it}), "Get": errGet,
		"Delete": b.store.Delete(b.ctx(), []ieg.BlockHash{it.Block.Hash}),
		"Each":   b.store.Each(b.ctx(), func(tier.Meta) error { return nil }),
	} {
		if !errors.Is(err, tier.ErrUnusable) {
			t.Errorf("%s after Close: %v, want ErrUnusable", what, err)
		}
	}
	b.store.Usage()
}

// equalsMap runs random calls against the store and a map.
func equalsMap(t *testing.T, b *bench) {
	r := rand.New(rand.NewPCG(1, 2))
	want := map[ieg.BlockHash]*tier.Item{}
	for range 150 {
		switch r.IntN(10) {
		case 0:
			b.reopen()
			b.agrees(want)
		case 1, 2, 3:
			var hs []ieg.BlockHash
			for range r.IntN(6) {
				it := Make(r.Uint64N(40), 20_000)
				hs = append(hs, it.Block.Hash)
				delete(want, it.Block.Hash)
			}
			b.must(b.store.Delete(b.ctx(), hs))
		default:
			var items []tier.Item
			for range r.IntN(6) {
				it := Make(r.Uint64N(40), 20_000)
				items = append(items, it)
				want[it.Block.Hash] = &it
			}
			b.must(b.store.Put(b.ctx(), items))
		}
		it := Make(r.Uint64N(40), 20_000)
		if want[it.Block.Hash] != nil {
			b.holds(&it)
		} else {
			b.lacks(it.Block.Hash)
		}
	}
	b.agrees(want)
}

// servesMany lets goroutines put, read and delete the same blocks.
func servesMany(t *testing.T, b *bench) {
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 0))
			for range 60 {
				it := Make(r.Uint64N(12), 30_000)
				var err error
				switch r.IntN(4) {
				case 0:
					err = b.store.Put(b.ctx(), []tier.Item{it, Make(r.Uint64N(12), 30_000)})
				case 1:
					err = b.store.Delete(b.ctx(), []ieg.BlockHash{it.Block.Hash})
				default:
					err = Holds(b.ctx(), b.store, &it)
				}
				if err != nil && !errors.Is(err, tier.ErrMissing) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want := map[ieg.BlockHash]*tier.Item{}
	for h := range b.each() {
		for i := range uint64(12) {
			if it := Make(i, 30_000); it.Block.Hash == h {
				want[h] = &it
				b.holds(&it)
			}
		}
	}
	b.agrees(want)
}
