package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"ieg"
)

// A name is what its description says, for every length of a block, wherever in
// it is a token that needs four bytes.
func TestNameByItsDescription(t *testing.T) {
	parent := Root("kind", "tenant")
	named := func(tokens []ieg.Token, width int) ieg.BlockHash {
		plain := append([]byte(nil), parent[:]...)
		for _, tok := range tokens {
			plain = append(plain, binary.LittleEndian.AppendUint32(nil, uint32(tok))[:width]...)
		}
		sum := sha256.Sum256(append(plain, byte(width)))
		return ieg.BlockHash(sum[:16])
	}
	var tokens []ieg.Token
	for n := range ieg.BlockTokens + 1 {
		if got := Name(parent, tokens); got != named(tokens, 3) {
			t.Fatalf("%d tokens: %s", n, got)
		}
		tokens = append(tokens, ieg.Token(uint32(n+1)*2_654_435_761>>8))
	}
	tokens = tokens[:ieg.BlockTokens]
	for i, was := range tokens {
		for _, wide := range []ieg.Token{1 << 24, 1<<31 - 1, -1} {
			tokens[i] = wide
			if got := Name(parent, tokens); got != named(tokens, 4) {
				t.Fatalf("token %d is %d: %s", i, wide, got)
			}
		}
		tokens[i] = was
	}
}

// Texts whose bytes would be the same without the width have different names.
func TestNameTellsTheWidth(t *testing.T) {
	parent := Root("kind", "tenant")
	wide := []ieg.Token{0x0400_0001, 0x0500_0000, 0x0600_0000}
	narrow := []ieg.Token{1, 0x000004, 0x000500, 0x060000}
	if a, b := Name(parent, wide), Name(parent, narrow); a == b {
		t.Errorf("%x and %x are both %s", wide, narrow, a)
	}
}

func BenchmarkName(b *testing.B) {
	tokens := make([]ieg.Token, ieg.BlockTokens)
	var h ieg.BlockHash
	for b.Loop() {
		h = Name(h, tokens)
	}
	b.ReportAllocs()
}
