package pager

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

const oneBlock = ieg.BlockTokens * rawToken

// below is how far others bring the free disk below the reserve: further than
// the store itself does.
const below = 20 << 20

// ups is how often it was told that the tier can be used.
func (w *world) ups() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.states {
		if s == "true false" {
			n++
		}
	}
	return n
}

// Others fill the disk: nothing is stored, and nothing deleted for it, also
// where the budget is used up. It is said before anybody tries. Once there is
// room it is told, so that what was refused is stored.
func TestOthersFillTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Size = 3*oneBlock + 10 })
		w.ready(1)
		for i := range uint64(3) {
			w.storeText(tokens(i, ieg.BlockTokens))
		}
		if st := w.p.Status(); st.Why != "" {
			t.Errorf("with room: %+v", st)
		}
		w.disk.SetSize(3*oneBlock - below)
		if st := w.p.Status(); !st.Up || !strings.Contains(st.Why, "full") {
			t.Errorf("before a store: %+v", st)
		}
		b, pages := w.block(testRoot, 0, tokens(7, ieg.BlockTokens))
		for range 10 {
			if d := w.store(b, pages); !strings.Contains(d.Err, "full") || d.Gone {
				t.Errorf("stored on a full disk: %+v", d)
			}
			time.Sleep(30 * time.Second)
		}
		if st := w.p.Status(); st.Evicted != 0 || st.Blocks != 3 || st.Why == "" || w.ups() != 1 {
			t.Errorf("%d times up, %+v", w.ups(), st)
		}
		w.disk.SetSize(1 << 30)
		time.Sleep(probeEvery)
		synctest.Wait()
		if st := w.p.Status(); st.Why != "" || w.ups() != 2 {
			t.Errorf("with room again: %d times up, %+v", w.ups(), st)
		}
		if d := w.store(b, pages); d.Err != "" {
			t.Errorf("with room again: %+v", d)
		}
		time.Sleep(time.Hour)
		if w.ups() != 2 || w.p.Status().Evicted != 1 {
			t.Errorf("%d times up in the end, %+v", w.ups(), w.p.Status())
		}
	})
}

// lagging is a store that gives back what was deleted once it is more than lag.
type lagging struct {
	tier.Store
	lag int64
}

func (l lagging) Room() tier.Room {
	r := l.Store.Room()
	r.Lag = l.lag
	return r
}

// A tier that reached the reserve itself deletes as much as makes room, at once,
// and is tried again; if all it has is not enough it keeps it.
func TestItsOwnLimit(t *testing.T) {
	for _, c := range []struct{ lag, evicted int64 }{{2 * oneBlock, 3}, {4 * oneBlock, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(cfg *Config) {
				open := cfg.Open
				cfg.Open = func() (tier.Store, error) {
					s, err := open()
					return lagging{s, c.lag}, err
				}
			})
			w.ready(1)
			for i := range uint64(4) {
				w.storeText(tokens(i, ieg.BlockTokens))
			}
			w.disk.SetSize(4*oneBlock + padBytes)
			b, pages := w.block(testRoot, 0, tokens(7, ieg.BlockTokens))
			if d := w.store(b, pages); d.Err == "" {
				t.Error("stored without room")
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if st := w.p.Status(); st.Evicted != c.evicted || w.ups() == 2 != (c.evicted > 0) {
				t.Errorf("a lag of %d: %d evicted, %d times up", c.lag, st.Evicted, w.ups())
			}
		})
	}
}

// Who asks need not wait until the disk is looked at; where it has no room
// still, asking changes nothing.
func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.disk.SetSize(-below)
		b, pages := w.block(testRoot, 0, tokens(7, ieg.BlockTokens))
		for range 2 {
			if d := w.store(b, pages); d.Err == "" {
				t.Error("stored on a full disk")
			}
			w.p.Retry()
		}
		if st := w.p.Status(); st.Refused != 1 {
			t.Errorf("the pause was ended without room: %+v", st)
		}
		w.disk.SetSize(1 << 30)
		w.p.Retry()
		if d := w.store(b, pages); d.Err != "" {
			t.Errorf("with room: %+v", d)
		}
	})
}

// A disk that seems to have room and refuses is tried again, less and less
// often, and nothing is deleted for it.
func TestRefusesWithRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.storeText(tokens(1, ieg.BlockTokens))
		w.fault.Set(tiertest.Faults{Full: 1})
		b, pages := w.block(testRoot, 0, tokens(7, ieg.BlockTokens))
		for began := time.Now(); time.Since(began) < time.Hour; {
			n := w.ups()
			if d := w.store(b, pages); d.Err == "" {
				t.Fatal("stored")
			}
			w.until(func() bool {
				up := 0
				for _, s := range w.states {
					if s == "true false" {
						up++
					}
				}
				return up > n
			})
		}
		if n := w.ups(); n < 55 || n > 75 {
			t.Errorf("tried %d times in an hour", n)
		}
		if st := w.p.Status(); st.Evicted != 0 || st.Blocks != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// What fits of a batch is stored, and the rest with the room for it.
func TestPartOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.disk.SetSize(2 * (oneBlock + padBytes))
		blocks, pages := w.text(tokens(1, 4*ieg.BlockTokens))
		w.p.writing.take() // so that they come together
		first := w.begin(ieg.MoveStore, blocks[0], pages[0])
		synctest.Wait()
		var ids []ieg.MoveID
		for i := 1; i < 4; i++ {
			ids = append(ids, w.begin(ieg.MoveStore, blocks[i], pages[i]))
		}
		w.p.writing.pass()
		if d := w.wait(first); d.Err != "" {
			t.Errorf("%+v", d)
		}
		for i, id := range ids {
			if d := w.wait(id); d.Err == "" != (i == 0) {
				t.Errorf("block %d: %+v", i+1, d)
			}
		}
		w.disk.SetSize(1 << 30)
		w.ready(2)
		for i := range blocks {
			if d := w.store(blocks[i], pages[i]); d.Err != "" {
				t.Errorf("block %d with room: %+v", i, d)
			}
		}
		if st := w.p.Status(); st.Blocks != 4 || st.Evicted != 0 {
			t.Errorf("status %+v", st)
		}
	})
}
