package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/bench/report"
	"ieg/memory/kv"
	"ieg/memory/pager"
	"ieg/memory/tier"
	"ieg/memory/tier/nvme"
)

// indexTextBlocks is the length of the texts in the big index.
const indexTextBlocks = 64

// indexFills is how often a round fills the same index: an addition's time is
// the median of its own, so that a moment in which the host took the processor
// away is no pause of the index, and one that it makes each time is.
const indexFills = 3

// kvIndex: the prefix index with a million blocks.
func kvIndex(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "kv-index-lookup", Unit: "µs", Bound: 1, Better: report.Lower, Against: "the clock, a block, hashing its tokens included"},
		{Name: "kv-index-bytes", Unit: "B", Bound: 100, Better: report.Lower, Against: "memory of a block"},
		{Name: "kv-index-pause", Unit: "ms", Bound: 1, Better: report.Lower, Against: "processor time, the longest of a million additions, each the median of three fills"},
		{Name: "kv-index-start", Unit: "s", Bound: 2, Better: report.Lower, Against: "the clock, from opening the NVMe tier until all is known"},
	}
	n, stored := 1<<20, 1<<18
	switch {
	case e.Tiny:
		n, stored = 1<<14, 1<<14
	case e.Full:
		stored = n
	}
	var look, size, longest, start []float64
	for range e.Rounds {
		s, b := bigIndex(n)
		size = append(size, b)
		look = append(look, s.lookup()*1e6)
	}
	worst := time.Duration(0)
	for range e.Rounds {
		pause, single := longestAdd(n)
		longest, worst = append(longest, pause.Seconds()*1e3), max(worst, single)
	}
	rows[2].Detail = fmt.Sprintf("%.2f ms in a single fill, with what else the host does", worst.Seconds()*1e3)
	rows[0].Measure(look)
	alone := hashAlone() * 1e6
	rows[0].Detail = fmt.Sprintf("SHA-256 of as many bytes alone takes %.3f µs", alone)
	if !rows[0].OK && alone >= boundShare*rows[0].Value {
		rows[0].BoundBy = "compute: SHA-256 of a block's tokens"
	}
	rows[1].Measure(size)
	rows[2].Measure(longest)
	s := &kvStore{dir: filepath.Join(e.dir, "kv-index"), done: make(chan ieg.MoveDone, 1)}
	defer os.RemoveAll(s.dir)
	var err error
	if s.arena, err = newArena(arenaPageBytes); err == nil {
		err = fillStore(ctx, s.dir, stored)
	}
	for range e.Rounds {
		if err != nil {
			return rows, err
		}
		var took time.Duration
		took, err = s.open(ctx, pager.CompressNone)
		start = append(start, took.Seconds()*float64(n/stored))
		if got := s.pager.Status().Blocks; err == nil && got != stored {
			err = fmt.Errorf("%d blocks are known, %d were stored", got, stored)
		}
		err = errors.Join(err, s.close())
	}
	rows[3].Measure(start)
	rows[3].Detail = fmt.Sprintf("%d blocks stored, so that the time counts %d times", stored, n/stored)
	return rows, err
}

// filled is an index of texts, which seeds tell.
type filled struct {
	x     *kv.Index
	texts int
}

