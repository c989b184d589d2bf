package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"ieg"
)

// Root is the name before the first block of a text: it tells KV apart that
// was made by other weights, in another form, or for another tenant.
func Root(kvName, tenant string) ieg.BlockHash {
	h := sha256.New()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(kvName)))
	h.Write(n[:])
	h.Write([]byte(kvName))
	h.Write([]byte(tenant))
	return ieg.BlockHash(h.Sum(nil)[:16])
}

// Name is the name of the block that follows parent: the first half of the
// SHA-256 of the parent's name and the tokens, four bytes each, least first.
func Name(parent ieg.BlockHash, tokens []ieg.Token) ieg.BlockHash {
	var buf [16 + 4*ieg.BlockTokens]byte
	sum := sha256.Sum256(appendTokens(append(buf[:0], parent[:]...), tokens))
	return ieg.BlockHash(sum[:16])
}

// appendTokens appends tokens, four bytes each, least first; two at a time, as
// this is a tenth of a name's time.
func appendTokens(b []byte, tokens []ieg.Token) []byte {
	at := len(b)
	b = slices.Grow(b, 4*len(tokens))[:at+4*len(tokens)]
	to := b[at:]
	for len(tokens) >= 2 {
		binary.LittleEndian.PutUint64(to, uint64(uint32(tokens[0]))|uint64(uint32(tokens[1]))<<32)
		to, tokens = to[8:], tokens[2:]
	}
	if len(tokens) > 0 {
		binary.LittleEndian.PutUint32(to, uint32(tokens[0]))
	}
	return b
}

// Names appends to chain the names of the full blocks of tokens that it lacks.
func Names(chain []ieg.BlockHash, root ieg.BlockHash, tokens []ieg.Token) []ieg.BlockHash {
	for {
		at := len(chain) * ieg.BlockTokens
		if at+ieg.BlockTokens > len(tokens) {
			return chain
		}
		parent := root
		if len(chain) > 0 {
			parent = chain[len(chain)-1]
		}
		chain = append(chain, Name(parent, tokens[at:at+ieg.BlockTokens]))
	}
}
