package tiertest

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/memory/tier"
)

var (
	_ tier.Store = (*Fake)(nil)
	_ tier.Store = (*Faulty)(nil)
)

func TestFake(t *testing.T) {
	fakes := map[string]*Fake{}
	Suite(t, func(t *testing.T, dir string) tier.Store {
		f := fakes[dir]
		if f == nil {
			f = NewFake()
			fakes[dir] = f
			return f
		}
		if err := f.Reopen(); err != nil {
			t.Fatal(err)
		}
		return f
	})
}

// Without chances a faulty store is a store.
func TestFaultyWithoutFaults(t *testing.T) {
	fakes := map[string]*Fake{}
	Suite(t, func(t *testing.T, dir string) tier.Store {
		if f := fakes[dir]; f != nil {
			if err := f.Reopen(); err != nil {
				t.Fatal(err)
			}
			return NewFaulty(f, Faults{})
		}
		fakes[dir] = NewFake()
		return NewFaulty(fakes[dir], Faults{Seed: 7})
	})
}

func TestFakeIsFull(t *testing.T) {
	f := NewFake()
	f.Size = 250
	err := f.Put(t.Context(), []tier.Item{Make(1, 100), Make(2, 100), Make(3, 100)})
	if !errors.Is(err, tier.ErrFull) || f.Usage().Blocks != 2 {
		t.Errorf("%v, usage %+v", err, f.Usage())
	}
	if err := f.Reopen(); !errors.Is(err, tier.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
}

// read gets a block of a faulty store a hundred times and says how often its
// bytes were wrong and how often there was an error.
func read(t *testing.T, faults Faults) (wrong, failed int) {
	t.Helper()
	f := NewFaulty(NewFake(), Faults{})
	it := Make(1, 1000)
	if err := f.Put(t.Context(), []tier.Item{it}); err != nil {
		t.Fatal(err)
	}
	f.Set(faults)
	for range 100 {
		buf := make([]byte, 1000)
		_, err := f.Get(t.Context(), it.Block.Hash, [][]byte{buf[:300], buf[300:]})
		switch {
		case err != nil:
			failed++
			if !errors.Is(err, tier.ErrUnusable) {
				t.Errorf("Get: %v", err)
			}
		case !bytes.Equal(buf, bytes.Join(it.Data, nil)):
			wrong++
		}
	}
	return wrong, failed
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		faults     Faults
		wrong, bad bool
	}{
		{Faults{}, false, false},
		{Faults{Flip: 0.3}, true, false},
		{Faults{Short: 0.3}, true, false},
		{Faults{Unusable: 0.3}, false, true},
		{Faults{Full: 1}, false, false},
	} {
		wrong, failed := read(t, c.faults)
		if (wrong > 5) != c.wrong || (failed > 5) != c.bad {
			t.Errorf("%+v: %d wrong, %d failed", c.faults, wrong, failed)
		}
		if w, f := read(t, c.faults); w != wrong || f != failed {
			t.Errorf("%+v: not the same again", c.faults)
		}
	}
	f := NewFaulty(NewFake(), Faults{Full: 1})
	items := make([]tier.Item, 0, 20)
	for i := range uint64(20) {
		items = append(items, Make(i, 10))
	}
	if err := f.Put(t.Context(), items); !errors.Is(err, tier.ErrFull) || f.Usage().Blocks >= 20 {
		t.Errorf("Put: %v with %+v", err, f.Usage())
	}
}

func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFaulty(NewFake(), Faults{Slow: 1, Delay: time.Minute})
		began := time.Now()
		if _, err := f.Block(t.Context(), ieg.BlockHash{}); !errors.Is(err, tier.ErrMissing) {
			t.Error(err)
		}
		if d := time.Since(began); d != time.Minute {
			t.Errorf("waited %v", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Delete(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
