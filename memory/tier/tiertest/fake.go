package tiertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ieg"
	"ieg/memory/tier"
)

// Fake is a store in memory. What it holds outlives Close, and is there again
// after Reopen.
type Fake struct {
	// Size is its room for blocks, in bytes.
	Size int64
	// Lost is what Usage says of lost blocks.
	Lost int64

	mu     sync.Mutex
	open   bool
	blocks map[ieg.BlockHash]kept
	live   int64
	wrote  int64
	day    tier.Day
}

type kept struct {
	block ieg.Block
	data  []byte
}

// NewFake is an open store with room for 1 GiB.
func NewFake() *Fake {
	return &Fake{Size: fakeBytes, open: true, blocks: map[ieg.BlockHash]kept{}}
}

// Reopen opens the store after Close.
func (f *Fake) Reopen() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open {
		return tier.ErrLocked
	}
	f.open = true
	return nil
}

// enter locks the store for a call.
func (f *Fake) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f.mu.Lock()
	if !f.open {
		f.mu.Unlock()
		return fmt.Errorf("%w: it is closed", tier.ErrUnusable)
	}
	return nil
}

// Put stores copies of the items.
func (f *Fake) Put(ctx context.Context, items []tier.Item) error {
	for i := range items {
		if err := check(&items[i]); err != nil {
			return err
		}
	}
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for _, it := range items {
		if _, known := f.blocks[it.Block.Hash]; known {
			continue
		}
		if f.live+it.Block.Bytes > f.Size {
			return fmt.Errorf("%w: %d of %d bytes are taken", tier.ErrFull, f.live, f.Size)
		}
		k := kept{it.Block, slices.Concat(it.Data...)}
		k.block.Tokens = slices.Clone(it.Block.Tokens)
		f.blocks[it.Block.Hash] = k
		f.live += it.Block.Bytes
		f.wrote += it.Block.Bytes
		f.day.Add(it.Block.Bytes, time.Now())
	}
	return nil
}

func check(it *tier.Item) error {
	var n int64
	for _, p := range it.Data {
		n += int64(len(p))
	}
	b := &it.Block
	switch {
	case n != b.Bytes || n == 0:
		return fmt.Errorf("block %v: %d bytes of %d", b.Hash, n, b.Bytes)
	case len(b.Tokens) == 0 || len(b.Tokens) > ieg.BlockTokens:
		return fmt.Errorf("block %v: %d tokens", b.Hash, len(b.Tokens))
	}
	return nil
}

// Get reads a block.
func (f *Fake) Get(ctx context.Context, h ieg.BlockHash, dst [][]byte) (ieg.Block, error) {
	k, err := f.find(ctx, h)
	if err != nil {
		return ieg.Block{}, err
	}
	data := k.data
	for _, p := range dst {
		data = data[copy(p, data):]
	}
	if len(data) > 0 {
		return ieg.Block{}, fmt.Errorf("block %v: no room for its last %d bytes", h, len(data))
	}
	return k.block, nil
}

// Block is a block without its bytes.
func (f *Fake) Block(ctx context.Context, h ieg.BlockHash) (ieg.Block, error) {
	k, err := f.find(ctx, h)
	return k.block, err
}

func (f *Fake) find(ctx context.Context, h ieg.BlockHash) (kept, error) {
	if err := f.enter(ctx); err != nil {
		return kept{}, err
	}
	defer f.mu.Unlock()
	k, known := f.blocks[h]
	if !known {
		return kept{}, fmt.Errorf("%w: %v", tier.ErrMissing, h)
	}
	k.block.Tokens = slices.Clone(k.block.Tokens)
	return k, nil
}

// Each calls fn for every block that is there when it begins, in the order of
// their names.
func (f *Fake) Each(ctx context.Context, fn func(tier.Meta) error) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	var all []tier.Meta
	for _, k := range f.blocks {
		b := &k.block
		all = append(all, tier.Meta{
			Hash: b.Hash, Parent: b.Parent, Root: b.Root, Start: b.Start, N: int32(len(b.Tokens)),
			Codec: b.Codec, Bytes: b.Bytes, Digest: b.Digest, Stored: 1,
		})
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b tier.Meta) int { return slices.Compare(a.Hash[:], b.Hash[:]) })
	for _, m := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

// Delete forgets blocks.
func (f *Fake) Delete(ctx context.Context, hs []ieg.BlockHash) error {
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for _, h := range hs {
		if k, known := f.blocks[h]; known {
			f.live -= k.block.Bytes
			delete(f.blocks, h)
		}
	}
	return nil
}

// SetSize changes its size, also while others use it.
func (f *Fake) SetSize(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Size = n
}

// Usage is how full it is.
func (f *Fake) Usage() tier.Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tier.Usage{Blocks: int64(len(f.blocks)), Live: f.live, Disk: f.live, Free: f.Size - f.live, Written: f.wrote, Day: f.day, Lost: f.Lost}
}

// Room is what is left of its size: what is deleted is there again at once.
func (f *Fake) Room() tier.Room {
	f.mu.Lock()
	defer f.mu.Unlock()
	return tier.Room{Left: f.Size - f.live}
}

// Close ends it until Reopen.
func (f *Fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = false
	return nil
}

// Corrupt changes a byte of a stored block.
func (f *Fake) Corrupt(h ieg.BlockHash, at int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blocks[h].data[at] ^= 1
}
