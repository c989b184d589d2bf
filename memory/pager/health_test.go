package pager

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// A block that is wrong in the store is gone, once; then it can be stored anew.
func TestCorruptInStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		text := tokens(1, 2*ieg.BlockTokens)
		blocks := w.storeText(text)
		w.disk.Corrupt(blocks[1].Hash, 1000)
		d, _ := w.fetch(blocks[1])
		if !d.Gone || d.Err == "" {
			t.Errorf("a wrong block: %+v", d)
		}
		if d, _ := w.fetch(blocks[1]); !d.Gone {
			t.Errorf("a dropped block: %+v", d)
		}
		if got := w.p.Find(testRoot, text); got.Tokens != ieg.BlockTokens {
			t.Errorf("%d tokens are found", got.Tokens)
		}
		st := w.p.Status()
		if st.Corrupt != 1 || st.Blocks != 1 || w.disk.Usage().Blocks != 1 || st.Fetches.Gone != 2 {
			t.Errorf("status %+v, %+v in the store", st, w.disk.Usage())
		}
		w.storeText(text)
		if d, _ := w.fetch(blocks[1]); d.Err != "" {
			t.Errorf("stored anew: %+v", d)
		}
	})
}

// A read that ends early or flips a bit is never taken for the block.
func TestReadFaults(t *testing.T) {
	for _, f := range []tiertest.Faults{{Seed: 1, Flip: 1}, {Seed: 2, Short: 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			w.ready(1)
			b := w.storeText(tokens(1, 100))[0]
			w.fault.Set(f)
			if d, _ := w.fetch(b); !d.Gone {
				t.Errorf("%+v: %+v", f, d)
			}
		})
	}
}

func TestBrokenInArena(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Compression = CompressINT8 })
		w.ready(1)
		w.p.Register(testRoot, Root{KVType: "f16", INT8: true})
		b, pages := w.block(testRoot, 0, tokens(1, ieg.BlockTokens))
		w.arena.pages[pages[1]][5] ^= 4
		if d := w.store(b, pages); !d.Gone || d.Err == "" {
			t.Errorf("%+v", d)
		}
		if st := w.p.Status(); st.Broken != 1 || w.disk.Usage().Blocks != 0 {
			t.Errorf("it was preserved: %+v", st)
		}
	})
}

// What is not as it was promised is gone, but what is stored stays.
func TestOtherThanPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		b := w.storeText(tokens(1, 100))[0]
		for what, change := range map[string]func(*ieg.Block){
			"codec": func(b *ieg.Block) { b.Codec = ieg.CodecINT8 }, "bytes": func(b *ieg.Block) { b.Bytes-- },
			"digest": func(b *ieg.Block) { b.Digest++ }, "name": func(b *ieg.Block) { b.Hash[3]++ },
		} {
			other := b
			change(&other)
			if d, _ := w.fetch(other); !d.Gone {
				t.Errorf("another %s: %+v", what, d)
			}
		}
		if d, _ := w.fetch(b); d.Err != "" {
			t.Errorf("as promised: %+v", d)
		}
	})
}

func TestWrongName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		b, pages := w.block(testRoot, 0, tokens(1, 100))
		b.Tokens = tokens(2, 100)
		if d := w.store(b, pages); d.Err == "" || d.Gone || w.disk.Usage().Blocks != 0 {
			t.Errorf("tokens of another name: %+v", d)
		}
	})
}

// A full store refuses for a while; what is there can be read, and what is
// worth least makes room.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		const one = ieg.BlockTokens * rawToken
		w.disk.SetSize(2*one + padBytes)
		var last ieg.Block
		for i := range 2 {
			last = w.storeText(tokens(uint64(i), ieg.BlockTokens))[0]
			time.Sleep(time.Minute)
		}
		b, pages := w.block(testRoot, 0, tokens(7, ieg.BlockTokens))
		for range 2 {
			if d := w.store(b, pages); !strings.Contains(d.Err, "full") || d.Gone {
				t.Errorf("stored into a full store: %+v", d)
			}
		}
		if st := w.p.Status(); !st.Up || st.Why == "" || st.Evicted != 1 || st.Refused != 1 {
			t.Errorf("status %+v", st)
		}
		if d, _ := w.fetch(last); d.Err != "" {
			t.Errorf("fetch: %+v", d)
		}
		time.Sleep(2 * time.Second)
		if d := w.store(b, pages); d.Err != "" {
			t.Errorf("with room: %+v", d)
		}
		if st := w.p.Status(); st.Why != "" || st.Blocks != 2 || w.disk.Usage().Blocks != 2 {
			t.Errorf("status %+v", st)
		}
	})
}

