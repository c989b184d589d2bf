package host

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/cgo/mem"
	"ieg/memory/codec"
)

// Config describes an arena.
type Config struct {
	// Bytes is the budget. The arena takes whole pages of it; memory is taken
	// from the host when it is first used.
	Bytes int64
	// PageBytes is the size of a page: a power of two, from 4 KiB to 64 MiB.
	// 0: DefaultPageBytes. A block fills pages of its own, so half a page is
	// lost per block.
	PageBytes int
	// Lock keeps the arena from being swapped out, as far as RLIMIT_MEMLOCK
	// allows. Huge asks for huge pages. What could not be had is in Notes.
	Lock, Huge bool
}

// Validate says what is wrong with a configuration on this host.
func (c Config) Validate() error {
	total, err := hostBytes()
	if err != nil {
		return err
	}
	return c.fits(total)
}

func (c Config) fits(total int64) error {
	p := int64(c.pageBytes())
	switch {
	case p < minPageBytes || p > maxPageBytes || p&(p-1) != 0:
		return fmt.Errorf("pages of %d bytes: want a power of two from %d to %d", p, minPageBytes, maxPageBytes)
	case c.Bytes < p:
		return fmt.Errorf("an arena of %d bytes holds no page of %d: raise kv.host", c.Bytes, p)
	case c.Bytes > total:
		return fmt.Errorf("the arena of %s does not fit into %s of memory: lower kv.host", gib(c.Bytes), gib(total))
	case c.Bytes/p > maxPages:
		return fmt.Errorf("an arena of %d pages; at most %d", c.Bytes/p, maxPages)
	}
	return nil
}

func (c Config) pageBytes() int {
	if c.PageBytes == 0 {
		return DefaultPageBytes
	}
	return c.PageBytes
}

// hostBytes is the memory of this host.
func hostBytes() (int64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("read the size of memory: %w", err)
	}
	return int64(info.Totalram) * int64(info.Unit), nil
}

func gib(n int64) string { return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30)) }

// Arena is pages of memory shared between processes.
type Arena struct {
	mem       *mem.Map
	pageBytes int
	pages     int

	mu     sync.Mutex
	pinned bool     // by CUDA, in this process
	notes  []string // of RegisterCUDA
}

// New makes the node's arena.
func New(c Config) (*Arena, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p := int64(c.pageBytes())
	m, err := mem.Create("ieg arena", c.Bytes/p*p, mem.Options{Huge: c.Huge, Lock: c.Lock})
	if err != nil {
		return nil, fmt.Errorf("make the arena: %w", err)
	}
	return &Arena{mem: m, pageBytes: int(p), pages: int(c.Bytes / p)}, nil
}

// Open maps the node's arena in a child, given what the node's File, Bytes and
// PageBytes are. The descriptor is the arena's from then on; after an error it
// is the caller's.
func Open(fd uintptr, bytes int64, pageBytes int) (*Arena, error) {
	p := int64(pageBytes)
	if p < minPageBytes || p > maxPageBytes || p&(p-1) != 0 || bytes < p || bytes%p != 0 || bytes/p > maxPages {
		return nil, fmt.Errorf("no arena has %d bytes in pages of %d", bytes, pageBytes)
	}
	m, err := mem.Open(fd, bytes)
	if err != nil {
		return nil, fmt.Errorf("map the arena: %w", err)
	}
	return &Arena{mem: m, pageBytes: pageBytes, pages: int(bytes / p)}, nil
}

// Pages is the number of pages.
func (a *Arena) Pages() int { return a.pages }

// PageBytes is the size of a page.
func (a *Arena) PageBytes() int { return a.pageBytes }

// Bytes is the size of the arena: Pages × PageBytes.
func (a *Arena) Bytes() int64 { return int64(a.pages) * int64(a.pageBytes) }

// File is the arena as a file, to be handed to children. Don't close it.
func (a *Arena) File() *os.File { return a.mem.File() }

// Warm makes this process ready to use n pages from first on, without changing
// them. Where that can't be done they are slower when they are first used.
func (a *Arena) Warm(first ieg.Page, n int) {
	at, end := int(first)*a.pageBytes, (int(first)+n)*a.pageBytes
	if b := a.mem.Bytes(); at >= 0 && at < end && end <= len(b) {
		_ = unix.Madvise(b[at:end], unix.MADV_POPULATE_WRITE)
	}
}

// Notes say in plain words what was asked for and is not there, and what to
// do about it.
func (a *Arena) Notes() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Concat(a.mem.Notes(), a.notes)
}

// Page is the memory of a page, valid until the process ends. It panics if
// there is no such page.
func (a *Arena) Page(p ieg.Page) []byte {
	if int64(p) >= int64(a.pages) {
		panic(fmt.Sprintf("host: page %d of an arena of %d", p, a.pages))
	}
	at := int(p) * a.pageBytes
	return a.mem.Bytes()[at : at+a.pageBytes : at+a.pageBytes]
}

// Parts is the memory of the first n bytes of an extent that fills pages in
// order: a part per page, the last one shorter. It panics if the pages hold
// less.
func (a *Arena) Parts(pages []ieg.Page, n int64) [][]byte {
	if n < 0 || n > int64(len(pages))*int64(a.pageBytes) {
		panic(fmt.Sprintf("host: %d bytes in %d pages of %d", n, len(pages), a.pageBytes))
	}
	parts := make([][]byte, 0, len(pages))
	for i := 0; n > 0; i++ {
		b := a.Page(pages[i])
		b = b[:min(n, int64(len(b)))]
		parts = append(parts, b)
		n -= int64(len(b))
	}
	return parts
}

// Digest continues a digest over b; it begins with 0. What b is cut into does
// not matter.
func (a *Arena) Digest(sum uint64, b []byte) uint64 { return codec.Digest(sum, b) }

// Size is the length of n raw bytes under a codec.
func (a *Arena) Size(c ieg.Codec, n int) int { return codec.Size(c, n) }

// Encode packs src, elements of kvType, into dst, Size(c, len(src)) long.
func (a *Arena) Encode(c ieg.Codec, kvType string, dst, src []byte) {
	codec.Encode(c, kvType, dst, src)
}

// Decode is the inverse of Encode, up to the codec's loss.
func (a *Arena) Decode(c ieg.Codec, kvType string, dst, src []byte) {
	codec.Decode(c, kvType, dst, src)
}
