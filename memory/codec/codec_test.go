package codec

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"ieg"
)

const nan16 = 0x7e00

// elements is raw bytes of patterns, filled up with zeros to whole groups.
func elements(h ...uint16) []byte {
	raw := make([]byte, (len(h)+groupElems-1)/groupElems*groupBytes)
	for i, v := range h {
		binary.LittleEndian.PutUint16(raw[2*i:], v)
	}
	return raw
}

// roundTrip packs and unpacks through the package's face.
func roundTrip(kvType string, raw []byte) (packed, back []byte) {
	packed = make([]byte, Size(ieg.CodecINT8, len(raw)))
	Encode(ieg.CodecINT8, kvType, packed, raw)
	back = make([]byte, len(raw))
	Decode(ieg.CodecINT8, kvType, back, packed)
	return packed, back
}

func widen(kvType string, h uint16) float64 {
	if kvType == BF16 {
		return float64(bf16ToF32(h))
	}
	return float64(f16ToF32(h))
}

func at(raw []byte, i int) uint16 { return binary.LittleEndian.Uint16(raw[2*i:]) }

func TestSize(t *testing.T) {
	for _, c := range []struct {
		codec   ieg.Codec
		n, want int
	}{{ieg.CodecRaw, 7, 7}, {ieg.CodecINT8, 0, 0}, {ieg.CodecINT8, 128, 66}, {ieg.CodecINT8, 1 << 20, 540672}} {
		if got := Size(c.codec, c.n); got != c.want {
			t.Errorf("Size(%v, %d) = %d, want %d", c.codec, c.n, got, c.want)
		}
	}
}

func TestPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"no whole group":     func() { Size(ieg.CodecINT8, 127) },
		"negative":           func() { Size(ieg.CodecINT8, -128) },
		"unknown codec":      func() { Size(ieg.NumCodecs, 128) },
		"packed too long":    func() { Encode(ieg.CodecINT8, F16, make([]byte, 67), make([]byte, 128)) },
		"packed too short":   func() { Decode(ieg.CodecINT8, F16, make([]byte, 128), make([]byte, 65)) },
		"raw of two lengths": func() { Encode(ieg.CodecRaw, F16, make([]byte, 2), make([]byte, 4)) },
		"another type":       func() { Encode(ieg.CodecINT8, "q8_0", make([]byte, 66), make([]byte, 128)) },
		"type back":          func() { Decode(ieg.CodecINT8, "", make([]byte, 128), make([]byte, 66)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestRaw(t *testing.T) {
	src, dst, back := []byte("whatever type"), make([]byte, 13), make([]byte, 13)
	Encode(ieg.CodecRaw, "q4_0", dst, src)
	Decode(ieg.CodecRaw, "q4_0", back, dst)
	if !bytes.Equal(dst, src) || !bytes.Equal(back, src) {
		t.Errorf("raw bytes became %q, then %q", dst, back)
	}
}

// No element is off by more than half a step and what the scale's rounding
// and the result's rounding add.
func TestLoss(t *testing.T) {
	for _, k := range []struct {
		kvType string
		eps    float64 // half the distance of two numbers at 1
	}{{F16, 0x1p-11}, {BF16, 0x1p-8}} {
		raw := gaussian(k.kvType, 64*groupBytes)
		_, back := roundTrip(k.kvType, raw)
		for g := range 64 {
			top := 0.0
			for i := range groupElems {
				top = max(top, math.Abs(widen(k.kvType, at(raw, g*groupElems+i))))
			}
			limit := top/127*(1+2*k.eps)/2 + top*k.eps
			for i := range groupElems {
				want, got := widen(k.kvType, at(raw, g*groupElems+i)), widen(k.kvType, at(back, g*groupElems+i))
				if math.Abs(want-got) > limit {
					t.Fatalf("%s: %g came back as %g, more than %g off", k.kvType, want, got, limit)
				}
			}
		}
	}
}

func TestCorners(t *testing.T) {
	const f16One, bf16One, minus = 0x3c00, 0x3f80, 0x8000
	for _, c := range []struct {
		name, kvType string
		in, want     []uint16
		scale        uint16
	}{
		{"zeros of both signs", F16, []uint16{0, minus}, []uint16{0, 0}, 0},
		{"zeros of both signs", BF16, []uint16{0, minus}, []uint16{0, 0}, 0},
		{"only NaN and infinity", F16, []uint16{nan16, 0x7c00, 0xfc00}, []uint16{0, 0, 0}, 0},
		{"only NaN and infinity", BF16, []uint16{0x7fc0, 0x7f80, 0xff80}, []uint16{0, 0, 0}, 0},
		{"the smallest", F16, []uint16{1, minus | 1, 100}, []uint16{1, minus | 1, 100}, 1},
		{"below the smallest scale", BF16, []uint16{1, 0x0040}, []uint16{0, 0}, bf16MinScale},
		{"the largest", F16, []uint16{f16Finite, minus | f16Finite}, []uint16{0x7bfe, 0xfbfe}, 0x6007},
		{"the largest", BF16, []uint16{bf16Finite, minus | bf16Finite}, []uint16{0x7f7e, 0xff7e}, 0x7c00},
	} {
		packed, back := roundTrip(c.kvType, elements(c.in...))
		if got := binary.LittleEndian.Uint16(packed); got != c.scale {
			t.Errorf("%s, %s: the scale is %#x, want %#x", c.name, c.kvType, got, c.scale)
		}
		for i, want := range c.want {
			if got := at(back, i); got != want {
				t.Errorf("%s, %s: %#x came back as %#x, want %#x", c.name, c.kvType, c.in[i], got, want)
			}
		}
	}
	for kvType, one := range map[string]uint16{F16: f16One, BF16: bf16One} {
		clean, wild := elements(one, 0, one, minus|one), elements(one, nan16|0x0180, one, minus|one)
		a, _ := roundTrip(kvType, clean)
		b, _ := roundTrip(kvType, wild)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: NaN changes its neighbours", kvType)
		}
	}
}

// Whatever is packed, what comes back is finite.
func FuzzFinite(f *testing.F) {
	f.Add(bytes.Repeat([]byte{0xff, 0x7b}, groupElems))
	f.Add(bytes.Repeat([]byte{0x7f, 0x7f, 0, 0xfc}, groupElems))
	f.Fuzz(func(t *testing.T, raw []byte) {
		raw = raw[:len(raw)/groupBytes*groupBytes]
		for kvType, finite := range map[string]uint16{F16: f16Finite, BF16: bf16Finite} {
			_, back := roundTrip(kvType, raw)
			for i := range len(raw) / 2 {
				if h := at(back, i); h&signless > finite {
					t.Fatalf("%s: %#x came back as %#x", kvType, at(raw, i), h)
				}
			}
		}
	})
}

// Packing is the same whatever groups lie beside, also past the bound of one
// call.
func TestGroupsAreIndependent(t *testing.T) {
	const n = callGroups + 11
	raw := gaussian(F16, n*groupBytes)
	packed, back := roundTrip(F16, raw)
	for _, g := range []int{0, 7, 8, callGroups - 1, callGroups, callGroups + 7, n - 1} {
		one, oneBack := roundTrip(F16, raw[g*groupBytes:(g+1)*groupBytes])
		if !bytes.Equal(one[:scaleBytes], packed[g*scaleBytes:(g+1)*scaleBytes]) ||
			!bytes.Equal(one[scaleBytes:], packed[n*scaleBytes+g*groupElems:][:groupElems]) {
			t.Errorf("group %d is packed in another way among others", g)
		}
		if !bytes.Equal(oneBack, back[g*groupBytes:(g+1)*groupBytes]) {
			t.Errorf("group %d is unpacked in another way among others", g)
		}
	}
}

// The plain conversions, over all finite f16.
func TestHalves(t *testing.T) {
	for h := range uint16(f16Finite + 1) {
		if got := f16FromF32(f16ToF32(h)); got != h {
			t.Fatalf("f16 %#x became %#x", h, got)
		}
		if v := f16ToF32(h); v < 65504 {
			next := f16ToF32(h + 1)
			mid := (v + next) / 2
			if got, want := f16FromF32(mid), h+h&1; got != want {
				t.Fatalf("half way above f16 %#x became %#x, want the even %#x", h, got, want)
			}
			if up := math.Nextafter32(v, next); f16Up(up) != h+1 || f16Up(v) != h {
				t.Fatalf("f16 %#x and what is above are rounded up to %#x and %#x", h, f16Up(v), f16Up(up))
			}
		}
	}
	for _, v := range []float32{65520, 1e9, float32(math.Inf(1))} {
		if got := f16FromF32(-v); got != 0xfc00 {
			t.Errorf("f16 of %g is %#x, want -infinity", -v, got)
		}
	}
}

func TestDigest(t *testing.T) {
	// The check value of CRC-64/NVME in the NVM Express specification.
	if got := Digest(0, []byte("123456789")); got != 0xae8b14860a799888 {
		t.Errorf("the digest of the check text is %#x", got)
	}
	r := rand.New(rand.NewPCG(5, 6))
	b := gaussian(F16, 1<<16)
	whole := Digest(0, b)
	for range 50 {
		sum := uint64(0)
		for rest := b; len(rest) > 0; {
			n := min(len(rest), r.IntN(9000))
			sum, rest = Digest(sum, rest[:n]), rest[n:]
		}
		if sum != whole {
			t.Fatalf("in parts the digest is %#x, at once %#x", sum, whole)
		}
	}
	b[777] ^= 1
	if Digest(0, b) == whole {
		t.Error("a flipped bit has the same digest")
	}
}
