package engine

import "ieg"

// Arena is the host memory that a node shares with its engines: pages that
// hold KV blocks, with what proves and packs them. memory/tier/host makes it;
// the node's and each child's see the same bytes. Its methods may be called
// from any goroutine; who writes a page is the kernel's affair.
type Arena interface {
	// Pages is the number of pages, PageBytes the size of each.
	Pages() int
	PageBytes() int
	// Page is the memory of a page: PageBytes long, valid until the process
	// ends.
	Page(p ieg.Page) []byte
	// Digest continues a digest over b; it begins with 0. What b is cut into
	// does not matter.
	Digest(sum uint64, b []byte) uint64
	// Size is the length of n raw bytes under a codec; n is a multiple of 128
	// under CodecINT8.
	Size(c ieg.Codec, n int) int
	// Encode packs src, elements of kvType ("f16" or "bf16"), into dst, which
	// is Size(c, len(src)) long. Decode is its inverse, up to the codec's loss.
	Encode(c ieg.Codec, kvType string, dst, src []byte)
	Decode(c ieg.Codec, kvType string, dst, src []byte)
}

// CUDARegistrar is an arena that can be registered with CUDA, so that copies
// between its pages and a device go by DMA.
type CUDARegistrar interface {
	// RegisterCUDA registers all of it for the life of the process, and commits
	// its memory; device is CUDA's number of the device in this process. More
	// than one call does no harm. After an error the arena is as it was.
	RegisterCUDA(device int) error
}

// OpenArena maps in a child the arena that the node shares as a file: bytes
// long, in pages of pageBytes.
type OpenArena func(fd uintptr, bytes int64, pageBytes int) (Arena, error)
