package pager

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"ieg"
	"ieg/memory/codec"
	"ieg/memory/kv"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// memoryArena is an arena of Go's memory, in small odd pages so that pieces
// cross them.
type memoryArena struct{ pages [][]byte }

const pageBytes = 24_000

func (a *memoryArena) PageBytes() int { return pageBytes }

func (a *memoryArena) Parts(pages []ieg.Page, n int64) (parts [][]byte) {
	for _, p := range pages {
		k := min(n, pageBytes)
		parts = append(parts, a.pages[p][:k:k])
		n -= k
	}
	if n > 0 {
		panic("too few pages")
	}
	return parts
}
func (a *memoryArena) Digest(sum uint64, b []byte) uint64 { return codec.Digest(sum, b) }
func (a *memoryArena) Size(c ieg.Codec, n int) int        { return codec.Size(c, n) }
func (a *memoryArena) Encode(c ieg.Codec, kvType string, dst, src []byte) {
	codec.Encode(c, kvType, dst, src)
}

// rawToken is the raw bytes of a token's KV in these tests.
const rawToken = 256

// world is a Pager with its surroundings.
type world struct {
	t     *testing.T
	p     *Pager
	arena *memoryArena
	disk  *tiertest.Fake
	fault *tiertest.Faulty
	next  ieg.MoveID
	free  []ieg.Page

	mu      sync.Mutex
	opens   int
	openErr error
	done    map[ieg.MoveID][]ieg.MoveDone
	states  []string
	more    *sync.Cond
}

var testRoot = kv.Root("model", "tenant")

func newWorld(t *testing.T, change func(*Config)) *world {
	w := &world{t: t, arena: &memoryArena{}, disk: tiertest.NewFake(), done: map[ieg.MoveID][]ieg.MoveDone{}}
	w.more = sync.NewCond(&w.mu)
	w.fault = tiertest.NewFaulty(w.disk, tiertest.Faults{})
	w.disk.Close() // until it is opened
	for i := range 400 {
		w.arena.pages = append(w.arena.pages, make([]byte, pageBytes))
		w.free = append(w.free, ieg.Page(i))
	}
	w.start(change)
	t.Cleanup(func() {
		if err := w.p.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func (w *world) start(change func(*Config)) {
	cfg := Config{Open: w.open, Arena: w.arena, Size: 1 << 40, Compression: CompressNone, Done: w.ended, State: w.state}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.p = p
}

func (w *world) open() (tier.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opens++
	if w.openErr != nil {
		return nil, w.openErr
	}
	return w.fault, w.disk.Reopen()
}

func (w *world) ended(d ieg.MoveDone) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[d.ID] = append(w.done[d.ID], d)
	w.more.Broadcast()
}

func (w *world) state(up bool, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, fmt.Sprint(up, why != ""))
	w.more.Broadcast()
}

// until waits for a condition on what was reported.
func (w *world) until(ok func() bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ok() {
		w.more.Wait()
	}
}

// ready waits until the tier is up for the n-th time.
func (w *world) ready(n int) {
	w.until(func() bool {
		for _, s := range w.states {
			if s == "true false" {
				n--
			}
		}
		up := n <= 0
		return up
	})
}

// block makes a block of a text, at pages of its own.
func (w *world) block(parent ieg.BlockHash, start int32, tokens []ieg.Token) (ieg.Block, []ieg.Page) {
	b := ieg.Block{
		Hash: kv.Name(parent, tokens), Parent: parent, Root: testRoot, Start: start, Tokens: tokens,
		Bytes: int64(len(tokens)) * rawToken,
	}
	n := (b.Bytes + pageBytes - 1) / pageBytes
	pages := w.free[:n:n]
	w.free = w.free[n:]
	at := 0
	raw := rawKV(b.Hash, len(tokens))
	for _, part := range w.arena.Parts(pages, b.Bytes) {
		at += copy(part, raw[at:])
	}
	b.Digest = codec.Digest(0, raw)
	return b, pages
}

// rawKV is the KV of a block: f16 elements that follow from its name.
func rawKV(h ieg.BlockHash, n int) []byte {
	raw := tiertest.Bytes(h, int64(n)*rawToken)
	for i := 1; i < len(raw); i += 2 {
		raw[i] = raw[i]&0x83 | 0x34 // no infinity: exponents of a quarter to one
	}
	return raw
}

// text makes the blocks of a text.
func (w *world) text(tokens []ieg.Token) (blocks []ieg.Block, pages [][]ieg.Page) {
	parent := testRoot
	for at := 0; at < len(tokens); at += ieg.BlockTokens {
		b, p := w.block(parent, int32(at), tokens[at:min(at+ieg.BlockTokens, len(tokens))])
		blocks, pages = append(blocks, b), append(pages, p)
		parent = b.Hash
	}
	return blocks, pages
}

func (w *world) begin(kind ieg.MoveKind, b ieg.Block, pages []ieg.Page) ieg.MoveID {
	w.next++
	w.p.Move(ieg.Move{ID: w.next, Kind: kind, Block: b, Pages: pages})
	return w.next
}

func (w *world) wait(id ieg.MoveID) ieg.MoveDone {
	w.until(func() bool { return len(w.done[id]) > 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done[id][0]
}

func (w *world) store(b ieg.Block, pages []ieg.Page) ieg.MoveDone {
	return w.wait(w.begin(ieg.MoveStore, b, pages))
}

// storeText stores all blocks of a text.
func (w *world) storeText(tokens []ieg.Token) []ieg.Block {
	w.t.Helper()
	blocks, pages := w.text(tokens)
	for i := range blocks {
		if d := w.store(blocks[i], pages[i]); d.Err != "" {
			w.t.Fatalf("block %d: %s", i, d.Err)
		}
	}
	return blocks
}

// fetch brings a block into new pages and returns its bytes.
func (w *world) fetch(b ieg.Block) (ieg.MoveDone, []byte) {
	n := (b.Bytes + pageBytes - 1) / pageBytes
	pages := w.free[:n:n]
	w.free = w.free[n:]
	d := w.wait(w.begin(ieg.MoveFetch, b, pages))
	return d, bytes.Join(w.arena.Parts(pages, b.Bytes), nil)
}

func tokens(seed uint64, n int) []ieg.Token {
	r := rand.New(rand.NewPCG(seed, 0))
	t := make([]ieg.Token, n)
	for i := range t {
		t[i] = ieg.Token(r.IntN(50_000))
	}
	return t
}

func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		text := tokens(1, 3*ieg.BlockTokens+100)
		blocks := w.storeText(text)
		got := w.p.Find(testRoot, append(text, 1, 2, 3))
		if int(got.Tokens) != len(text) || len(got.Blocks) != len(blocks) {
			t.Fatalf("found %d tokens in %d blocks, not %d in %d", got.Tokens, len(got.Blocks), len(text), len(blocks))
		}
		for i, b := range got.Blocks {
			if fmt.Sprint(b) != fmt.Sprint(blocks[i]) {
				t.Errorf("block %d: %+v, not %+v", i, b, blocks[i])
			}
			d, raw := w.fetch(b)
			if d.Err != "" || !bytes.Equal(raw, rawKV(b.Hash, len(b.Tokens))) || d.Digest != b.Digest || d.Bytes != b.Bytes {
				t.Errorf("block %d: %+v, other bytes", i, d)
			}
		}
		st := w.p.Status()
		if st.Stores.Done != 4 || st.Fetches.Done != 4 || st.Blocks != 4 || st.HitTokens != int64(len(text)) ||
			st.MissTokens != 3 || st.Bytes != int64(len(text))*rawToken || st.Fetches.Bytes != st.Bytes || !st.Up {
			t.Errorf("status %+v", st)
		}
	})
}

