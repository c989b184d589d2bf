package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"

	"ieg"
)

// A name is what its description says, for every length of a block.
func TestNameByItsDescription(t *testing.T) {
	parent := Root("kind", "tenant")
	var tokens []ieg.Token
	plain := parent[:]
	for n := range ieg.BlockTokens + 1 {
		sum := sha256.Sum256(plain)
		if got := Name(parent, tokens); got != ieg.BlockHash(sum[:16]) {
			t.Fatalf("%d tokens: %s", n, got)
		}
		tok := ieg.Token(uint32(n+1) * 2_654_435_761)
		tokens, plain = append(tokens, tok), binary.LittleEndian.AppendUint32(plain, uint32(tok))
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
