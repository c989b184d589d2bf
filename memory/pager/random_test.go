package pager

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/memory/tier/tiertest"
)

// Whatever fails: each move ends once, what is fetched is what was stored, and
// in the end index and store hold the same.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			randomFaults(t, seed, func(d time.Duration) { time.Sleep(d) })
		})
	}
}

type fetched struct {
	block ieg.Block
	pages []ieg.Page
}

func randomFaults(t *testing.T, seed uint64, sleep func(time.Duration)) {
	r := rand.New(rand.NewPCG(seed, 99))
	w := newWorld(t, func(c *Config) {
		c.Size = int64(5+r.IntN(20)) * 50 * rawToken
		c.Compression = Compression(r.IntN(3))
		c.Depth = 1 + r.IntN(30)
		c.Workers = 1 + r.IntN(4)
		if r.IntN(2) == 0 {
			c.TTL = time.Minute
		}
		if r.IntN(2) == 0 {
			c.WriteRate = 1 << 20
		}
	})
	w.disk.SetSize(int64(5+r.IntN(40)) * 50 * rawToken)
	w.fault.Set(tiertest.Faults{Seed: seed, Full: 0.05, Unusable: 0.02 * float64(seed%2), Short: 0.1, Flip: 0.1, Slow: 0.3, Delay: time.Second})
	w.ready(1)
	if seed%3 == 0 {
		w.p.Register(testRoot, Root{KVType: "f16", INT8: true})
	}
	var fetches = map[ieg.MoveID]fetched{}
	var moves []ieg.MoveID
	spare := w.free[:60:60] // each fetch its own, as long as they last
	w.free = w.free[60:]
	for range 120 {
		text := tokens(uint64(r.IntN(20)), 50)
		switch op := r.IntN(10); {
		case op < 5 && len(w.free) > 1:
			b, pages := w.block(testRoot, 0, text)
			id := w.begin(ieg.MoveStore, b, pages)
			moves = append(moves, id)
		case op < 8:
			for _, b := range w.p.Find(testRoot, append(text, 1)).Blocks {
				if len(spare) > 0 {
					id := w.begin(ieg.MoveFetch, b, spare[:1:1])
					moves, fetches[id] = append(moves, id), fetched{b, spare[:1:1]}
					spare = spare[1:]
				}
			}
		case op == 8:
			sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
		default:
			admin(w, r)
		}
	}
	w.fault.Set(tiertest.Faults{})
	for _, id := range moves {
		w.wait(id)
	}
	checkFetched(t, w, fetches)
	sleep(2 * sweepMax)
	w.settled(t)
	ctx := context.Background()
	if err := w.p.Close(ctx); err != nil {
		t.Errorf("seed %d: close: %v", seed, err)
	}
	for _, id := range moves {
		if len(w.done[id]) != 1 {
			t.Errorf("seed %d: move %d ended %d times", seed, id, len(w.done[id]))
		}
	}
	if err := w.disk.Reopen(); err != nil {
		t.Errorf("seed %d: the store was not closed", seed)
	}
}

func admin(w *world, r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		w.p.Drop(testRoot)
	case 1:
		w.p.Tree(5)
	case 2:
		w.p.Status()
	case 3:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w.p.Flush(ctx)
	}
}

func checkFetched(t *testing.T, w *world, fetches map[ieg.MoveID]fetched) {
	for id, f := range fetches {
		if w.done[id][0].Err != "" {
			continue
		}
		want := rawKV(f.block.Hash, len(f.block.Tokens))
		if f.block.Codec == ieg.CodecINT8 {
			want = int8KV(f.block.Hash, len(f.block.Tokens))
		}
		if got := bytes.Join(w.arena.Parts(f.pages, f.block.Bytes), nil); !bytes.Equal(got, want) {
			t.Errorf("move %d: other bytes", id)
		}
	}
}

// settled proves, once all is quiet and what could not be deleted was, that
// index and store agree and nothing is held.
func (w *world) settled(t *testing.T) {
	synctest.Wait()
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	if !w.p.health.up || w.p.flight != 0 || len(w.p.fetching) != 0 || len(w.p.health.doomed) != 0 || w.p.health.store.users != 0 {
		t.Errorf("%d in flight, %d fetching, health %+v", w.p.flight, len(w.p.fetching), w.p.health)
	}
	x := w.p.known.index
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	if u := w.disk.Usage(); u.Blocks != int64(x.Len()) || u.Live != x.Bytes() || x.Bytes() > w.p.cfg.Size {
		t.Errorf("the store has %d blocks, %d bytes; the index %d, %d; the budget is %d", u.Blocks, u.Live, x.Len(), x.Bytes(), w.p.cfg.Size)
	}
	if w.p.flush.begun != w.p.flush.ended || len(w.p.flush.waiting) != 0 {
		t.Errorf("flushes %+v", w.p.flush)
	}
	if fmt.Sprint(w.states[len(w.states)-1]) != "true false" {
		t.Errorf("states %v", w.states)
	}
}
