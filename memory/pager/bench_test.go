package pager

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// listed is a store that only lists what it holds.
type listed struct {
	tier.Store
	metas []tier.Meta
}

func (l *listed) Usage() tier.Usage { return tier.Usage{} }
func (l *listed) Room() tier.Room   { return tier.Room{Left: 1 << 40} }
func (l *listed) Close() error      { return nil }
func (l *listed) Each(_ context.Context, f func(tier.Meta) error) error {
	for i := range l.metas {
		if err := f(l.metas[i]); err != nil {
			return err
		}
	}
	return nil
}

const textBlocks = 64

// millionMetas are those of texts of 64 blocks, in no order; the first text's
// tokens come with them.
func millionMetas() ([]tier.Meta, []ieg.Token) {
	r := rand.New(rand.NewPCG(1, 1))
	first := tokens(1, textBlocks*ieg.BlockTokens)
	names := kv.Names(nil, testRoot, first)
	var metas []tier.Meta
	for i := range 1 << 20 {
		m := tier.Meta{Root: testRoot, Parent: testRoot, Start: int32(i%textBlocks) * ieg.BlockTokens, N: ieg.BlockTokens, Bytes: 1 << 20, Stored: 1}
		if i < textBlocks {
			m.Hash = names[i]
		} else {
			for j := range m.Hash {
				m.Hash[j] = byte(r.Uint32())
			}
		}
		if i%textBlocks > 0 {
			m.Parent = metas[i-1].Hash
		}
		metas = append(metas, m)
	}
	r.Shuffle(len(metas), func(i, j int) { metas[i], metas[j] = metas[j], metas[i] })
	return metas, first
}

func startListed(b *testing.B, metas []tier.Meta) *Pager {
	up := make(chan struct{})
	p, err := New(Config{
		Open: func() (tier.Store, error) { return &listed{metas: metas}, nil }, Arena: &memoryArena{},
		Size: 1 << 50, Done: func(ieg.MoveDone) {}, State: func(bool, string) { close(up) },
	})
	if err != nil {
		b.Fatal(err)
	}
	<-up
	return p
}

// BenchmarkStart is the time until 1 M blocks of a store are known, and what
// they take in memory.
func BenchmarkStart(b *testing.B) {
	metas, _ := millionMetas()
	var before, after runtime.MemStats
	for range b.N {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		p := startListed(b, metas)
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := p.Status().Blocks; n != len(metas) {
			b.Fatalf("%d blocks", n)
		}
		p.Close(context.Background())
		b.StartTimer()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(metas)), "B/block")
}

func BenchmarkFind(b *testing.B) {
	metas, prompt := millionMetas()
	p := startListed(b, metas)
	defer p.Close(context.Background())
	b.ResetTimer()
	for range b.N {
		if got := p.Find(testRoot, prompt); len(got.Blocks) != textBlocks {
			b.Fatalf("%d blocks", len(got.Blocks))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*textBlocks), "ns/block")
}

// Many may ask while others move; for the race detector.
func TestConcurrent(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Size = 8 * 50 * rawToken })
	w.ready(1)
	w.fault.Set(tiertest.Faults{Seed: 1, Full: 0.05, Flip: 0.05, Short: 0.05})
	var all sync.WaitGroup
	for g := range uint64(4) {
		blocks, pages := make([]ieg.Block, 10), make([][]ieg.Page, 10)
		for i := range blocks {
			blocks[i], pages[i] = w.block(testRoot, 0, tokens(100*g+uint64(i), 50))
		}
		into := w.free[:1:1]
		w.free = w.free[1:]
		all.Go(func() {
			id := ieg.MoveID(1000 * (g + 1))
			move := func(kind ieg.MoveKind, b ieg.Block, pages []ieg.Page) ieg.MoveDone {
				id++
				w.p.Move(ieg.Move{ID: id, Kind: kind, Block: b, Pages: pages})
				return w.wait(id)
			}
			for i := range blocks {
				move(ieg.MoveStore, blocks[i], pages[i])
				w.p.Register(testRoot, Root{TokenSeconds: float64(i)})
				for _, b := range w.p.Find(testRoot, append(blocks[i].Tokens[:50:50], 1)).Blocks {
					w.p.Pin(b.Hash, i%2 == 0)
					move(ieg.MoveFetch, b, into)
				}
				if len(w.p.Tree(3)) > 3 || w.p.Status().Bytes > 8*50*rawToken {
					t.Error("more than there is room for")
				}
			}
		})
	}
	all.Wait()
	if st := w.p.Status(); st.InFlight != 0 || st.Stores.Done+st.Stores.Failed != 40 || st.Stores.Done == 0 {
		t.Errorf("status %+v", st)
	}
}