// A store that can't be used is closed and opened until it works. Then all is
// known again, heat and pins too.
func TestUnusableAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		text := tokens(1, 2*ieg.BlockTokens)
		blocks := w.storeText(text)
		w.p.Pin(blocks[1].Hash, true)
		w.p.Find(testRoot, append(text, 1))
		hot := w.p.Tree(1)[0]

		w.mu.Lock()
		w.openErr = fmt.Errorf("%w: no such device", tier.ErrUnusable)
		opens := w.opens
		w.mu.Unlock()
		w.fault.Set(tiertest.Faults{Unusable: 1})
		if d, _ := w.fetch(blocks[0]); d.Err == "" || d.Gone {
			t.Errorf("%+v", d)
		}
		w.until(func() bool { return len(w.states) == 2 })
		b, pages := w.block(testRoot, 0, tokens(7, 50))
		if d := w.store(b, pages); d.Err == "" || d.Gone {
			t.Errorf("stored while down: %+v", d)
		}
		if got := w.p.Find(testRoot, text); got.Tokens != 0 {
			t.Errorf("%d tokens are found while down", got.Tokens)
		}
		if _, _, err := w.p.DropAll(); err == nil {
			t.Error("dropped while down")
		}
		time.Sleep(10 * time.Minute)
		if st := w.p.Status(); st.Up || !st.Down || st.Why != "no such device" {
			t.Errorf("down: %+v", st)
		}
		w.mu.Lock()
		if n := w.opens - opens; n < 10 || n > 20 {
			t.Errorf("%d attempts in ten minutes", n)
		}
		w.openErr = nil
		w.mu.Unlock()
		w.fault.Set(tiertest.Faults{})
		w.ready(2)
		if st := w.p.Status(); !st.Up || st.Down || st.Why != "" {
			t.Errorf("up again: %+v", st)
		}
		if got := fmt.Sprint(w.states); got != "[true false false true true false]" {
			t.Errorf("states %s", got)
		}
		if d, _ := w.fetch(blocks[1]); d.Err != "" {
			t.Errorf("%+v", d)
		}
		row := w.p.Tree(1)[0]
		row.Heat, hot.Heat = 0, 0
		if row != hot || !row.Pinned {
			t.Errorf("after: %+v, before: %+v", row, hot)
		}
	})
}

// A store that opens slowly keeps nobody waiting; what it holds is then known.
func TestSlowOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		text := tokens(1, ieg.BlockTokens+30)
		w.storeText(text)
		if err := w.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w.start(func(c *Config) {
			open := c.Open
			c.Open = func() (tier.Store, error) {
				time.Sleep(time.Minute)
				return open()
			}
		})
		b, pages := w.block(testRoot, 0, tokens(7, 50))
		if d := w.store(b, pages); d.Err == "" || w.p.Find(testRoot, text).Tokens != 0 || time.Since(began) > 0 {
			t.Errorf("%+v after %v", d, time.Since(began))
		}
		w.ready(2)
		if got := w.p.Find(testRoot, text); int(got.Tokens) != len(text)-1 || time.Since(began) != time.Minute {
			t.Errorf("%d tokens after %v", got.Tokens, time.Since(began))
		}
	})
}

// What can't be part of a text, in a store that others wrote to, is dropped.
func TestForeignMeta(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.storeText(tokens(1, 300))
		if err := w.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.disk.Reopen(); err != nil {
			t.Fatal(err)
		}
		it := tiertest.Make(3, 100)
		it.Block.Start = 7
		if err := w.disk.Put(t.Context(), []tier.Item{it}); err != nil {
			t.Fatal(err)
		}
		w.disk.Close()
		w.start(nil)
		w.ready(2)
		if st := w.p.Status(); st.Corrupt != 1 || st.Blocks != 2 || w.disk.Usage().Blocks != 2 {
			t.Errorf("status %+v", st)
		}
	})
}

