package kv_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/memory/kv"
)

// indexTwin is an Index without structure: a map of entries, and the order in
// which they were added or touched.
type indexTwin struct {
	blocks map[ieg.BlockHash]*twinBlock
	order  int
}

type twinBlock struct {
	kv.Entry
	order int
}

func (w *indexTwin) add(e kv.Entry) {
	w.order++
	w.blocks[e.Hash] = &twinBlock{Entry: e, order: w.order}
}

func (w *indexTwin) children(h ieg.BlockHash) []ieg.BlockHash {
	var list []*twinBlock
	for _, b := range w.blocks {
		if b.Parent == h {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *twinBlock) int { return b.order - a.order })
	var out []ieg.BlockHash
	for _, b := range list {
		out = append(out, b.Hash)
	}
	return out
}

// coarse is a time as the index keeps it.
func coarse(t ieg.Time) ieg.Time { return t / (1 << 26) * (1 << 26) }

func (w *indexTwin) touch(h ieg.BlockHash, now ieg.Time, half time.Duration) {
	if b := w.blocks[h]; b != nil {
		w.order++
		b.order = w.order
	}
	for b := w.blocks[h]; b != nil; b = w.blocks[b.Parent] {
		b.Heat = float32(float64(b.Heat)*math.Exp2(-float64(coarse(now)-b.Used)/float64(half))) + 1
		b.Used = coarse(now)
	}
}

func (w *indexTwin) least(now ieg.Time, policy kv.Policy, half time.Duration) (least float64, any bool) {
	parents := map[ieg.BlockHash]bool{}
	for _, b := range w.blocks {
		parents[b.Parent] = true
	}
	least = math.Inf(1)
	for _, b := range w.blocks {
		if !parents[b.Hash] && !b.Pinned {
			any = true
			least = min(least, w.worth(b, now, policy, half))
		}
	}
	return least, any
}

func (w *indexTwin) worth(b *twinBlock, now ieg.Time, policy kv.Policy, half time.Duration) float64 {
	if policy == kv.LRU {
		return float64(b.Used)
	}
	heat := float64(b.Heat) * math.Exp2(-float64(coarse(now)-b.Used)/float64(half))
	return heat * math.Ln2 / half.Seconds() * float64(b.N) / float64(b.Bytes)
}

type indexRun struct {
	x      *kv.Index
	w      *indexTwin
	r      *rand.Rand
	policy kv.Policy
	half   time.Duration
	now    ieg.Time
	hashes []ieg.BlockHash // of all blocks ever made, with how they were made
	made   map[ieg.BlockHash]kv.Entry
	most   int
}

func (r *indexRun) name() (h ieg.BlockHash) {
	binary.LittleEndian.PutUint64(h[:], r.r.Uint64())
	h[15] = 1
	return h
}

// invent makes an entry that continues a root or any full block ever made, be
// it here or not.
func (r *indexRun) invent() kv.Entry {
	e := kv.Entry{Hash: r.name(), N: ieg.BlockTokens, Bytes: 1 + r.r.Int64N(1e6), Heat: 1, Used: coarse(r.now)}
	if r.r.IntN(4) == 0 {
		e.N = 1 + r.r.Int32N(ieg.BlockTokens-1)
	}
	e.Root = ieg.BlockHash{14: byte(1 + r.r.IntN(3))}
	e.Parent = e.Root
	if len(r.hashes) > 0 && r.r.IntN(10) > 0 {
		p := r.made[r.hashes[len(r.hashes)-1-r.r.IntN(min(len(r.hashes), 100))]]
		if p.N == ieg.BlockTokens {
			e.Parent, e.Root, e.Start = p.Hash, p.Root, p.Start+ieg.BlockTokens
		}
	}
	r.hashes = append(r.hashes, e.Hash)
	r.made[e.Hash] = e
	return e
}

func (r *indexRun) pick() ieg.BlockHash { return r.hashes[r.r.IntN(len(r.hashes))] }

