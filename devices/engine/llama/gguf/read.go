package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Errors with identity.
var (
	// ErrNotGGUF: the file is of another kind.
	ErrNotGGUF = errors.New("not a GGUF file")
	// ErrCut: the file ends before its header or data do.
	ErrCut = errors.New("the file is cut short; fetch it again")
	// ErrBroken: the header contradicts itself.
	ErrBroken = errors.New("the file is damaged; fetch it again")
	// ErrUnknown: a version or type this reader doesn't know.
	ErrUnknown = errors.New("unknown to this version")
)

// File is a file's header.
type File struct {
	Version   uint32
	Tensors   []Tensor
	DataStart int64 // offset of the tensor data
	// TokenKinds is the whole of "tokenizer.ggml.token_type".
	TokenKinds []int32
	meta       map[string]any
}

// Tensor is an entry of the table.
type Tensor struct {
	Name     string
	Dims     []uint64
	Type     Type
	Offset   int64 // from DataStart
	Bytes    int64
	Elements int64
}

// Array is an array's length and, if it is short, its elements.
type Array struct {
	Len   int
	Elems []any
}

// The value types of the format.
const (
	kindU8, kindI8, kindU16, kindI16, kindU32, kindI32, kindF32 = 0, 1, 2, 3, 4, 5, 6
	kindBool, kindString, kindArray, kindU64, kindI64, kindF64  = 7, 8, 9, 10, 11, 12
)

// Read reads and checks the header of a file of size bytes.
func Read(r io.ReaderAt, size int64) (*File, error) {
	h := &reader{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, min(size, maxHeader)), 1<<16)}
	f := &File{meta: map[string]any{}}
	if h.bytes(4); h.err != nil || string(h.buf) != "GGUF" {
		return nil, ErrNotGGUF
	}
	f.Version = uint32(h.uint(4))
	if h.err == nil && (f.Version < 2 || f.Version > 3) {
		return nil, fmt.Errorf("GGUF version %d: %w", f.Version, ErrUnknown)
	}
	tensors, pairs := h.uint(8), h.uint(8)
	if h.err == nil && (tensors > maxTensors || pairs > maxPairs) {
		return nil, fmt.Errorf("%d tensors and %d pairs of metadata: %w", tensors, pairs, ErrBroken)
	}
	for i := uint64(0); i < pairs && h.err == nil; i++ {
		key := h.string()
		kind := int(h.uint(4))
		if key == "tokenizer.ggml.token_type" && kind == kindArray {
			f.TokenKinds = h.kinds()
			continue
		}
		f.meta[key] = h.value(kind, 0)
	}
	for i := uint64(0); i < tensors && h.err == nil; i++ {
		f.Tensors = append(f.Tensors, h.tensor())
	}
	if h.err != nil {
		if errors.Is(h.err, io.EOF) || errors.Is(h.err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("header of a %d-byte file: %w", size, ErrCut)
		}
		return nil, h.err
	}
	return f, f.check(h.n, size)
}

// check compares the table of tensors with the file's size.
func (f *File) check(end, size int64) error {
	align := int64(32)
	if v, ok := f.meta["general.alignment"]; ok {
		a, ok := v.(uint64)
		if !ok || a == 0 || a > 1<<20 || a&(a-1) != 0 {
			return fmt.Errorf("alignment %v: %w", v, ErrBroken)
		}
		align = int64(a)
	}
	f.DataStart = (end + align - 1) / align * align
	seen := make(map[string]bool, len(f.Tensors))
	for _, t := range f.Tensors {
		if seen[t.Name] {
			return fmt.Errorf("two tensors %q: %w", t.Name, ErrBroken)
		}
		seen[t.Name] = true
		if t.Offset%align != 0 {
			return fmt.Errorf("tensor %q at offset %d: %w", t.Name, t.Offset, ErrBroken)
		}
		if t.Offset > size-f.DataStart-t.Bytes {
			return fmt.Errorf("tensor %q ends at byte %d of %d: %w", t.Name, f.DataStart+t.Offset+t.Bytes, size, ErrCut)
		}
	}
	return nil
}

// reader reads little-endian values and keeps the first error.
type reader struct {
	r   *bufio.Reader
	n   int64
	buf []byte
	err error
}

func (h *reader) bytes(n int) {
	if cap(h.buf) < n {
		h.buf = make([]byte, n)
	}
	h.buf = h.buf[:n]
	if h.err != nil {
		clear(h.buf)
		return
	}
	m, err := io.ReadFull(h.r, h.buf)
	h.n += int64(m)
	if err != nil {
		h.err = err
		clear(h.buf)
	}
}

func (h *reader) skip(n int64) {
	if h.err != nil {
		return
	}
	m, err := h.r.Discard(int(n))
	h.n += int64(m)
	h.err = err
}

