package llama

import (
	"encoding/binary"
	"fmt"
	"hash/crc64"
	"math"
	"math/rand/v2"

	"ieg"
)

// testArena is host memory as a node would share it. Its int8 keeps, for 64
// elements, a scale in two bytes and the elements in units of it.
type testArena struct {
	page int
	// fast takes the sum of the words as the digest, for benchmarks: about the
	// speed of memory.
	fast bool
	mem  []byte
	free []ieg.Page
}

// newTestArena makes an arena whose free pages are shuffled.
func newTestArena(pages, page int) *testArena {
	a := &testArena{page: page, mem: make([]byte, pages*page)}
	for _, p := range rand.New(rand.NewPCG(1, 2)).Perm(pages) {
		a.free = append(a.free, ieg.Page(p))
	}
	return a
}

func (a *testArena) Pages() int             { return len(a.mem) / a.page }
func (a *testArena) PageBytes() int         { return a.page }
func (a *testArena) Page(p ieg.Page) []byte { return a.mem[int(p)*a.page:][:a.page:a.page] }

var crcTable = crc64.MakeTable(crc64.ECMA)

func (a *testArena) Digest(sum uint64, b []byte) uint64 {
	if a.fast && len(b)%32 == 0 {
		var s1, s2, s3, s4 uint64
		for ; len(b) >= 32; b = b[32:] {
			s1 += binary.LittleEndian.Uint64(b)
			s2 += binary.LittleEndian.Uint64(b[8:])
			s3 += binary.LittleEndian.Uint64(b[16:])
			s4 += binary.LittleEndian.Uint64(b[24:])
		}
		return sum + s1 + s2 + s3 + s4
	}
	return crc64.Update(sum, crcTable, b)
}

func (a *testArena) Size(c ieg.Codec, n int) int {
	if c == ieg.CodecINT8 {
		return n / packBytes * 66
	}
	return n
}

// halves reads f16 as far as the tests need it: no subnormals, no infinities.
func halves(src []byte, out *[64]float64) (largest float64) {
	for i := range out {
		h := binary.LittleEndian.Uint16(src[2*i:])
		v := math.Ldexp(1+float64(h&0x3ff)/1024, int(h>>10&31)-15)
		if h>>10&31 == 0 {
			v = math.Ldexp(float64(h&0x3ff), -24)
		}
		if h>>15 == 1 {
			v = -v
		}
		out[i] = v
		largest = max(largest, math.Abs(v))
	}
	return largest
}

func toHalf(v float64) uint16 {
	sign := uint16(0)
	if v < 0 {
		sign, v = 1<<15, -v
	}
	if v < math.Ldexp(1, -14) {
		return sign | uint16(math.Round(math.Ldexp(v, 24)))
	}
	f, e := math.Frexp(v)
	m := math.Round((2*f - 1) * 1024)
	return sign | uint16((e+14)<<10+int(m))
}

func (a *testArena) Encode(c ieg.Codec, kvType string, dst, src []byte) {
	if c != ieg.CodecINT8 || kvType != "f16" || len(dst) != a.Size(c, len(src)) || len(src)%packBytes != 0 {
		panic(fmt.Sprint("encode ", c, kvType, len(dst), len(src)))
	}
	var v [64]float64
	for ; len(src) > 0; src, dst = src[packBytes:], dst[66:] {
		scale := toHalf(halves(src, &v) / 127)
		binary.LittleEndian.PutUint16(dst, scale)
		unit := math.Max(fromHalf(scale), 1e-9)
		for i, x := range v {
			dst[2+i] = byte(int8(min(max(math.Round(x/unit), -127), 127)))
		}
	}
}

func fromHalf(h uint16) float64 {
	var b [packBytes]byte
	var v [64]float64
	binary.LittleEndian.PutUint16(b[:], h)
	halves(b[:], &v)
	return v[0]
}

func (a *testArena) Decode(c ieg.Codec, kvType string, dst, src []byte) {
	if c != ieg.CodecINT8 || kvType != "f16" || len(src) != a.Size(c, len(dst)) {
		panic(fmt.Sprint("decode ", c, kvType, len(dst), len(src)))
	}
	for ; len(dst) > 0; dst, src = dst[packBytes:], src[66:] {
		unit := fromHalf(binary.LittleEndian.Uint16(src))
		for i := range 64 {
			binary.LittleEndian.PutUint16(dst[2*i:], toHalf(unit*float64(int8(src[2+i]))))
		}
	}
}

// extent takes pages for a block of n tokens of token bytes.
func (a *testArena) extent(start, n int32, codec ieg.Codec, token int64) ieg.Extent {
	e := ieg.Extent{Start: start, N: n, Codec: codec}
	for left := n; left > 0; left -= ieg.PieceTokens {
		e.Bytes += int64(a.Size(codec, int(min(left, ieg.PieceTokens))*int(token)))
	}
	need := (int(e.Bytes) + a.page - 1) / a.page
	e.Pages, a.free = a.free[:need:need], a.free[need:]
	return e
}

// bytes is what an extent's pages hold.
func (a *testArena) bytes(e ieg.Extent) []byte {
	var out []byte
	for _, p := range e.Pages {
		out = append(out, a.Page(p)...)
	}
	return out[:e.Bytes]
}
