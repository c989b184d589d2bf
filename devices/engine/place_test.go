package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/synth"
)

// TestPlaceAgainstNaive holds a block in scattered pages against flat memory.
func TestPlaceAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	a := synth.NewArena(20, 7)
	p := engine.Place{Arena: a}
	for _, i := range rng.Perm(20)[:9] {
		p.Pages = append(p.Pages, ieg.Page(i))
	}
	flat := make([]byte, len(p.Pages)*a.PageBytes())
	for range 2000 {
		off := rng.IntN(len(flat) + 1)
		part := flat[off : off+rng.IntN(len(flat)-off+1)]
		for i := range part {
			part[i] = byte(rng.Uint32())
		}
		p.Write(int64(off), part)
		got := make([]byte, len(flat))
		if p.Read(0, got); !bytes.Equal(got, flat) {
			t.Fatalf("wrote %d bytes at %d: % x, want % x", len(part), off, got, flat)
		}
		got = got[:len(part)]
		if p.Read(int64(off), got); !bytes.Equal(got, part) {
			t.Fatalf("read %d bytes at %d: % x, want % x", len(part), off, got, part)
		}
		head := p.Digest(0, 0, int64(off))
		if got, want := p.Digest(head, int64(off), int64(len(part))), a.Digest(0, flat[:off+len(part)]); got != want {
			t.Fatalf("digest %016x of %d bytes, want %016x", got, off+len(part), want)
		}
	}
}

// TestBlockBytes: pieces are packed one by one, the last one shorter.
func TestBlockBytes(t *testing.T) {
	a := padded{synth.NewArena(1, 1)}
	for n, want := range map[int32]int64{1: 2 + 1, 63: 126 + 1, 64: 128 + 1, 65: 130 + 2, 256: 512 + 4} {
		if got := engine.BlockBytes(a, ieg.CodecRaw, 2, n); got != want {
			t.Errorf("%d tokens take %d bytes, want %d", n, got, want)
		}
	}
}

// padded adds a byte to each piece.
type padded struct{ engine.Arena }

func (padded) Size(_ ieg.Codec, n int) int { return n + 1 }