func (h *reader) uint(n int) uint64 {
	var b [8]byte
	h.bytes(n)
	copy(b[:], h.buf)
	return binary.LittleEndian.Uint64(b[:])
}

func (h *reader) string() string {
	n := h.uint(8)
	if n > maxString {
		h.fail(fmt.Errorf("a string of %d bytes: %w", n, ErrBroken))
		return ""
	}
	h.bytes(int(n))
	return string(h.buf)
}

func (h *reader) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// sizes of the fixed-size values.
var sizes = [...]int{kindU8: 1, kindI8: 1, kindU16: 2, kindI16: 2, kindU32: 4, kindI32: 4, kindF32: 4, kindBool: 1, kindU64: 8, kindI64: 8, kindF64: 8}

// value reads a value: uint64, int64, float64, bool, string or Array.
func (h *reader) value(kind, depth int) any {
	switch kind {
	case kindU8, kindU16, kindU32, kindU64:
		return h.uint(sizes[kind])
	case kindI8:
		return int64(int8(h.uint(1)))
	case kindI16:
		return int64(int16(h.uint(2)))
	case kindI32:
		return int64(int32(h.uint(4)))
	case kindI64:
		return int64(h.uint(8))
	case kindF32:
		return float64(math.Float32frombits(uint32(h.uint(4))))
	case kindF64:
		return math.Float64frombits(h.uint(8))
	case kindBool:
		return h.uint(1) != 0
	case kindString:
		return h.string()
	case kindArray:
		return h.array(depth)
	}
	h.fail(fmt.Errorf("a value of type %d: %w", kind, ErrUnknown))
	return nil
}

func (h *reader) array(depth int) Array {
	kind, n := int(h.uint(4)), h.uint(8)
	if h.err != nil {
		return Array{}
	}
	if n > maxArray || depth >= maxDepth || kind > kindF64 {
		h.fail(fmt.Errorf("an array of %d values of type %d: %w", n, kind, ErrBroken))
		return Array{}
	}
	a := Array{Len: int(n)}
	fixed := kind != kindString && kind != kindArray
	if fixed && n > keepArray {
		h.skip(int64(n) * int64(sizes[kind]))
		return a
	}
	for i := uint64(0); i < n && h.err == nil; i++ {
		if kind == kindString && n > keepArray {
			m := h.uint(8)
			if m > maxString {
				h.fail(fmt.Errorf("a string of %d bytes: %w", m, ErrBroken))
				return a
			}
			h.skip(int64(m))
			continue
		}
		v := h.value(kind, depth+1)
		if n <= keepArray {
			a.Elems = append(a.Elems, v)
		}
	}
	return a
}

// kinds reads the array of token kinds.
func (h *reader) kinds() []int32 {
	kind, n := h.uint(4), h.uint(8)
	if h.err == nil && (kind != kindI32 && kind != kindU32 || n > maxArray) {
		h.fail(fmt.Errorf("token types: %d values of type %d: %w", n, kind, ErrBroken))
	}
	var out []int32
	for i := uint64(0); i < n && h.err == nil; i++ {
		out = append(out, int32(h.uint(4)))
	}
	return out
}

func (h *reader) tensor() Tensor {
	t := Tensor{Name: h.string()}
	dims := h.uint(4)
	if dims == 0 || dims > maxDims {
		h.fail(fmt.Errorf("tensor %q of %d dimensions: %w", t.Name, dims, ErrBroken))
		return t
	}
	elems := uint64(1)
	for range dims {
		d := h.uint(8)
		if h.err == nil && (d == 0 || d > math.MaxInt64/elems) {
			h.fail(fmt.Errorf("tensor %q has a dimension of %d: %w", t.Name, d, ErrBroken))
			return t
		}
		t.Dims = append(t.Dims, d)
		elems *= max(d, 1)
	}
	t.Type = Type(h.uint(4))
	off := h.uint(8)
	if h.err != nil {
		return t
	}
	info, ok := types[t.Type]
	if !ok {
		h.fail(fmt.Errorf("tensor %q is of type %d: %w", t.Name, t.Type, ErrUnknown))
		return t
	}
	blocks := t.Dims[0] / info.block
	if t.Dims[0]%info.block != 0 || off > math.MaxInt64/2 || elems/t.Dims[0] > math.MaxInt64/2/info.bytes/blocks {
		h.fail(fmt.Errorf("tensor %q of %v %s at %d: %w", t.Name, t.Dims, t.Type, off, ErrBroken))
		return t
	}
	t.Offset, t.Elements = int64(off), int64(elems)
	t.Bytes = int64(elems / t.Dims[0] * blocks * info.bytes)
	return t
}
