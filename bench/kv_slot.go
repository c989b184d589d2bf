package bench

import (
	"fmt"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/llama"
	"ieg/memory/kv"
)

// saveSlot copies the first n tokens of a slot to new pages of the arena, a
// block after the other.
func saveSlot(raw *llama.RawKV, s *kvStore, slot ieg.Slot, n int32, c ieg.Codec) ([]ieg.Extent, error) {
	var out []ieg.Extent
	for at := int32(0); at < n; at += ieg.BlockTokens {
		x := ieg.Extent{Start: at, N: min(ieg.BlockTokens, n-at), Codec: c}
		x.Bytes = engine.BlockBytes(s.arena, c, raw.Info().KVToken, x.N)
		x.Pages = s.pages(x.Bytes)
		done, err := raw.Ops(ieg.KVOp{Kind: ieg.KVSave, From: slot, Start: at, N: x.N, Extents: []ieg.Extent{x}})
		if err != nil {
			return nil, err
		}
		x.Digest = done[0].Digest
		out = append(out, x)
	}
	return out, nil
}

// loadSlot brings n tokens into a slot as one operation and returns how long
// the engine says that it took.
func loadSlot(raw *llama.RawKV, slot ieg.Slot, from []ieg.Extent, n int32) (time.Duration, error) {
	done, err := raw.Ops(ieg.KVOp{Kind: ieg.KVLoad, To: slot, N: n, Extents: from})
	if err == nil && len(done) != 1 {
		err = fmt.Errorf("%d copies are reported, one is expected", len(done))
	}
	if err != nil {
		return 0, err
	}
	return done[0].Took, nil
}

// shorter is the block of the first n tokens of another one.
func shorter(b ieg.Block, n int32) ieg.Block {
	b.Tokens = b.Tokens[:n]
	b.Hash = kv.Name(b.Parent, b.Tokens)
	return b
}
