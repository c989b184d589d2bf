package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"ieg/devices/engine/llama/gguf"
	"ieg/devices/engine/llama/tinygguf"
)

func read(b []byte) (*gguf.File, error) { return gguf.Read(bytes.NewReader(b), int64(len(b))) }

func TestReadTiny(t *testing.T) {
	f, err := read(tinygguf.Bytes(tinygguf.Config{Pooling: "last"}))
	if err != nil {
		t.Fatal(err)
	}
	if f.String("general.architecture") != "llama" || f.Quant() != "F32" {
		t.Errorf("architecture %q, quantisation %q", f.String("general.architecture"), f.Quant())
	}
	if n, _ := f.Uint("llama.block_count"); n != 2 {
		t.Errorf("%d layers", n)
	}
	if a, _ := f.Array("tokenizer.ggml.tokens"); a.Len != len(a.Elems) || a.Len < 260 {
		t.Errorf("%d tokens, %d kept", a.Len, len(a.Elems))
	}
	if n, ok := f.PerLayer("llama.attention.head_count_kv", 3); !ok || n[2] != 2 {
		t.Errorf("per layer %v", n)
	}
	if len(f.Tensors) != 2*9+3 || f.Tensors[0].Bytes != f.Tensors[0].Elements*4 {
		t.Errorf("%d tensors, first %+v", len(f.Tensors), f.Tensors[0])
	}
}

func TestCutAnywhere(t *testing.T) {
	b := tinygguf.Bytes(tinygguf.Config{})
	for _, n := range []int{0, 3, 4, 7, 20, 100, 5000, len(b) / 2, len(b) - 64} {
		if _, err := read(b[:n]); err == nil {
			t.Errorf("cut at %d of %d: no error", n, len(b))
		} else if n >= 20 && !errors.Is(err, gguf.ErrCut) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

func TestBroken(t *testing.T) {
	tensor := func(dims []uint64, kind uint32, off uint64) []byte {
		w := &tinygguf.Writer{}
		w.Tensor("a", []uint64{32}, make([]float32, 32))
		b := w.Bytes()
		// magic, version, counts, then name (8+1), dimensions …
		at := 4 + 4 + 8 + 8 + 8 + 1
		out := append([]byte{}, b[:at]...)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(dims)))
		for _, d := range dims {
			out = binary.LittleEndian.AppendUint64(out, d)
		}
		out = binary.LittleEndian.AppendUint32(out, kind)
		out = binary.LittleEndian.AppendUint64(out, off)
		return append(out, make([]byte, 4096)...)
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"other":      {[]byte("PK\x03\x04 zip"), gguf.ErrNotGGUF},
		"version":    {[]byte("GGUF\x63\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"), gguf.ErrUnknown},
		"counts":     {[]byte("GGUF\x03\x00\x00\x00" + "\xff\xff\xff\xff\xff\xff\xff\xff" + "\x00\x00\x00\x00\x00\x00\x00\x00"), gguf.ErrBroken},
		"good":       {tensor([]uint64{32}, 0, 0), nil},
		"zero":       {tensor([]uint64{0}, 0, 0), gguf.ErrBroken},
		"huge":       {tensor([]uint64{1 << 62, 1 << 62}, 0, 0), gguf.ErrBroken},
		"huge block": {tensor([]uint64{1 << 62}, 2, 0), gguf.ErrCut},
		"beyond":     {tensor([]uint64{1 << 20}, 0, 0), gguf.ErrCut},
		"far":        {tensor([]uint64{32}, 0, 1<<62-32), gguf.ErrCut},
		"farther":    {tensor([]uint64{32}, 0, 1<<63-32), gguf.ErrBroken},
		"unaligned":  {tensor([]uint64{32}, 0, 4), gguf.ErrBroken},
		"odd block":  {tensor([]uint64{33}, 2, 0), gguf.ErrBroken},
		"kind":       {tensor([]uint64{32}, 99, 0), gguf.ErrUnknown},
		"dims":       {tensor([]uint64{1, 1, 1, 1, 1}, 0, 0), gguf.ErrBroken},
		"no dims":    {tensor(nil, 0, 0), gguf.ErrBroken},
	} {
		if _, err := read(c.b); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	w := &tinygguf.Writer{}
	w.String("general.architecture", "llama")
	w.Ints("a", []int32{1, 2})
	w.Strings("b", []string{"x", ""})
	w.Tensor("t", []uint64{2, 2}, make([]float32, 4))
	f.Add(w.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := read(b)
		if err != nil {
			return
		}
		for _, x := range h.Tensors {
			if x.Offset < 0 || x.Bytes < 0 || h.DataStart+x.Offset+x.Bytes > int64(len(b)) {
				t.Fatalf("tensor outside the file: %+v", x)
			}
		}
		h.Quant()
		h.PerLayer("a", 2)
	})
}
