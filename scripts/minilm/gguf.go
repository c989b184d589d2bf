package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// The numbers of the GGUF format, version 3.
const (
	ggufVersion = 3

	kindUint32  = 4
	kindInt32   = 5
	kindFloat32 = 6
	kindBool    = 7
	kindString  = 8
	kindArray   = 9

	elemF32 = 0
	elemF16 = 1
)

// file is a GGUF file in the making: metadata, then tensors, in order.
type file struct {
	keys    int
	meta    []byte
	tensors []outTensor
}

type outTensor struct {
	name string
	half bool // stored as f16
	src  tensor
}

func (t outTensor) bytes() int64 {
	if t.half {
		return int64(len(t.src.data)) / 2
	}
	return int64(len(t.src.data))
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
	return append(b, s...)
}

func (f *file) key(name string, kind uint32) {
	f.keys++
	f.meta = appendString(f.meta, name)
	f.meta = binary.LittleEndian.AppendUint32(f.meta, kind)
}

// set adds a metadata entry.
func (f *file) set(name string, value any) {
	le := binary.LittleEndian
	switch v := value.(type) {
	case string:
		f.key(name, kindString)
		f.meta = appendString(f.meta, v)
	case uint32:
		f.key(name, kindUint32)
		f.meta = le.AppendUint32(f.meta, v)
	case float32:
		f.key(name, kindFloat32)
		f.meta = le.AppendUint32(f.meta, math.Float32bits(v))
	case bool:
		f.key(name, kindBool)
		f.meta = append(f.meta, 0)
		if v {
			f.meta[len(f.meta)-1] = 1
		}
	case []string:
		f.key(name, kindArray)
		f.meta = le.AppendUint32(f.meta, kindString)
		f.meta = le.AppendUint64(f.meta, uint64(len(v)))
		for _, s := range v {
			f.meta = appendString(f.meta, s)
		}
	case []int32:
		f.key(name, kindArray)
		f.meta = le.AppendUint32(f.meta, kindInt32)
		f.meta = le.AppendUint64(f.meta, uint64(len(v)))
		for _, n := range v {
			f.meta = le.AppendUint32(f.meta, uint32(n))
		}
	default:
		panic(fmt.Sprintf("metadata %s has type %T", name, value))
	}
}

func pad(n int64) int64 { return (n + alignBytes - 1) / alignBytes * alignBytes }

// write puts the file out.
func (f *file) write(out io.Writer) error {
	le := binary.LittleEndian
	head := append([]byte("GGUF"), 0, 0, 0, 0)
	le.PutUint32(head[4:], ggufVersion)
	head = le.AppendUint64(head, uint64(len(f.tensors)))
	head = le.AppendUint64(head, uint64(f.keys))
	head = append(head, f.meta...)
	var at int64
	for _, t := range f.tensors {
		head = appendString(head, t.name)
		head = le.AppendUint32(head, uint32(len(t.src.shape)))
		for i := len(t.src.shape) - 1; i >= 0; i-- { // innermost first
			head = le.AppendUint64(head, uint64(t.src.shape[i]))
		}
		kind := uint32(elemF32)
		if t.half {
			kind = elemF16
		}
		head = le.AppendUint32(head, kind)
		head = le.AppendUint64(head, uint64(at))
		at += pad(t.bytes())
	}
	head = append(head, make([]byte, pad(int64(len(head)))-int64(len(head)))...)

	w := bufio.NewWriterSize(out, 1<<20)
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range f.tensors {
		data := t.src.data
		if t.half {
			data = halves(data)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, pad(t.bytes())-t.bytes())); err != nil {
			return err
		}
	}
	return w.Flush()
}

// halves turns f32 into f16, both little-endian.
func halves(data []byte) []byte {
	out := make([]byte, 0, len(data)/2)
	for i := 0; i < len(data); i += 4 {
		out = binary.LittleEndian.AppendUint16(out, half(binary.LittleEndian.Uint32(data[i:])))
	}
	return out
}

// half rounds the bits of an f32 to the nearest f16, ties to even; what is too
// large becomes infinity.
func half(f uint32) uint16 {
	sign := uint16(f >> 16 & 0x8000)
	exp := int(f>>23&0xff) - 127 + 15
	mant := f & 0x7fffff
	switch {
	case exp == 0xff-127+15 && mant != 0:
		return sign | 0x7e00
	case exp >= 31:
		return sign | 0x7c00
	case exp < -10:
		return sign
	case exp <= 0: // subnormal: shift the leading one in
		return sign | roundShift(mant|0x800000, uint(14-exp))
	}
	// A carry out of the mantissa goes into the exponent, as it should.
	return sign | (uint16(exp)<<10 + roundShift(mant, 13))
}

func roundShift(m uint32, by uint) uint16 {
	q, rest, mid := m>>by, m&(1<<by-1), uint32(1)<<(by-1)
	if rest > mid || rest == mid && q&1 == 1 {
		q++
	}
	return uint16(q)
}
