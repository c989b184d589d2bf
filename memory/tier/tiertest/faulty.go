package tiertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"ieg"
	"ieg/memory/tier"
)

// Faults are chances between 0 and 1, each for one call.
type Faults struct {
	Seed uint64
	// Full and Unusable fail a call with the error of that name: Put after
	// some of its items were stored; Unusable also Get, Block and Delete.
	Full, Unusable float64
	// Short leaves the end of what Get reads undone, Flip changes one bit of
	// it; neither is told.
	Short, Flip float64
	// Slow lets a call wait for Delay.
	Slow  float64
	Delay time.Duration
}

// Faulty lets a store fail. The same calls in the same order meet the same
// faults.
type Faulty struct {
	tier.Store

	mu     sync.Mutex
	faults Faults
	rand   *rand.Rand
}

// NewFaulty wraps a store.
func NewFaulty(s tier.Store, f Faults) *Faulty {
	return &Faulty{Store: s, faults: f, rand: rand.New(rand.NewPCG(f.Seed, 0))}
}

// Set changes the chances from the next call on; the seed stays.
func (f *Faulty) Set(faults Faults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// fate is what a call will meet. All is drawn for each call, so that a chance
// that is changed moves no other fault.
type fate struct {
	full, unusable, short, flip bool
	delay                       time.Duration
	where                       float64 // [0, 1): in the items, in the bytes
	bit                         uint8
}

func (f *Faulty) draw() (t fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	chance := func(p float64) bool { return f.rand.Float64() < p }
	t.full = chance(f.faults.Full)
	t.unusable = chance(f.faults.Unusable)
	t.short = chance(f.faults.Short)
	t.flip = chance(f.faults.Flip)
	if chance(f.faults.Slow) {
		t.delay = f.faults.Delay
	}
	t.where = f.rand.Float64()
	t.bit = uint8(f.rand.IntN(8))
	return t
}

func (t *fate) wait(ctx context.Context) error {
	if t.delay <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(t.delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

var errInjected = fmt.Errorf("injected")

// begin draws the fate of a call and lets it wait.
func (f *Faulty) begin(ctx context.Context) (fate, error) {
	t := f.draw()
	if err := t.wait(ctx); err != nil {
		return t, err
	}
	if t.unusable {
		return t, fmt.Errorf("%w: %w", tier.ErrUnusable, errInjected)
	}
	return t, nil
}

// Put stores the items, or some.
func (f *Faulty) Put(ctx context.Context, items []tier.Item) error {
	t, err := f.begin(ctx)
	if err == nil && t.full {
		err = fmt.Errorf("%w: %w", tier.ErrFull, errInjected)
	}
	if err == nil {
		return f.Store.Put(ctx, items)
	}
	if n := int(t.where * float64(len(items))); n > 0 && ctx.Err() == nil {
		if first := f.Store.Put(ctx, items[:n]); first != nil {
			return first
		}
	}
	return err
}

// Get reads a block, or something like it.
func (f *Faulty) Get(ctx context.Context, h ieg.BlockHash, dst [][]byte) (ieg.Block, error) {
	t, err := f.begin(ctx)
	if err != nil {
		return ieg.Block{}, err
	}
	b, err := f.Store.Get(ctx, h, dst)
	if err != nil {
		return b, err
	}
	at := int64(t.where * float64(b.Bytes))
	if t.short {
		edit(dst, at, b.Bytes, func(p []byte) { clear(p) })
	}
	if t.flip {
		edit(dst, at, at+1, func(p []byte) { p[0] ^= 1 << t.bit })
	}
	return b, nil
}

// edit calls f for bytes [from, to) of the parts.
func edit(parts [][]byte, from, to int64, f func([]byte)) {
	for _, p := range parts {
		n := int64(len(p))
		if a, b := max(from, 0), min(to, n); a < b {
			f(p[a:b])
		}
		from, to = from-n, to-n
	}
}

// Block is a block without its bytes.
func (f *Faulty) Block(ctx context.Context, h ieg.BlockHash) (ieg.Block, error) {
	if _, err := f.begin(ctx); err != nil {
		return ieg.Block{}, err
	}
	return f.Store.Block(ctx, h)
}

// Delete forgets blocks.
func (f *Faulty) Delete(ctx context.Context, hs []ieg.BlockHash) error {
	if _, err := f.begin(ctx); err != nil {
		return err
	}
	return f.Store.Delete(ctx, hs)
}