func (r *indexRun) step() error {
	r.now += ieg.Time(r.r.Int64N(int64(time.Second)))
	op := r.r.IntN(10)
	switch {
	case op < 3 || len(r.hashes) == 0: // a block just made waits, sometimes, for its children
		e := r.invent()
		if r.r.IntN(4) > 0 {
			return r.add(e)
		}
	case op < 5:
		e := r.made[r.pick()]
		e.Used = coarse(r.now)
		return r.add(e)
	case op == 5:
		h := r.pick()
		if ref, ok := r.x.Get(h); ok {
			r.x.Remove(ref)
			delete(r.w.blocks, h)
		}
	case op == 6:
		h := r.pick()
		if ref, ok := r.x.Get(h); ok {
			r.x.Touch(ref, r.now)
			r.w.touch(h, r.now, r.half)
		}
	case op == 7:
		h, on := r.pick(), r.r.IntN(4) == 0
		if ref, ok := r.x.Get(h); ok {
			r.x.Pin(ref, on)
			r.w.blocks[h].Pinned = on
		}
	case op == 8:
		return r.evict()
	case op == 9:
		return r.look()
	}
	return nil
}

func (r *indexRun) add(e kv.Entry) error {
	_, known := r.w.blocks[e.Hash]
	ref, added := r.x.Add(e)
	if added == known || ref == kv.NoRef {
		return fmt.Errorf("add %v: added %v (%d), known %v", e.Hash, added, ref, known)
	}
	if added {
		r.w.add(e)
	}
	return nil
}

// evict gives up blocks until there are few enough.
func (r *indexRun) evict() error {
	for first := true; first || r.x.Len() > r.most; first = false {
		ref := r.x.Victim(r.now, nil)
		least, any := r.w.least(r.now, r.policy, r.half)
		if any != (ref != kv.NoRef) {
			return fmt.Errorf("victim %d, there is one: %v", ref, any)
		}
		if !any {
			return nil
		}
		b := r.w.blocks[r.x.Entry(ref).Hash]
		if got := r.w.worth(b, r.now, r.policy, r.half); math.Abs(got-least) > 1e-6*math.Abs(least) {
			return fmt.Errorf("the victim is worth %g, the least is %g", got, least)
		}
		if r.x.Len() > r.most/2 {
			r.x.Remove(ref)
			delete(r.w.blocks, b.Hash)
		}
	}
	return nil
}

func (r *indexRun) look() error {
	h := r.pick()
	b, known := r.w.blocks[h]
	ref, ok := r.x.Get(h)
	if ok != known {
		return fmt.Errorf("get %v: %v, not %v", h, ok, known)
	}
	if known {
		got, want := r.x.Entry(ref), b.Entry
		if r.w.blocks[want.Parent] != nil != (r.x.Parent(ref) != kv.NoRef) {
			return fmt.Errorf("the parent of %v is %d", h, r.x.Parent(ref))
		}
		if got != want {
			return fmt.Errorf("entry %+v, not %+v", got, want)
		}
	}
	var kids []ieg.BlockHash
	for c := range r.x.Children(h) {
		kids = append(kids, r.x.Entry(c).Hash)
	}
	if want := r.w.children(h); !slices.Equal(kids, want) {
		return fmt.Errorf("children of %v: %v, not %v", h, kids, want)
	}
	return nil
}

func (r *indexRun) sums() error {
	var tokens, bytes int64
	for _, b := range r.w.blocks {
		tokens += int64(b.N)
		bytes += b.Bytes
	}
	if r.x.Len() != len(r.w.blocks) || r.x.Tokens() != tokens || r.x.Bytes() != bytes {
		return fmt.Errorf("%d blocks, %d tokens, %d bytes, not %d, %d, %d",
			r.x.Len(), r.x.Tokens(), r.x.Bytes(), len(r.w.blocks), tokens, bytes)
	}
	return r.x.Check()
}

func TestIndexAgainstTwin(t *testing.T) {
	for seed := range uint64(10) {
		r := &indexRun{
			w: &indexTwin{blocks: map[ieg.BlockHash]*twinBlock{}}, made: map[ieg.BlockHash]kv.Entry{},
			r: rand.New(rand.NewPCG(seed, 0)), policy: kv.Policy(seed % 2), half: time.Minute, most: 200,
		}
		r.x = kv.NewIndex(kv.IndexConfig{HalfLife: r.half, Policy: r.policy, Seed: seed})
		for i := range 10_000 {
			err := r.step()
			if err == nil && i%100 == 0 {
				err = r.sums()
			}
			if err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
	}
}
