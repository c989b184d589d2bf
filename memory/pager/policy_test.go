package pager

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/memory/codec"
	"ieg/memory/kv"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

const blockBytes = ieg.BlockTokens * rawToken

// Over the budget what was not used goes, but nothing pinned.
func TestSize(t *testing.T) {
	for _, policy := range []kv.Policy{kv.ByValue, kv.LRU} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Size, c.Policy = 3*blockBytes+100, policy })
			w.ready(1)
			text := func(i uint64) []ieg.Token { return tokens(i, ieg.BlockTokens) }
			var blocks []ieg.Block
			for i := range uint64(3) {
				blocks = append(blocks, w.storeText(text(i))...)
				time.Sleep(time.Minute)
			}
			w.p.Find(testRoot, append(text(0), 1))
			w.p.Pin(blocks[1].Hash, true)
			w.storeText(text(3))
			for i, there := range []bool{true, true, false, true} {
				if got := w.p.Find(testRoot, append(text(uint64(i)), 1)); got.Tokens > 0 != there {
					t.Errorf("%v: text %d: %d tokens", policy, i, got.Tokens)
				}
			}
			if st := w.p.Status(); st.Bytes > st.Size || st.Evicted != 1 || w.disk.Usage().Live != st.Bytes {
				t.Errorf("status %+v, store %+v", st, w.disk.Usage())
			}
			for _, h := range []ieg.BlockHash{blocks[0].Hash, kv.Name(testRoot, text(3))} {
				w.p.Pin(h, true)
			}
			b, pages := w.block(testRoot, 0, text(4))
			if d := w.store(b, pages); !strings.Contains(d.Err, "pinned") || d.Gone {
				t.Errorf("beside pinned blocks: %+v", d)
			}
			if w.p.Pin(b.Hash, true) {
				t.Error("pinned a block that is not there")
			}
		})
	}
}

// The same block asked for twice is stored once and reported twice, in the
// form that it has.
func TestTwins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		b, pages := w.block(testRoot, 0, tokens(1, 100))
		w.fault.Set(tiertest.Faults{Slow: 1, Delay: time.Second})
		other, otherPages := w.block(testRoot, 0, tokens(2, 100))
		first := w.begin(ieg.MoveStore, other, otherPages)
		synctest.Wait() // the others are one batch
		for _, id := range []ieg.MoveID{first, w.begin(ieg.MoveStore, b, pages), w.begin(ieg.MoveStore, b, pages), w.begin(ieg.MoveStore, b, pages)} {
			if d := w.wait(id); d.Err != "" || d.Bytes != b.Bytes {
				t.Errorf("%+v", d)
			}
		}
		if d := w.store(b, pages); d.Err != "" || d.Digest != b.Digest || d.Took != 0 {
			t.Errorf("stored before: %+v", d)
		}
		if st := w.p.Status(); st.Stores.Bytes != 2*b.Bytes || st.Stores.Done != 5 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Depth = 2 })
		w.ready(1)
		w.fault.Set(tiertest.Faults{Slow: 1, Delay: time.Second})
		var ids []ieg.MoveID
		for i := range 3 {
			b, pages := w.block(testRoot, 0, tokens(uint64(i), 100))
			ids = append(ids, w.begin(ieg.MoveStore, b, pages))
		}
		for i, id := range ids {
			if d := w.wait(id); (d.Err != "") != (i == 2) || d.Gone {
				t.Errorf("move %d: %+v", i, d)
			}
		}
	})
}

func TestWriteRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate = 1000
		w := newWorld(t, func(c *Config) { c.WriteRate = rate })
		w.ready(1)
		w.p.mu.Lock()
		w.p.budget.spend(batchBytes, w.p.cfg.Now()) // the burst
		w.p.mu.Unlock()
		began := time.Now()
		var sum int64
		for i := range uint64(4) {
			b := w.storeText(tokens(i, 100))[0]
			sum += b.Bytes
		}
		least := time.Duration(sum-2*100*rawToken) * time.Second / rate
		if took := time.Since(began); took < least || took > 2*least+time.Second {
			t.Errorf("%d bytes took %v, at the least %v", sum, took, least)
		}
	})
}

