package kv_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"ieg"
	"ieg/memory/kv"
)

const million = 1 << 20

// chainBlocks is the length of the texts in the big index.
const chainBlocks = 64

func testRoot() ieg.BlockHash { return kv.Root("model", "tenant") }

// text is the i-th text of the benchmarks: it shares its first quarter with
// the seven others of its group.
func text(i int) []ieg.Token {
	t := make([]ieg.Token, chainBlocks*ieg.BlockTokens)
	fill := func(part []ieg.Token, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for j := range part {
			part[j] = ieg.Token(r.Uint32() >> 1)
		}
	}
	fill(t[:len(t)/4], uint64(i/8))
	fill(t[len(t)/4:], uint64(1+i)<<32)
	return t
}

// bigIndex holds at least n blocks of texts, of which it returns the number.
func bigIndex(n int) (*kv.Index, int) {
	x := kv.NewIndex(kv.IndexConfig{Seed: 1})
	texts := 0
	for ; x.Len() < n; texts++ {
		parent := testRoot()
		for j, h := range kv.Names(nil, parent, text(texts)) {
			x.Add(kv.Entry{Hash: h, Parent: parent, Root: testRoot(), Start: int32(j) * ieg.BlockTokens,
				N: ieg.BlockTokens, Bytes: 1 << 20, Heat: 1})
			parent = h
		}
	}
	return x, texts
}

func BenchmarkWalk(b *testing.B) {
	x, texts := bigIndex(million)
	prompts := make([][]ieg.Token, 256)
	r := rand.New(rand.NewPCG(2, 2))
	for i := range prompts {
		prompts[i] = text(r.IntN(texts))
	}
	path := make([]kv.Ref, 0, chainBlocks)
	b.ResetTimer()
	for i := range b.N {
		if path, _ = x.Walk(path[:0], testRoot(), prompts[i%len(prompts)]); len(path) != chainBlocks {
			b.Fatalf("%d blocks found", len(path))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chainBlocks), "ns/block")
}

// BenchmarkAdd adds blocks by chance to chains and reports the longest single
// call, with what the machine does meanwhile, and the memory a block takes.
func BenchmarkAdd(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := kv.NewIndex(kv.IndexConfig{Seed: 1})
	var longest time.Duration
	e := kv.Entry{Root: testRoot(), N: ieg.BlockTokens, Bytes: 1 << 20, Heat: 1}
	r := rand.New(rand.NewPCG(3, 3))
	for i := range b.N {
		if i%chainBlocks == 0 {
			e.Hash, e.Start = e.Root, -ieg.BlockTokens
		}
		e.Parent, e.Start = e.Hash, e.Start+ieg.BlockTokens
		binary.LittleEndian.PutUint64(e.Hash[:], r.Uint64())
		binary.LittleEndian.PutUint64(e.Hash[8:], r.Uint64())
		at := time.Now()
		x.Add(e)
		longest = max(longest, time.Since(at))
	}
	b.StopTimer()
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(longest.Nanoseconds()), "max-ns")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(x.Len()), "B/block")
}

func TestIndexBytesPerBlock(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x, _ := bigIndex(million / 32)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if per := float64(after.HeapAlloc-before.HeapAlloc) / float64(x.Len()); per > 80 {
		t.Errorf("a block takes %.1f bytes", per)
	}
}

func BenchmarkVictim(b *testing.B) {
	x, _ := bigIndex(million)
	b.ResetTimer()
	for range b.N {
		x.Victim(1, nil)
	}
}

func BenchmarkTouch(b *testing.B) {
	x, texts := bigIndex(million)
	ends := make([]kv.Ref, 1024)
	r := rand.New(rand.NewPCG(2, 2))
	for i := range ends {
		chain := kv.Names(nil, testRoot(), text(r.IntN(texts)))
		ends[i], _ = x.Get(chain[len(chain)-1])
	}
	b.ResetTimer()
	for i := range b.N {
		x.Touch(ends[i%len(ends)], ieg.Time(i)*1e6)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chainBlocks), "ns/block")
}

// BenchmarkFollow is Walk without the hashing.
func BenchmarkFollow(b *testing.B) {
	x, texts := bigIndex(million)
	prompts := make([][]ieg.BlockHash, 1024)
	r := rand.New(rand.NewPCG(2, 2))
	for i := range prompts {
		prompts[i] = kv.Names(nil, testRoot(), text(r.IntN(texts)))
	}
	path := make([]kv.Ref, 0, chainBlocks)
	b.ResetTimer()
	for i := range b.N {
		path = x.Follow(path[:0], prompts[i%len(prompts)])
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*chainBlocks), "ns/block")
}
