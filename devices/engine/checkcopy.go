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

// CheckNext refuses a copy that does not go on where the op before it ended, as
// its Next says.
func CheckNext(ops []ieg.KVOp, i int) error {
	if op := &ops[i]; op.Next && (i == 0 || !follows(&ops[i-1], op)) {
		return fmt.Errorf("copy from token %d on: the operation before it, number %d, is none that it goes on with", op.Start, i-1)
	}
	return nil
}

// follows tells whether op goes on inside the block in which the one before it
// ended.
func follows(before, op *ieg.KVOp) bool {
	n := len(before.Extents)
	if before.Kind != op.Kind || before.From != op.From || before.To != op.To || n == 0 || len(op.Extents) == 0 {
		return false
	}
	last, first := &before.Extents[n-1], &op.Extents[0]
	return (op.Kind == ieg.KVSave || op.Kind == ieg.KVLoad && before.Open) && before.Start+before.N == op.Start &&
		last.Start == first.Start && first.Start < op.Start && slices.Equal(last.Pages, first.Pages)
}

// Moot tells that a Load goes on in a slot which an earlier one of the batch
// emptied, because its bytes were bad.
func Moot(ops []ieg.KVOp, i int, done []ieg.CopyDone) bool {
	op := &ops[i]
	return op.Kind == ieg.KVLoad && op.Start > 0 && slices.ContainsFunc(done, func(c ieg.CopyDone) bool {
		return c.Bad != 0 && ops[c.Op].To == op.To
	})
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
