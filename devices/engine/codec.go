package engine

import (
	"encoding/binary"
	"fmt"
	"math"

	"ieg"
)

// The body of a frame is a sequence of: unsigned varints (least 7 bits first,
// shortest form only), single bytes, little-endian 32- and 64-bit floats and
// digests, and strings (varint length, bytes). An int32 is the varint of its 32 bits.

func appendI32[T ~int32](b []byte, v T) []byte {
	return binary.AppendUvarint(b, uint64(uint32(v)))
}

func appendF32(b []byte, v float32) []byte {
	return binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
}

func appendF64(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

func appendTokens(b []byte, list []ieg.Token) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, t := range list {
		b = appendI32(b, t)
	}
	return b
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// reader takes a body apart. The first fault sticks: later calls return zero
// values, and done tells of it.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ieg.ErrProtocol}, args...)...)
	}
	r.b = nil
}

// done reports the first fault, or bytes left over.
func (r *reader) done() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes left over", len(r.b))
	}
	return r.err
}

func (r *reader) uvarint() uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 { // most are small
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("bad varint")
		return 0
	}
	if n > 1 && r.b[n-1] == 0 {
		r.fail("varint of %d bytes is not the shortest", n)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) u32() uint32 {
	v := r.uvarint()
	if v > math.MaxUint32 {
		r.fail("%d does not fit 32 bits", v)
		return 0
	}
	return uint32(v)
}

func (r *reader) i32() int32 { return int32(r.u32()) }

func (r *reader) u8(most uint8) uint8 {
	if len(r.b) == 0 {
		r.fail("body too short")
		return 0
	}
	v := r.b[0]
	if v > most {
		r.fail("byte %d is more than %d", v, most)
		return 0
	}
	r.b = r.b[1:]
	return v
}

func (r *reader) bool() bool { return r.u8(1) == 1 }

func (r *reader) f32() float32 {
	if len(r.b) < 4 {
		r.fail("body too short")
		return 0
	}
	v := math.Float32frombits(binary.LittleEndian.Uint32(r.b))
	r.b = r.b[4:]
	return v
}

func (r *reader) f64() float64 { return math.Float64frombits(r.u64()) }

func (r *reader) u64() uint64 {
	if len(r.b) < 8 {
		r.fail("body too short")
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// count reads the length of a list whose elements take at least size bytes,
// so that no list can ask for more memory than its frame accounts for.
func (r *reader) count(size, most int) int {
	v := r.uvarint()
	if v > uint64(len(r.b)/size) {
		r.fail("list of %d in %d bytes", v, len(r.b))
		return 0
	}
	if v > uint64(most) {
		r.fail("list of %d is over the limit of %d", v, most)
		return 0
	}
	return int(v)
}

// raw returns a length-prefixed string's bytes inside the frame.
func (r *reader) raw(most int) []byte {
	n := r.count(1, most)
	if r.err != nil {
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) string(most int) string { return string(r.raw(most)) }

func (r *reader) strings(most int) []string {
	n := r.count(1, most)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = r.string(FrameBytes)
	}
	return list
}

func (r *reader) tokens(most int) []ieg.Token {
	n := r.count(1, most)
	if n == 0 {
		return nil
	}
	list := make([]ieg.Token, n)
	for i := range list {
		list[i] = ieg.Token(r.i32())
	}
	return list
}

// resize returns s with length n, keeping what its elements own.
func resize[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	t := make([]T, n, n+n/4)
	copy(t, s[:cap(s)])
	return t
}
