package nvme

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// Reads meet reclamation: what is never deleted can be read all the time while
// it moves, the rest is whole or missing.
func TestReadsWhileReclaiming(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "sealed": make([]byte, 16)} {
		t.Run(name, func(t *testing.T) { readWhileReclaiming(t, key) })
	}
}

func readWhileReclaiming(t *testing.T, key []byte) {
	s := mustOpen(t, Config{FileBytes: minFileBytes, Key: key})
	const size, keep = 8192, 16
	kept := make([]tier.Item, keep)
	for i := range kept {
		kept[i] = tiertest.Make(uint64(i), size)
		// Each kept block lies among others that will go.
		others := []tier.Item{kept[i], tiertest.Make(uint64(1000+i), size), tiertest.Make(uint64(2000+i), size)}
		if err := s.Put(t.Context(), others); err != nil {
			t.Fatal(err)
		}
	}
	at := places(t, s, kept)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	writers.Go(func() {
		defer close(done)
		r := rand.New(rand.NewPCG(1, 1))
		for range 300 {
			s.pressed.Store(true)
			n := 1000 + r.Uint64N(40)
			err := errors.Join(
				s.Delete(t.Context(), []ieg.BlockHash{tiertest.Make(n, size).Block.Hash, tiertest.Make(n+1000, size).Block.Hash}),
				s.Put(t.Context(), []tier.Item{tiertest.Make(1000+r.Uint64N(40), size)}))
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for g := range uint64(3) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(g, 2))
			for {
				select {
				case <-done:
					return
				default:
				}
				it := kept[r.IntN(keep)]
				if err := tiertest.Holds(t.Context(), s, &it); err != nil {
					t.Errorf("a block that was never deleted: %v", err)
				}
				it = tiertest.Make(1000+r.Uint64N(40), size)
				if err := tiertest.Holds(t.Context(), s, &it); err != nil && !errors.Is(err, tier.ErrMissing) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
	moves := 0
	for h, e := range places(t, s, kept) {
		if was := at[h]; !e.at(&was) {
			moves++
		}
	}
	if moves < keep/2 {
		t.Errorf("%d of %d kept blocks moved: nothing was tried", moves, keep)
	}
}

func places(t *testing.T, s *Store, items []tier.Item) map[ieg.BlockHash]entry {
	t.Helper()
	out := map[ieg.BlockHash]entry{}
	for i := range items {
		e, _, err := s.look(items[i].Block.Hash)
		if err != nil {
			t.Fatal(err)
		}
		out[e.meta.Hash] = e
	}
	return out
}
