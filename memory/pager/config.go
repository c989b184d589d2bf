package pager

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/tier"
)

// Arena is the memory that blocks are moved from and to; memory/tier/host has
// it. Its methods may be called from any goroutine.
type Arena interface {
	// PageBytes is the size of a page.
	PageBytes() int
	// Parts are the first n bytes of pages, in order.
	Parts(pages []ieg.Page, n int64) [][]byte
	// Digest continues a digest over b; it begins with 0. What b is cut into
	// does not matter.
	Digest(sum uint64, b []byte) uint64
	// Size is the length of n raw bytes under a codec; n is a multiple of 128
	// under CodecINT8.
	Size(c ieg.Codec, n int) int
	// Encode packs src, elements of kvType, into dst, which is
	// Size(c, len(src)) long.
	Encode(c ieg.Codec, kvType string, dst, src []byte)
}

// Compression says how raw blocks are written.
type Compression uint8

// The compressions.
const (
	// CompressAuto writes int8 once half of the tier's size is used: it costs
	// exactness, and what it buys is space.
	CompressAuto Compression = iota
	CompressNone
	CompressINT8
)

var compressionNames = [...]string{"auto", "none", "int8"}

// String is the name used in the configuration.
func (c Compression) String() string { return compressionNames[c] }

// ParseCompression reads such a name.
func ParseCompression(name string) (Compression, error) {
	for i, n := range compressionNames {
		if n == name {
			return Compression(i), nil
		}
	}
	return 0, fmt.Errorf("compression is %q, not auto, none or int8", name)
}

// Config configures a Pager.
type Config struct {
	// Open opens the store. It is called in the background, and again after
	// the store could not be used. The calls of a store must end soon after
	// their context does.
	Open  func() (tier.Store, error)
	Arena Arena

	// Size is the budget of the tier in bytes of blocks.
	Size int64
	// Compression of blocks whose root allows it (Register).
	Compression Compression
	// WriteRate bounds writing, in bytes a second, with bursts of a second or
	// a batch (64 MB), whichever is more; 0: no bound.
	WriteRate int64
	// WriteDaily bounds writing, in bytes within 24 hours, the store's own
	// overhead included; 0: no bound. From half of it on the ends of texts
	// are not written, from three quarters on neither is what follows a block
	// of less than two recent uses. It begins anew with the process.
	WriteDaily int64
	// TTL is the time after which a block is deleted, counted from when it was
	// stored, used or pinned or not: no text stays longer. 0: no limit.
	TTL time.Duration
	// HalfLife is the time after which a use counts half; 0: kv.HalfLife.
	HalfLife time.Duration
	// Policy says which blocks are deleted when there is no room.
	Policy kv.Policy

	// Workers read at once (default 4); one more writes.
	Workers int
	// Depth bounds the moves asked for and not done (default 256); further
	// ones are refused.
	Depth int

	// Done reports the end of each move, State that the tier can be used or
	// no longer, and why. Both are called by one goroutine, in order, and
	// never from inside a method of the Pager; while they wait, others do.
	Done  func(ieg.MoveDone)
	State func(up bool, why string)

	// Log gets what is given up: blocks that are wrong, stores that can't be
	// used. nil: nothing.
	Log *slog.Logger
	// Now is the node's clock; nil: the time since New.
	Now func() ieg.Time
}

// Validate fills in defaults and tells what can't be.
func (c *Config) Validate() error {
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.Depth == 0 {
		c.Depth = defaultDepth
	}
	if c.State == nil {
		c.State = func(bool, string) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if c.Now == nil {
		start := time.Now()
		c.Now = func() ieg.Time { return ieg.Time(time.Since(start)) }
	}
	var errs []error
	check := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("pager: "+format, a...))
		}
	}
	check(c.Open != nil && c.Arena != nil && c.Done != nil, "Open, Arena and Done are needed")
	check(c.Size > 0, "the size is %d bytes; it must be more than 0", c.Size)
	check(c.WriteRate >= 0 && c.WriteDaily >= 0, "the bounds of writing are %d bytes/s and %d bytes a day; 0 means none", c.WriteRate, c.WriteDaily)
	check(c.TTL >= 0 && c.HalfLife >= 0, "TTL %v, half-life %v: a time can't be negative", c.TTL, c.HalfLife)
	check(c.Workers > 0 && c.Workers <= maxWorkers, "%d workers; 1 to %d are possible", c.Workers, maxWorkers)
	check(c.Depth > 0, "the depth is %d; it must be more than 0", c.Depth)
	check(int(c.Compression) < len(compressionNames), "unknown compression %d", c.Compression)
	check(c.Policy <= kv.LRU, "unknown policy %d", c.Policy)
	return errors.Join(errs...)
}