// The day's budget goes to what is likely used again.
func TestWriteDaily(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		daily := func(c *Config) { c.WriteDaily = 8 * blockBytes }
		w := newWorld(t, daily)
		w.ready(1)
		hot := tokens(1, ieg.BlockTokens)
		w.storeText(hot)
		for range 4 {
			w.p.Find(testRoot, append(hot, 1))
		}
		first := func(seed uint64) []ieg.Token { return append(slices.Clone(hot), tokens(seed, ieg.BlockTokens)...) }
		store := func(tk []ieg.Token, want string) {
			t.Helper()
			blocks, pages := w.text(tk)
			d := w.store(blocks[len(blocks)-1], pages[len(blocks)-1])
			if want == "" && d.Err != "" || !strings.Contains(d.Err, want) || d.Gone {
				t.Errorf("%+v, not %q", d, want)
			}
		}
		store(append(slices.Clone(hot), 1, 2, 3), "")
		store(first(2), "")
		store(first(3), "")
		store(first(4), "")
		store(append(slices.Clone(hot), 1, 2), "ends of texts")
		store(first(5), "")
		store(first(6), "")
		cold, _ := w.text(first(6))
		store(append(first(6), tokens(9, ieg.BlockTokens)...), "little use")
		if len(cold) != 2 {
			t.Errorf("%d blocks", len(cold))
		}
		store(first(7), "")
		store(first(8), "spent")
		if st := w.p.Status(); st.Refused != 3 || st.WrittenToday > 8*blockBytes || !strings.Contains(st.Why, "spent") || !st.Up {
			t.Errorf("status %+v", st)
		}
		if err := w.p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.start(daily)
		w.ready(2)
		store(first(8), "spent") // a restart begins no new day
		time.Sleep(25 * time.Hour)
		if st := w.p.Status(); st.Why != "" || st.WrittenToday != 0 {
			t.Errorf("a day later: %+v", st)
		}
		store(append(slices.Clone(hot), 1, 2), "")
	})
}

func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.TTL = time.Hour })
		w.ready(1)
		old := w.storeText(tokens(1, 300))
		w.p.Pin(old[0].Hash, true)
		time.Sleep(45 * time.Minute)
		young := tokens(2, 300)
		w.storeText(young)
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if st := w.p.Status(); st.Blocks != 2 || w.disk.Usage().Blocks != 2 || st.Evicted != 0 {
			t.Errorf("status %+v", st)
		}
		if got := w.p.Find(testRoot, append(young, 1)); int(got.Tokens) != len(young) {
			t.Errorf("%d tokens of the younger text", got.Tokens)
		}
	})
}

func TestDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.storeText(tokens(1, 700))
		root := kv.Root("model", "another")
		raw := tokens(2, 300)
		b, pages := w.block(root, 0, raw[:256])
		b.Root = root
		if d := w.store(b, pages); d.Err != "" {
			t.Fatal(d.Err)
		}
		if n, bytes, err := w.p.Drop(testRoot); n != 3 || bytes != 700*rawToken || err != nil {
			t.Errorf("%d blocks, %d bytes, %v", n, bytes, err)
		}
		if st := w.p.Status(); st.Blocks != 1 || w.disk.Usage().Blocks != 1 {
			t.Errorf("status %+v", st)
		}
		if n, _, err := w.p.DropAll(); n != 1 || err != nil || w.disk.Usage().Blocks != 0 {
			t.Errorf("%d blocks, %v", n, err)
		}
	})
}

func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		w.fault.Set(tiertest.Faults{Slow: 1, Delay: time.Second})
		if err := w.p.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		for i := range uint64(3) {
			b, pages := w.block(testRoot, 0, tokens(i, 100))
			w.begin(ieg.MoveStore, b, pages)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := w.p.Flush(ctx); err == nil {
			t.Error("flushed before it was written")
		}
		if err := w.p.Flush(t.Context()); err != nil || w.disk.Usage().Blocks != 3 {
			t.Errorf("%v, %d blocks on disk", err, w.disk.Usage().Blocks)
		}
	})
}

