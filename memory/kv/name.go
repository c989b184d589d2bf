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
// SHA-256 of the parent's name, the tokens, least byte first, and the number of
// bytes that each of them takes. That is three, as vocabularies have it, or four
// for all if one needs it: what is hashed is most of a look-up's time.
func Name(parent ieg.BlockHash, tokens []ieg.Token) ieg.BlockHash {
	var buf [16 + 4*ieg.BlockTokens + 1]byte
	copy(buf[:], parent[:])
	width := 3
	if !putThree(buf[16:], tokens) {
		width = 4
		for i, t := range tokens {
			binary.LittleEndian.PutUint32(buf[16+4*i:], uint32(t))
		}
	}
	n := 16 + width*len(tokens)
	buf[n] = byte(width)
	sum := sha256.Sum256(buf[:n+1])
	return ieg.BlockHash(sum[:16])
}

// putThree writes tokens in three bytes each; false: one needs more. Eight at a
// time take a third of the time.
func putThree(to []byte, tokens []ieg.Token) bool {
	var all uint64
	for len(tokens) >= 8 && len(to) >= 24 {
		t, b := (*[8]ieg.Token)(tokens), (*[24]byte)(to)
		t0, t1, t2, t3 := uint64(uint32(t[0])), uint64(uint32(t[1])), uint64(uint32(t[2])), uint64(uint32(t[3]))
		t4, t5, t6, t7 := uint64(uint32(t[4])), uint64(uint32(t[5])), uint64(uint32(t[6])), uint64(uint32(t[7]))
		all |= t0 | t1 | t2 | t3 | t4 | t5 | t6 | t7
		binary.LittleEndian.PutUint64(b[0:], t0|t1<<24|t2<<48)
		binary.LittleEndian.PutUint64(b[8:], t2>>16|t3<<8|t4<<32|t5<<56)
		binary.LittleEndian.PutUint64(b[16:], t5>>8|t6<<16|t7<<40)
		to, tokens = to[24:], tokens[8:]
	}
	for i, v := range tokens {
		t := uint32(v)
		all |= uint64(t)
		to[3*i], to[3*i+1], to[3*i+2] = byte(t), byte(t>>8), byte(t>>16)
	}
	return all < 1<<24
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
