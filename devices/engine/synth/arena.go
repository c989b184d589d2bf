package synth

import (
	"fmt"
	"hash/crc64"

	"ieg"
	"ieg/devices/engine"
)

// Arena is an arena over plain memory, for simulations and tests. It keeps
// blocks raw only; Encode and Decode of another codec panic.
type Arena struct {
	mem  []byte
	page int
}

var _ engine.Arena = (*Arena)(nil)

// NewArena makes an arena of its own memory.
func NewArena(pages, pageBytes int) *Arena {
	return OverArena(make([]byte, pages*pageBytes), pageBytes)
}

// OverArena makes an arena of memory that may be shared; what is left after
// whole pages is not used.
func OverArena(mem []byte, pageBytes int) *Arena { return &Arena{mem, pageBytes} }

// Pages is the number of pages.
func (a *Arena) Pages() int { return len(a.mem) / a.page }

// PageBytes is the size of a page.
func (a *Arena) PageBytes() int { return a.page }

// Page is the memory of a page.
func (a *Arena) Page(p ieg.Page) []byte {
	at := int(p) * a.page
	return a.mem[at : at+a.page : at+a.page]
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// Digest is CRC-64 (ECMA).
func (*Arena) Digest(sum uint64, b []byte) uint64 { return crc64.Update(sum, crcTable, b) }

// Size is n.
func (*Arena) Size(_ ieg.Codec, n int) int { return n }

// Encode copies src to dst.
func (*Arena) Encode(c ieg.Codec, _ string, dst, src []byte) { raw(c); copy(dst, src) }

// Decode copies src to dst.
func (*Arena) Decode(c ieg.Codec, _ string, dst, src []byte) { raw(c); copy(dst, src) }

func raw(c ieg.Codec) {
	if c != ieg.CodecRaw {
		panic(fmt.Sprintf("an arena without codecs was given a block in codec %d", c))
	}
}
