package codec

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"ieg"
)

// gaussian is n bytes of normal elements.
func gaussian(kvType string, n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	raw := make([]byte, n)
	for i := 0; i < n; i += 2 {
		v := float32(r.NormFloat64())
		h := f16FromF32(v)
		if kvType == BF16 {
			h = bf16FromF32(v)
		}
		binary.LittleEndian.PutUint16(raw[i:], h)
	}
	return raw
}

const (
	hot    = 1 << 20
	stream = 256 << 20
)

// sized runs a benchmark over total bytes of f16 and their packed form.
func sized(b *testing.B, total int, f func(raw, packed []byte)) {
	raw := make([]byte, total)
	copy(raw, gaussian(F16, hot))
	for n := hot; n < total; n *= 2 {
		copy(raw[n:], raw[:n])
	}
	packed := make([]byte, Size(ieg.CodecINT8, total))
	Encode(ieg.CodecINT8, F16, packed, raw)
	b.SetBytes(int64(total))
	for b.Loop() {
		f(raw, packed)
	}
}

func BenchmarkInt8Encode(b *testing.B) {
	for _, t := range []string{F16, BF16} {
		b.Run(t, func(b *testing.B) {
			sized(b, hot, func(raw, packed []byte) { Encode(ieg.CodecINT8, t, packed, raw) })
		})
	}
}

func BenchmarkInt8Decode(b *testing.B) {
	for _, t := range []string{F16, BF16} {
		b.Run(t, func(b *testing.B) {
			sized(b, hot, func(raw, packed []byte) { Decode(ieg.CodecINT8, t, raw, packed) })
		})
	}
}

func BenchmarkPlainEncode(b *testing.B) {
	sized(b, hot, func(raw, packed []byte) { packPlainF16(packed[:hot/64], packed[hot/64:], raw) })
}

func BenchmarkPlainDecode(b *testing.B) {
	sized(b, hot, func(raw, packed []byte) { unpackPlainF16(raw, packed[:hot/64], packed[hot/64:]) })
}

func BenchmarkMemcpy(b *testing.B) {
	dst := make([]byte, hot)
	sized(b, hot, func(raw, _ []byte) { copy(dst, raw) })
}

// BenchmarkStream goes through memory beside a copy of the same bytes, in turn
// since the memory's speed drifts. The metric is the copy's time over f's.
func BenchmarkStream(b *testing.B) {
	dst := bytes.Repeat([]byte{1}, stream) // touched: no page of it is missing
	for _, c := range []struct {
		name string
		f    func(raw, packed []byte)
	}{
		{"encode", func(raw, packed []byte) { Encode(ieg.CodecINT8, F16, packed, raw) }},
		{"decode", func(raw, packed []byte) { Decode(ieg.CodecINT8, F16, raw, packed) }},
		{"digest", func(raw, _ []byte) { Digest(0, raw) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var own, copied time.Duration
			sized(b, stream, func(raw, packed []byte) {
				begin := time.Now()
				c.f(raw, packed)
				middle := time.Now()
				copy(dst, raw)
				own, copied = own+middle.Sub(begin), copied+time.Since(middle)
			})
			gb := float64(b.N) * stream / 1e9
			b.ReportMetric(gb/own.Seconds(), "GB/s")
			b.ReportMetric(gb/copied.Seconds(), "memcpy-GB/s")
			b.ReportMetric(copied.Seconds()/own.Seconds(), "of-memcpy")
		})
	}
}