// What a prompt shares with what is stored is found to the token, and at least
// its last token is left to compute.
func TestFindToTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.ready(1)
		text := tokens(1, 2*ieg.BlockTokens+50)
		w.storeText(text)
		other := append(append([]ieg.Token(nil), text[:300]...), tokens(2, 300)...)
		w.storeText(other)
		for _, c := range []struct {
			what   string
			tokens []ieg.Token
			want   int
			blocks int
		}{
			{"nothing", nil, 0, 0},
			{"one token", text[:1], 0, 0},
			{"the beginning of a block", text[:10], 9, 1},
			{"a block and no more", text[:256], 255, 1},
			{"a block and one token", text[:257], 256, 1},
			{"into the second block", text[:302], 301, 2},
			{"all", text, len(text) - 1, 3},
			{"all and more", append(append([]ieg.Token(nil), text...), 7, 7), len(text), 3},
			{"the other one", other[:400], 399, 2},
			{"a fork inside a block", append(append([]ieg.Token(nil), text[:400]...), 9, 9), 400, 2},
			{"another text", tokens(3, 600), 0, 0},
		} {
			got := w.p.Find(testRoot, c.tokens)
			if int(got.Tokens) != c.want || len(got.Blocks) != c.blocks {
				t.Errorf("%s: %d tokens in %d blocks, not %d in %d", c.what, got.Tokens, len(got.Blocks), c.want, c.blocks)
			}
		}
		if got := w.p.Find(kv.Root("model", "another"), text); got.Tokens != 0 {
			t.Errorf("another tenant finds %d tokens", got.Tokens)
		}
	})
}

func TestConfig(t *testing.T) {
	ok := Config{Open: func() (tier.Store, error) { return nil, nil }, Arena: &memoryArena{}, Size: 1, Done: func(ieg.MoveDone) {}}
	if err := ok.Validate(); err != nil || ok.Workers != 4 || ok.Depth != 256 {
		t.Errorf("%v: %+v", err, ok)
	}
	for what, bad := range map[string]func(*Config){
		"no store": func(c *Config) { c.Open = nil }, "no size": func(c *Config) { c.Size = 0 },
		"negative rate": func(c *Config) { c.WriteRate = -1 }, "negative TTL": func(c *Config) { c.TTL = -1 },
		"workers": func(c *Config) { c.Workers = 65 }, "depth": func(c *Config) { c.Depth = -1 },
		"compression": func(c *Config) { c.Compression = 3 }, "policy": func(c *Config) { c.Policy = 2 },
	} {
		c := ok
		bad(&c)
		if c.Validate() == nil {
			t.Errorf("%s: accepted", what)
		}
		if _, err := New(c); err == nil {
			t.Errorf("%s: started", what)
		}
	}
	for _, c := range []Compression{CompressAuto, CompressNone, CompressINT8} {
		if got, err := ParseCompression(c.String()); got != c || err != nil {
			t.Errorf("%v is read as %v, %v", c, got, err)
		}
	}
	if _, err := ParseCompression("zstd"); err == nil {
		t.Error("zstd is accepted")
	}
}