// Blocks that the store lost are counted once, when it is opened and later.
func TestLostIsCorrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		b := w.storeText(tokens(1, 100))[0]
		if err := w.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.disk.Lost = 3
		w.start(nil)
		w.ready(2)
		if st := w.p.Status(); st.Corrupt != 3 || st.Blocks != 1 {
			t.Errorf("at the opening: %+v", st)
		}
		if err := w.disk.Delete(t.Context(), []ieg.BlockHash{b.Hash}); err != nil {
			t.Fatal(err)
		}
		w.disk.Lost = 4
		if d, _ := w.fetch(b); !d.Gone {
			t.Errorf("a lost block: %+v", d)
		}
		if st := w.p.Status(); st.Corrupt != 4 || st.Blocks != 0 {
			t.Errorf("later: %+v", st)
		}
	})
}

// A fetch does not wait behind stores.
func TestFetchPassesStores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.WriteRate = 1 })
		w.ready(1)
		b := w.storeText(tokens(1, 100))[0]
		w.p.mu.Lock()
		w.p.budget.free = ieg.Time(1000 * time.Hour)
		w.p.mu.Unlock()
		var late []ieg.MoveID
		for i := range 5 {
			blk, pages := w.block(testRoot, 0, tokens(uint64(10+i), 100))
			late = append(late, w.begin(ieg.MoveStore, blk, pages))
		}
		began := time.Now()
		if d, _ := w.fetch(b); d.Err != "" || time.Since(began) > 0 {
			t.Errorf("%+v after %v", d, time.Since(began))
		}
		if err := w.p.Close(context.Background()); err != nil { // in a hurry
			t.Fatal(err)
		}
		for _, id := range late {
			if d := w.wait(id); d.Err != "" || time.Since(began) > 0 {
				t.Errorf("%+v after %v", d, time.Since(began))
			}
		}
	})
}

// When there is no time to end what was asked for, it is told so.
func TestCloseWithoutTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.fault.Set(tiertest.Faults{Slow: 1, Delay: time.Hour})
		var ids []ieg.MoveID
		for i := range 9 {
			b, pages := w.block(testRoot, 0, tokens(uint64(10+i), 100))
			ids = append(ids, w.begin(ieg.MoveKind(i%2), b, pages))
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := w.p.Close(ctx); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		b, pages := w.block(testRoot, 0, tokens(9, 100))
		w.begin(ieg.MoveStore, b, pages)
		for _, id := range ids {
			if n := len(w.done[id]); n != 1 || w.done[id][0].Err == "" {
				t.Errorf("move %d: %+v", id, w.done[id])
			}
		}
	})
}

// What is being fetched does not make room for what is being stored.
func TestFetchedIsNotEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Size = 2 * 100 * rawToken })
		w.ready(1)
		old := w.storeText(tokens(1, 100))[0]
		time.Sleep(time.Hour)
		w.storeText(tokens(2, 100))
		w.fault.Set(tiertest.Faults{Slow: 1, Delay: time.Minute})
		into := w.free[:2:2]
		w.free = w.free[2:]
		id := w.begin(ieg.MoveFetch, old, into)
		synctest.Wait()
		w.fault.Set(tiertest.Faults{})
		w.storeText(tokens(3, 100))
		if d := w.wait(id); d.Err != "" {
			t.Errorf("%+v", d)
		}
		for i, there := range []bool{true, false, true} {
			if got := w.p.Find(testRoot, tokens(uint64(1+i), 100)); got.Tokens > 0 != there {
				t.Errorf("text %d: %d tokens", 1+i, got.Tokens)
			}
		}
	})
}

// liar is a store that gives blocks other tokens than they have.
type liar struct {
	tier.Store
	tokens []ieg.Token
}

func (l *liar) Block(ctx context.Context, h ieg.BlockHash) (ieg.Block, error) {
	b, err := l.Store.Block(ctx, h)
	b.Tokens = l.tokens
	return b, err
}

// Tokens that a store tells are believed only if they make the block's name.
func TestWrongTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lie := tokens(2, 100)
		w := newWorld(t, func(c *Config) {
			open := c.Open
			c.Open = func() (tier.Store, error) {
				s, err := open()
				return &liar{s, lie}, err
			}
		})
		w.ready(1)
		w.storeText(tokens(1, 100))
		if got := w.p.Find(testRoot, append(lie, 1)); got.Tokens != 0 || len(got.Blocks) != 0 {
			t.Errorf("%d tokens are found of a text that is not stored", got.Tokens)
		}
	})
}
