package tinygguf

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Writer builds a GGUF file of version 3 in memory.
type Writer struct {
	pairs, infos, data bytes.Buffer
	nPairs, nTensors   uint64
}

func put(b *bytes.Buffer, v any) { _ = binary.Write(b, binary.LittleEndian, v) }

func putString(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

func (w *Writer) key(k string, kind uint32) {
	w.nPairs++
	putString(&w.pairs, k)
	put(&w.pairs, kind)
}

// String adds a text.
func (w *Writer) String(k, v string) { w.key(k, 8); putString(&w.pairs, v) }

// Uint adds a 32-bit number.
func (w *Writer) Uint(k string, v uint32) { w.key(k, 4); put(&w.pairs, v) }

// Float adds a 32-bit floating-point number.
func (w *Writer) Float(k string, v float32) { w.key(k, 6); put(&w.pairs, v) }

// Bool adds a truth value.
func (w *Writer) Bool(k string, v bool) { w.key(k, 7); put(&w.pairs, v) }

// Strings adds an array of texts.
func (w *Writer) Strings(k string, v []string) {
	w.key(k, 9)
	put(&w.pairs, uint32(8))
	put(&w.pairs, uint64(len(v)))
	for _, s := range v {
		putString(&w.pairs, s)
	}
}

// Ints adds an array of 32-bit numbers.
func (w *Writer) Ints(k string, v []int32) {
	w.key(k, 9)
	put(&w.pairs, uint32(5))
	put(&w.pairs, uint64(len(v)))
	put(&w.pairs, v)
}

// Tensor adds a tensor of 32-bit floating-point numbers, dims fastest first.
func (w *Writer) Tensor(name string, dims []uint64, v []float32) {
	w.nTensors++
	putString(&w.infos, name)
	put(&w.infos, uint32(len(dims)))
	put(&w.infos, dims)
	put(&w.infos, uint32(0))
	put(&w.infos, uint64(w.data.Len()))
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	w.data.Write(b)
	pad(&w.data)
}

func pad(b *bytes.Buffer) {
	for b.Len()%32 != 0 {
		b.WriteByte(0)
	}
}

// Bytes is the file.
func (w *Writer) Bytes() []byte {
	var out bytes.Buffer
	out.WriteString("GGUF")
	put(&out, uint32(3))
	put(&out, w.nTensors)
	put(&out, w.nPairs)
	out.Write(w.pairs.Bytes())
	out.Write(w.infos.Bytes())
	pad(&out)
	out.Write(w.data.Bytes())
	return out.Bytes()
}
