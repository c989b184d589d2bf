package codec

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"ieg"
)

// kind is the plain and the vector code of a type.
type kind struct {
	name          string
	pack, plain   packer
	unpack, undo  unpacker
	finite, limit uint16
}

var kinds = []kind{
	{F16, packAVX2F16, packPlainF16, unpackAVX2F16, unpackPlainF16, f16Finite, f16Limit},
	{BF16, packAVX2BF16, packPlainBF16, unpackAVX2BF16, unpackPlainBF16, bf16Finite, bf16Limit},
	{F16 + " past the caches", packPastAVX2F16, packPlainF16, unpackPastAVX2F16, unpackPlainF16, f16Finite, f16Limit},
	{BF16 + " past the caches", packPastAVX2BF16, packPlainBF16, unpackPastAVX2BF16, unpackPlainBF16, bf16Finite, bf16Limit},
}

func needVector(t testing.TB) {
	if !vector {
		t.Skip("this processor has no AVX2 and F16C")
	}
}

// samePacked packs and unpacks raw by both codes, and unpacks raw read as
// packed groups.
func samePacked(t *testing.T, k kind, raw []byte) {
	t.Helper()
	if n := len(raw) / groupBytes; n > 0 {
		a, b := packWith(k.pack, raw[:n*groupBytes]), packWith(k.plain, raw[:n*groupBytes])
		if i := differ(a, b); i >= 0 {
			t.Fatalf("%s: packed byte %d of %d groups is %#x by vectors, %#x plainly; raw %x", k.name, i, n, a[i], b[i], raw)
		}
		sameRaw(t, k, a)
	}
	if n := len(raw) / packedBytes; n > 0 {
		sameRaw(t, k, raw[:n*packedBytes])
	}
}

func sameRaw(t *testing.T, k kind, packed []byte) {
	t.Helper()
	a, b := unpackWith(k.unpack, packed), unpackWith(k.undo, packed)
	if i := differ(a, b); i >= 0 {
		t.Fatalf("%s: raw byte %d is %#x by vectors, %#x plainly; packed %x", k.name, i, a[i], b[i], packed)
	}
}

func packWith(f packer, raw []byte) []byte {
	n := len(raw) / groupBytes
	out := atAligned(n*scaleBytes, n*packedBytes)
	f(out[:n*scaleBytes], out[n*scaleBytes:], raw)
	return out
}

// atAligned is n bytes of which byte i lies where stores past the caches may
// begin.
func atAligned(i, n int) []byte {
	b := make([]byte, n+32)
	for !aligned(b[i:]) {
		b = b[1:]
	}
	return b[:n]
}

func unpackWith(f unpacker, packed []byte) []byte {
	n := len(packed) / packedBytes
	out := atAligned(0, n*groupBytes)
	f(out, packed[:n*scaleBytes], packed[n*scaleBytes:])
	return out
}

// differ is the first index at which two slices differ, or -1.
func differ(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return len(a)
}

// Each pattern of an element, as the largest of its group and beside each
// interesting largest one.
func TestEqualAllPatterns(t *testing.T) {
	needVector(t)
	for _, k := range kinds {
		tops := []uint16{0, 1, 0x80, 0x03ff, 0x0400, 0x3c00, 0x3f80, 0x7be0, k.limit - 1, k.limit, k.finite, k.finite + 1, signless}
		raw := make([]byte, 0, 1<<16/60*groupBytes)
		for _, top := range tops {
			raw = raw[:0]
			for v := 0; v < 1<<16; v += groupElems - 1 {
				raw = binary.LittleEndian.AppendUint16(raw, top)
				for i := range groupElems - 1 {
					raw = binary.LittleEndian.AppendUint16(raw, uint16(v+i))
				}
			}
			samePacked(t, k, raw)
		}
		raw = raw[:0]
		for v := range 1 << 16 { // alone in its group
			raw = append(raw[:0], make([]byte, groupBytes)...)
			binary.LittleEndian.PutUint16(raw[2*(v%groupElems):], uint16(v))
			samePacked(t, k, raw)
		}
	}
}

// Each scale with each byte.
func TestEqualAllScales(t *testing.T) {
	needVector(t)
	packed := make([]byte, 4*packedBytes)
	for i := range 4 * groupElems {
		packed[4*scaleBytes+i] = byte(i)
	}
	for _, k := range kinds {
		for s := range 1 << 16 {
			for g := range 4 {
				binary.LittleEndian.PutUint16(packed[g*scaleBytes:], uint16(s))
			}
			sameRaw(t, k, packed)
		}
	}
}

func TestEqualRandom(t *testing.T) {
	needVector(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		raw := make([]byte, groupBytes*(1+r.IntN(5)))
		mask, base := uint16(r.Uint32()), uint16(r.Uint32()) // near in magnitude, or not
		for i := 0; i < len(raw); i += 2 {
			binary.LittleEndian.PutUint16(raw[i:], uint16(r.Uint32())&mask^base)
		}
		for _, k := range kinds {
			samePacked(t, k, raw)
		}
	}
}

// What is large goes past the caches if it begins where that needs it; the
// bytes are the same in any case.
func TestLargeIsTheSameAnywhere(t *testing.T) {
	needVector(t)
	const groups = pastBytes/groupElems + 3
	raw := gaussian(F16, groups*groupBytes)
	for _, kvType := range []string{F16, BF16} {
		want := make([]byte, groups*packedBytes)
		back := make([]byte, len(raw))
		plain, undo := packPlainF16, unpackPlainF16
		if kvType == BF16 {
			plain, undo = packPlainBF16, unpackPlainBF16
		}
		plain(want[:groups*scaleBytes], want[groups*scaleBytes:], raw)
		undo(back, want[:groups*scaleBytes], want[groups*scaleBytes:])
		for shift := range 2 {
			packed := atAligned(groups*scaleBytes, len(want)+shift)[shift:]
			if Encode(ieg.CodecINT8, kvType, packed, raw); !bytes.Equal(packed, want) {
				t.Errorf("%s, shifted by %d: packed byte %d is another one", kvType, shift, differ(packed, want))
			}
			got := atAligned(0, len(raw)+shift)[shift:]
			if Decode(ieg.CodecINT8, kvType, got, packed); !bytes.Equal(got, back) {
				t.Errorf("%s, shifted by %d: raw byte %d is another one", kvType, shift, differ(got, back))
			}
		}
	}
}

func FuzzEqual(f *testing.F) {
	needVector(f)
	f.Add(bytes.Repeat([]byte{0xff, 0x7b}, groupElems))
	f.Add(bytes.Repeat([]byte{0, 0x7c, 0x01, 0x80}, groupElems))
	f.Add(make([]byte, 3*groupBytes))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, k := range kinds {
			samePacked(t, k, raw)
		}
	})
}
