package kv

import (
	"crypto/sha256"
	"encoding/binary"

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
	copy(buf[:], parent[:])
	putTokens(buf[16:], tokens)
	sum := sha256.Sum256(buf[:16+4*len(tokens)])
	return ieg.BlockHash(sum[:16])
}

// putTokens writes tokens, four bytes each, least first. Eight at a time take a
// third of the time, which else is a fifth of a name's.
func putTokens(to []byte, tokens []ieg.Token) {
	for len(tokens) >= 8 && len(to) >= 32 {
		t, b := (*[8]ieg.Token)(tokens), (*[32]byte)(to)
		binary.LittleEndian.PutUint64(b[0:], uint64(uint32(t[0]))|uint64(uint32(t[1]))<<32)
		binary.LittleEndian.PutUint64(b[8:], uint64(uint32(t[2]))|uint64(uint32(t[3]))<<32)
		binary.LittleEndian.PutUint64(b[16:], uint64(uint32(t[4]))|uint64(uint32(t[5]))<<32)
		binary.LittleEndian.PutUint64(b[24:], uint64(uint32(t[6]))|uint64(uint32(t[7]))<<32)
		to, tokens = to[32:], tokens[8:]
	}
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(to[4*i:], uint32(t))
	}
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
