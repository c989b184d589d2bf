package tiertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"ieg"
	"ieg/memory/tier"
)

// Make is block n: its name, tokens and bytes follow from n and from its
// length alone. Its parent is block n-1 of the same length. bytes must be
// between 1 and 1 GiB.
func Make(n uint64, bytes int64) tier.Item {
	if bytes < 1 || bytes > maxBlockBytes {
		panic(fmt.Sprintf("tiertest: a block of %d bytes", bytes))
	}
	r := rand.New(rand.NewPCG(n, uint64(bytes)))
	b := ieg.Block{
		Hash: name(n, bytes), Parent: name(n-1, bytes), Root: name(0, 0),
		Start: int32(n%1000) * ieg.BlockTokens, Tokens: make([]ieg.Token, 1+r.IntN(ieg.BlockTokens)),
		Codec: ieg.Codec(r.IntN(int(ieg.NumCodecs))), Bytes: bytes,
	}
	for i := range b.Tokens {
		b.Tokens[i] = ieg.Token(r.Int32N(150_000))
	}
	data := Bytes(b.Hash, bytes)
	sum := fnv.New64a()
	sum.Write(data[:min(len(data), 64)])
	b.Digest = sum.Sum64()
	return tier.Item{Block: b, Data: split(r, data)}
}

// Bytes is the content of the block of that name and length.
func Bytes(h ieg.BlockHash, n int64) []byte {
	var seed [32]byte
	copy(seed[:], h[:])
	b := make([]byte, n)
	rand.NewChaCha8(seed).Read(b)
	return b
}

func name(n uint64, bytes int64) (h ieg.BlockHash) {
	binary.BigEndian.PutUint64(h[:], n*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(h[8:], uint64(bytes))
	return h
}

// split cuts data into one to four parts.
func split(r *rand.Rand, data []byte) (parts [][]byte) {
	for range r.IntN(4) {
		n := r.IntN(len(data) + 1)
		parts = append(parts, data[:n:n])
		data = data[n:]
	}
	return append(parts, data)
}

// Same says how what a store returned differs from the item; nil: it does not.
func Same(it *tier.Item, got *ieg.Block, data []byte) error {
	want := &it.Block
	switch {
	case got.Hash != want.Hash || got.Parent != want.Parent || got.Root != want.Root:
		return fmt.Errorf("names %v %v %v, want %v %v %v", got.Hash, got.Parent, got.Root, want.Hash, want.Parent, want.Root)
	case got.Start != want.Start || got.Codec != want.Codec || got.Digest != want.Digest || got.Bytes != want.Bytes:
		return fmt.Errorf("block %+v, want %+v", got, want)
	case fmt.Sprint(got.Tokens) != fmt.Sprint(want.Tokens):
		return fmt.Errorf("block %v: other tokens", want.Hash)
	case data != nil && !bytes.Equal(data, bytes.Join(it.Data, nil)):
		return fmt.Errorf("block %v: other bytes", want.Hash)
	}
	return nil
}
