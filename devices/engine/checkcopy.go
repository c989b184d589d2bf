package engine

import (
	"fmt"
	"slices"

	"ieg"
)

// CheckCopy says with numbers what is wrong with a Save or Load, before
// anything is done; a nil arena stands for none. held tells how many tokens a
// slot holds; it is asked about slots that exist only.
func CheckCopy(op *ieg.KVOp, info *ieg.EngineInfo, a Arena, held func(ieg.Slot) int32) error {
	if a == nil || info.KVToken == 0 {
		return fmt.Errorf("KV can't leave this engine: %s", info.KVNote)
	}
	slot, most, what := op.From, int32(0), "save from"
	if op.Kind == ieg.KVLoad {
		slot, most, what = op.To, info.SlotTokens, "load into"
	}
	if slot < 0 || int32(slot) >= info.Slots {
		return fmt.Errorf("%s slot %d; there are %d slots", what, slot, info.Slots)
	}
	has := held(slot)
	if op.Kind == ieg.KVSave {
		most = has
	}
	if op.Start < 0 || op.N < 1 || int64(op.Start)+int64(op.N) > int64(most) {
		return fmt.Errorf("%s slot %d of %d tokens from %d: it holds %d of at most %d", what, slot, op.N, op.Start, has, info.SlotTokens)
	}
	for i := range op.Extents {
		if err := checkExtent(&op.Extents[i], info, a); err != nil {
			return fmt.Errorf("%s slot %d: extent %d: %w", what, slot, i, err)
		}
	}
	var err error
	if op.Kind == ieg.KVSave {
		err = checkSave(op)
	} else {
		err = checkLoad(op, has)
	}
	if err != nil {
		return fmt.Errorf("%s slot %d: %w", what, slot, err)
	}
	return nil
}

func checkExtent(e *ieg.Extent, info *ieg.EngineInfo, a Arena) error {
	if e.Start < 0 || e.Start%ieg.BlockTokens != 0 || e.N < 1 || e.N > ieg.BlockTokens {
		return fmt.Errorf("a block of %d tokens at %d; blocks have up to %d and start at multiples of that", e.N, e.Start, ieg.BlockTokens)
	}
	if e.Codec >= ieg.NumCodecs || e.Codec == ieg.CodecINT8 && !info.KVINT8 {
		return fmt.Errorf("codec %d, which this engine's KV can't be kept in", e.Codec)
	}
	bytes := BlockBytes(a, e.Codec, info.KVToken, e.N)
	pages := (bytes + int64(a.PageBytes()) - 1) / int64(a.PageBytes())
	if e.Bytes != bytes || int64(len(e.Pages)) != pages {
		return fmt.Errorf("%d bytes in %d pages; %d tokens take %d in %d", e.Bytes, len(e.Pages), e.N, bytes, pages)
	}
	for _, p := range e.Pages {
		if int64(p) >= int64(a.Pages()) {
			return fmt.Errorf("page %d; the arena has %d", p, a.Pages())
		}
	}
	return nil
}

// checkSave: whole pieces of one block.
func checkSave(op *ieg.KVOp) error {
	if len(op.Extents) != 1 {
		return fmt.Errorf("%d extents; a save has one", len(op.Extents))
	}
	e := &op.Extents[0]
	end, last := op.Start+op.N, e.Start+e.N
	if op.Start < e.Start || end > last {
		return fmt.Errorf("tokens %d to %d of a block that has %d to %d", op.Start, end, e.Start, last)
	}
	if op.Start%ieg.PieceTokens != 0 || end%ieg.PieceTokens != 0 && end != last {
		return fmt.Errorf("tokens %d to %d are not whole pieces of %d", op.Start, end, ieg.PieceTokens)
	}
	return checkSum(op)
}

// Follows tells whether a Save goes on where the op before it ended, as its Next
// says. Other ops do.
func Follows(ops []ieg.KVOp, i int) bool {
	op := &ops[i]
	if op.Kind != ieg.KVSave || !op.Next {
		return !op.Next
	}
	if i == 0 || ops[i-1].Kind != ieg.KVSave || len(ops[i-1].Extents) != 1 || len(op.Extents) != 1 {
		return false
	}
	before := &ops[i-1]
	return before.From == op.From && before.Start+before.N == op.Start && before.Extents[0].Start == op.Extents[0].Start &&
		slices.Equal(before.Extents[0].Pages, op.Extents[0].Pages)
}

// checkSum: nothing is summed up before a block's first piece.
func checkSum(op *ieg.KVOp) error {
	if op.Start == op.Extents[0].Start && op.Sum != 0 {
		return fmt.Errorf("digest %016x of no pieces; it begins with 0", op.Sum)
	}
	return nil
}

// checkLoad: blocks without gaps that cover what is asked for and no more.
func checkLoad(op *ieg.KVOp, has int32) error {
	if op.Start%ieg.PieceTokens != 0 || op.Start > has {
		return fmt.Errorf("keeps %d tokens of %d; it must be a multiple of %d", op.Start, has, ieg.PieceTokens)
	}
	at, end := op.Start, op.Start+op.N
	for i := range op.Extents {
		e := &op.Extents[i]
		inside := i == 0 && e.Start < at && at < e.Start+e.N
		if e.Start != at && !inside || at >= end {
			return fmt.Errorf("extent %d begins at %d; tokens %d to %d are to be loaded and those up to %d are covered", i, e.Start, op.Start, end, at)
		}
		at = e.Start + e.N
	}
	if at < end {
		return fmt.Errorf("%d extents end at %d; tokens %d to %d are to be loaded", len(op.Extents), at, op.Start, end)
	}
	if op.Open && (end == at || end%ieg.PieceTokens != 0) {
		return fmt.Errorf("leaves the block that ends at %d open at %d; what is left must be whole pieces of %d", at, end, ieg.PieceTokens)
	}
	return checkSum(op)
}
