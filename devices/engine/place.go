package engine

import "ieg"

// BlockBytes is what n tokens of a block take under a codec, when a token's
// KV takes kvToken bytes: its pieces one after the other.
func BlockBytes(a Arena, c ieg.Codec, kvToken int64, n int32) int64 {
	size := int64(n/ieg.PieceTokens) * int64(a.Size(c, int(kvToken)*ieg.PieceTokens))
	if rest := n % ieg.PieceTokens; rest > 0 {
		size += int64(a.Size(c, int(kvToken)*int(rest)))
	}
	return size
}

// Place is a block's bytes in the arena: its pages in order, as if they were
// one piece of memory.
type Place struct {
	Arena Arena
	Pages []ieg.Page
}

// Write copies b to the bytes from off on.
func (p Place) Write(off int64, b []byte) {
	for len(b) > 0 {
		n := copy(p.at(off), b)
		b, off = b[n:], off+int64(n)
	}
}

// Read fills b from the bytes from off on.
func (p Place) Read(off int64, b []byte) {
	for len(b) > 0 {
		n := copy(b, p.at(off))
		b, off = b[n:], off+int64(n)
	}
}

// Digest continues a digest over n bytes from off on.
func (p Place) Digest(sum uint64, off, n int64) uint64 {
	for n > 0 {
		b := p.Span(off, n)
		sum = p.Arena.Digest(sum, b)
		off, n = off+int64(len(b)), n-int64(len(b))
	}
	return sum
}

// Span is the memory of the n bytes from off on, as far as it lies in one page.
func (p Place) Span(off, n int64) []byte {
	b := p.at(off)
	return b[:min(int64(len(b)), n)]
}

// at is the rest of the page that holds the byte at off.
func (p Place) at(off int64) []byte {
	size := int64(p.Arena.PageBytes())
	return p.Arena.Page(p.Pages[off/size])[off%size:]
}