func TestTree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		common := tokens(1, 2*ieg.BlockTokens)
		hot := append(slices.Clone(common), tokens(2, 40)...)
		w.storeText(hot)
		w.storeText(append(slices.Clone(common), tokens(3, ieg.BlockTokens+10)...))
		w.storeText(tokens(4, 20))
		w.p.Find(testRoot, append(hot, 1))
		type row struct {
			depth  int32
			tokens int64
		}
		var got []row
		for _, r := range w.p.Tree(10) {
			got = append(got, row{r.Depth, r.Tokens})
			if r.Bytes != r.Tokens*rawToken || r.Heat <= 0 || r.Partial || r.Root != testRoot {
				t.Errorf("row %+v", r)
			}
		}
		want := []row{{512, 512 + 40 + 266}, {552, 40}, {778, 266}, {20, 20}}
		slices.SortFunc(got[2:], func(a, b row) int { return int(b.depth - a.depth) }) // as hot as each other
		if !slices.Equal(got, want) {
			t.Errorf("rows %v, not %v", got, want)
		}
		if n := len(w.p.Tree(2)); n != 2 {
			t.Errorf("%d rows of 2", n)
		}
	})
}

// As int8 a block is smaller; what is stored, promised and fetched is that
// form, piece by piece.
func TestINT8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Compression = CompressINT8 })
		w.ready(1)
		text := tokens(1, ieg.BlockTokens+100)
		raw := w.storeText(text) // nothing is known of the root
		w.p.Register(testRoot, Root{KVType: "f16", INT8: true})
		if _, _, err := w.p.DropAll(); err != nil {
			t.Fatal(err)
		}
		blocks, pages := w.text(text)
		for i, b := range blocks {
			d := w.store(b, pages[i])
			if d.Codec != ieg.CodecINT8 || d.Bytes >= raw[i].Bytes*11/20 || d.Err != "" {
				t.Errorf("%d raw bytes: %+v", raw[i].Bytes, d)
			}
			b.Codec, b.Bytes, b.Digest = d.Codec, d.Bytes, d.Digest
			f, got := w.fetch(b)
			if want := int8KV(b.Hash, len(b.Tokens)); f.Err != "" || !bytes.Equal(got, want) || codec.Digest(0, want) != d.Digest {
				t.Errorf("%+v: other bytes", f)
			}
			if found := w.p.Find(testRoot, append(text, 1)); found.Blocks[i].Digest != d.Digest || found.Blocks[i].Bytes != d.Bytes || found.Blocks[i].Codec != d.Codec {
				t.Errorf("promised %+v", found.Blocks[i])
			}
		}
	})
}

// int8KV is rawKV packed.
func int8KV(h ieg.BlockHash, n int) (out []byte) {
	for piece := range slices.Chunk(rawKV(h, n), ieg.PieceTokens*rawToken) {
		dst := make([]byte, codec.Size(ieg.CodecINT8, len(piece)))
		codec.Encode(ieg.CodecINT8, "f16", dst, piece)
		out = append(out, dst...)
	}
	return out
}

// Blocks are packed once half of the tier is used.
func TestPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.Compression = CompressAuto })
		w.ready(1)
		pays := func(size int64) bool {
			w.p.mu.Lock()
			w.p.cfg.Size = size
			w.p.mu.Unlock()
			_, ok := w.p.pays(testRoot)
			return ok
		}
		w.storeText(tokens(1, 300))
		used := w.p.Status().Bytes
		if pays(2*used) || used == 0 {
			t.Error("packs what may not be, or there is nothing")
		}
		w.p.Register(testRoot, Root{KVType: "f16", INT8: true})
		if !pays(2*used) || pays(2*used+2) {
			t.Error("int8 while there is space, or not when there isn't")
		}
	})
}

// The value of a block counts what it takes to compute it, less the reading.
func TestSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.p.Register(testRoot, Root{TokenSeconds: 0.5})
		w.p.mu.Lock()
		defer w.p.mu.Unlock()
		if got := w.p.saved(testRoot, 10, 1e6); got != 5 {
			t.Errorf("%g s without a measured speed", got)
		}
		w.p.count.read = 1e6
		if a, b := w.p.saved(testRoot, 10, 1e6), w.p.saved(testRoot, 10, 1e8); a != 4 || b != 0 {
			t.Errorf("%g s and %g s", a, b)
		}
		if got := w.p.saved(ieg.BlockHash{1}, 2000, 1e6); got != 1 {
			t.Errorf("%g s of an unknown root", got)
		}
	})
}

var _ tier.Store = (*tiertest.Faulty)(nil)