// bigIndex makes an index of at least n blocks, and tells the memory of one.
func bigIndex(n int) (filled, float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := filled{x: kv.NewIndex(kv.IndexConfig{Seed: 1})}
	for ; f.x.Len() < n; f.texts++ {
		parent := indexRoot()
		for i, h := range kv.Names(nil, parent, indexText(f.texts)) {
			f.x.Add(kv.Entry{Hash: h, Parent: parent, Root: indexRoot(), Start: int32(i) * ieg.BlockTokens,
				N: ieg.BlockTokens, Bytes: 1 << 20, Heat: 1})
			parent = h
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return f, float64(after.HeapAlloc-before.HeapAlloc) / float64(f.x.Len())
}

// hashAlone is the seconds of a block's hash, the median of some.
func hashAlone() float64 {
	const times = 1000
	var buf [16 + 3*ieg.BlockTokens + 1]byte
	var took []float64
	for range 101 {
		took = append(took, timed(func() {
			for range times {
				sum := sha256.Sum256(buf[:])
				copy(buf[:], sum[:]) // the next one needs this one, as in a chain
			}
		}).Seconds()/times)
	}
	return report.Median(took)
}

func indexRoot() ieg.BlockHash { return kv.Root("bench", "tenant") }

// indexText is the i-th text: it shares its first quarter with the seven
// others of its group.
func indexText(i int) []ieg.Token {
	t := make([]ieg.Token, indexTextBlocks*ieg.BlockTokens)
	fill := func(part []ieg.Token, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		for k := range part {
			part[k] = ieg.Token(r.Uint32() >> 14) // of a large vocabulary
		}
	}
	fill(t[:len(t)/4], uint64(i/8))
	fill(t[len(t)/4:], uint64(1+i)<<32)
	return t
}

// lookup is the seconds of a block when texts that are there are walked.
func (f filled) lookup() float64 {
	const prompts = 256
	r := rand.New(rand.NewPCG(2, 2))
	var took time.Duration
	var path []kv.Ref
	found := 0
	for range prompts {
		text := indexText(r.IntN(f.texts))
		began := time.Now()
		path, _ = f.x.Walk(path[:0], indexRoot(), text)
		took += time.Since(began)
		found += len(path)
	}
	return took.Seconds() / float64(found)
}

// longestAdd adds n blocks one by one, indexFills times, and tells the longest
// addition in processor time: by the medians, and of all fills.
func longestAdd(n int) (median, single time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var fills [indexFills][]time.Duration
	for f := range fills {
		fills[f] = make([]time.Duration, n)
		x := kv.NewIndex(kv.IndexConfig{Seed: 1})
		r := rand.New(rand.NewPCG(3, 3))
		e := kv.Entry{Root: indexRoot(), N: ieg.BlockTokens, Bytes: 1 << 20, Heat: 1}
		for i := range n {
			nextEntry(&e, i, r)
			spent := threadTime()
			x.Add(e)
			fills[f][i] = threadTime() - spent
		}
		single = max(single, slices.Max(fills[f]))
	}
	for i := range n {
		a, b, c := fills[0][i], fills[1][i], fills[2][i]
		median = max(median, max(min(a, b), min(max(a, b), c)))
	}
	return median, single
}

// threadTime is the processor time of this thread.
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// nextEntry makes e the next block of its text, or the first of another.
func nextEntry(e *kv.Entry, i int, r *rand.Rand) {
	if i%indexTextBlocks == 0 {
		e.Hash, e.Start = e.Root, -ieg.BlockTokens
	}
	e.Parent, e.Start = e.Hash, e.Start+ieg.BlockTokens
	binary.LittleEndian.PutUint64(e.Hash[:], r.Uint64())
	binary.LittleEndian.PutUint64(e.Hash[8:], r.Uint64())
}

// fillStore stores n blocks of one byte each: all but their bytes is as of
// large ones.
func fillStore(ctx context.Context, dir string, n int) error {
	s, err := nvme.Open(nvme.Config{Dir: dir, Size: 2 * storeBytes})
	if err != nil {
		return err
	}
	defer s.Close()
	tokens, data := make([]ieg.Token, ieg.BlockTokens), [][]byte{{1}}
	r := rand.New(rand.NewPCG(4, 4))
	e := kv.Entry{Root: indexRoot()}
	const batch = 256
	for i := 0; i < n; i += batch {
		items := make([]tier.Item, 0, batch)
		for k := i; k < min(i+batch, n); k++ {
			nextEntry(&e, k, r)
			items = append(items, tier.Item{Data: data, Block: ieg.Block{
				Hash: e.Hash, Parent: e.Parent, Root: e.Root, Start: e.Start, Tokens: tokens, Bytes: 1,
			}})
		}
		if err := s.Put(ctx, items); err != nil {
			return err
		}
	}
	return nil
}
