package tier

import (
	"context"
	"errors"

	"ieg"
)

// Errors of stores, wrapped with what happened.
var (
	// ErrMissing: the store has no such block.
	ErrMissing = errors.New("no such block")
	// ErrFull: there is no room; what is deleted makes some.
	ErrFull = errors.New("the tier is full")
	// ErrUnusable: nothing can be read or written until the store is opened
	// anew: read-only folder, I/O error, foreign files.
	ErrUnusable = errors.New("the tier can't be used")
	// ErrLocked: another process uses the folder.
	ErrLocked = errors.New("another process uses the folder")
)

// Item is a block to be stored. The parts of Data are the block's bytes in
// order, Block.Bytes together.
type Item struct {
	Block ieg.Block
	Data  [][]byte
}

// Meta is what is known of a stored block without its tokens.
type Meta struct {
	Hash, Parent, Root ieg.BlockHash
	Start, N           int32
	Codec              ieg.Codec
	Bytes              int64
	Digest             uint64
	// Stored is when it was stored, in seconds of Unix time.
	Stored int64
}

// Usage is how full a store is, in bytes.
type Usage struct {
	Blocks  int64
	Live    int64 // of blocks
	Disk    int64 // taken on the disk, space to be reclaimed included
	Free    int64 // left on the disk for anybody
	Written int64 // to the disk since it was opened, all overhead included
	// Day is what was written of late, before it was opened too: what ends the
	// process takes from it no more than what went to the disk after the last
	// Put or Delete that returned.
	Day Day
	// Lost blocks were stored and can't be had any more, found since it was
	// opened: a count, not bytes.
	Lost int64
}

// Room is what a store may still take, in bytes.
type Room struct {
	// Left is what Put may take now; below 0 less of the disk is free than the
	// store is to leave.
	Left int64
	// Dead was deleted and is not given back yet, Lag is how much of that may
	// stay so: reclaiming begins when there is more.
	Dead, Lag int64
}

// Store keeps blocks. Its methods may be called from several goroutines.
type Store interface {
	// Put stores all items, or some of them if it fails. They are durable when
	// it returns. A block that is there already is left as it is.
	Put(ctx context.Context, items []Item) error
	// Get reads a block's bytes into dst, whose parts together have at least
	// its length, and returns it with its tokens. What dst has beyond may be
	// written over.
	Get(ctx context.Context, h ieg.BlockHash, dst [][]byte) (ieg.Block, error)
	// Block returns a block with its tokens without reading its bytes.
	Block(ctx context.Context, h ieg.BlockHash) (ieg.Block, error)
	// Each calls f for every block, in no order, until f fails.
	Each(ctx context.Context, f func(Meta) error) error
	// Delete forgets blocks; unknown ones are no error. Their space is
	// reclaimed in the background.
	Delete(ctx context.Context, hs []ieg.BlockHash) error
	Usage() Usage
	Room() Room
	Close() error
}
