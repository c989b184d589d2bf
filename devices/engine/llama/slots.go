package llama

import (
	"errors"
	"fmt"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/devices/engine"
)

// slots is the KV of the slots as the engine accounts it: how many tokens each
// holds, and which sequence of the library (a stream, in that layout) it is.
type slots struct {
	c      *engineContext
	tokens []int32
	seq    []int32    // of a slot
	slot   []ieg.Slot // of a sequence
	bytes  int64      // of one token's KV
	// deferred: copies between streams wait for the next decode.
	deferred   bool
	blob       []byte
	blobOf     ieg.Slot
	blobTokens int32
	// pruned: an export lacks tokens that sliding windows have left.
	pruned bool
	blocks *blocks // nil: rows can't be read
}

func newSlots(c *engineContext, tokenBytes int64) *slots {
	s := &slots{c: c, tokens: make([]int32, c.shape.slots), bytes: tokenBytes, blobOf: ieg.NoSlot}
	for i := range c.shape.slots {
		s.seq, s.slot = append(s.seq, i), append(s.slot, ieg.Slot(i))
	}
	return s
}

func (s *slots) valid(slot ieg.Slot) bool { return slot >= 0 && int(slot) < len(s.tokens) }

// trim keeps the first n tokens of a slot.
func (s *slots) trim(slot ieg.Slot, n int32) error {
	if !s.c.trim(s.seq[slot], n) {
		return fmt.Errorf("slot %d: the library can't keep %d of its %d tokens", slot, n, s.tokens[slot])
	}
	s.tokens[slot] = n
	return nil
}

// apply does the operations in order and reports Saves and Loads in done. After
// a Load of bad bytes the others are done all the same.
func (s *slots) apply(ops []ieg.KVOp, done *ieg.StepDone) error {
	whole := s.copyWhole(ops)
	s.blobOf = ieg.NoSlot
	var bad error
	for i := range ops {
		op := &ops[i]
		if engine.Moot(ops, i, done.Copies) {
			continue
		}
		var err error
		if op.Kind == ieg.KVSave || op.Kind == ieg.KVLoad {
			c := ieg.CopyDone{Op: int32(i)}
			if err = s.copyBlocks(ops, i, &c); err != nil {
				err = fmt.Errorf("operation %d: %w", i, err)
			}
			if err == nil || c.Bad != 0 {
				done.Copies = append(done.Copies, c)
			}
		} else {
			err = s.change(i, op, whole)
		}
		if err != nil {
			bad = errors.Join(bad, err)
			if n := len(done.Copies); n == 0 || done.Copies[n-1].Bad == 0 {
				return bad
			}
		}
		if op.To == s.blobOf && op.Kind != ieg.KVSave {
			s.blobOf = ieg.NoSlot
		}
	}
	return bad
}

// copyBlocks does a Save or Load.
func (s *slots) copyBlocks(ops []ieg.KVOp, i int, done *ieg.CopyDone) error {
	if s.blocks == nil || s.blocks.arena == nil {
		return fmt.Errorf("%w: this engine's KV can't leave it", ieg.ErrUnsupported)
	}
	if err := engine.CheckNext(ops, i); err != nil {
		return err
	}
	return s.blocks.do(&ops[i], done)
}

// change does a Trim or Copy.
func (s *slots) change(i int, op *ieg.KVOp, whole bool) error {
	if !s.valid(op.To) || op.Kind == ieg.KVCopy && !s.valid(op.From) {
		return fmt.Errorf("operation %d: slots %d and %d of %d", i, op.From, op.To, len(s.tokens))
	}
	holder := op.To
	if op.Kind == ieg.KVCopy {
		holder = op.From
	}
	if op.N < 0 || op.N > s.tokens[holder] {
		return fmt.Errorf("operation %d: %d tokens of slot %d, which holds %d", i, op.N, holder, s.tokens[holder])
	}
	if op.Kind == ieg.KVTrim {
		return s.trim(op.To, op.N)
	}
	return s.copy(op.From, op.To, op.N, whole)
}

// copy makes the first n tokens of a slot the content of another.
func (s *slots) copy(from, to ieg.Slot, n int32, whole bool) error {
	switch {
	case from == to:
		return s.trim(to, n)
	case n == 0:
		return s.trim(to, 0)
	case s.c.shape.layout == ieg.Unified:
		if err := s.trim(to, 0); err != nil {
			return err
		}
		_ = yz.MemorySeqCp(s.c.mem, yz.SeqId(s.seq[from]), yz.SeqId(s.seq[to]), 0, yz.Pos(n))
		s.tokens[to] = n
		return nil
	case whole:
		// The library copies the whole stream, at the next decode; what is
		// removed until then is removed from the copy.
		_ = yz.MemorySeqCp(s.c.mem, yz.SeqId(s.seq[from]), yz.SeqId(s.seq[to]), -1, -1)
		s.deferred = true
		s.tokens[to] = s.tokens[from]
		return s.trim(to, n)
	}
	return s.copyBytes(from, to, n)
}

// copyBytes copies by export and import. The export is kept for the next copy
// from the same slot.
func (s *slots) copyBytes(from, to ieg.Slot, n int32) error {
	if s.blocks != nil && s.blocks.inPlace {
		return s.blocks.copyRows(from, to, n)
	}
	if err := s.exportOnce(from, n); err != nil {
		return err
	}
	if err := s.load(to, s.blob); err != nil {
		s.tokens[to] = 0
		return err
	}
	s.tokens[to] = s.blobTokens
	return s.trim(to, n)
}

// exportOnce has in blob the first n tokens of a slot, or more.
func (s *slots) exportOnce(slot ieg.Slot, n int32) (err error) {
	if s.blobOf == slot && s.blobTokens >= n {
		return nil
	}
	s.blobOf = ieg.NoSlot
	if s.blob, s.blobTokens, err = s.export(slot, n, s.blob); err == nil {
		s.blobOf = slot
	}
	return err
}

// export writes the first n tokens of a slot, or all, into buf, which may be
// nil or too small. It tells how many.
func (s *slots) export(slot ieg.Slot, n int32, buf []byte) ([]byte, int32, error) {
	var err error
	if s.blocks != nil && s.blocks.direct {
		buf, err = s.blocks.whole(slot, int(n), buf)
		return buf, n, err
	}
	if buf, err = s.c.export(s.seq[slot], buf); err != nil {
		err = fmt.Errorf("slot %d: %w", slot, err)
	}
	return buf, s.tokens[slot], err
}

// load replaces a slot's KV by an export.
func (s *slots) load(slot ieg.Slot, blob []byte) error {
	if got := yz.StateSeqSetData(s.c.ctx, blob, yz.SeqId(s.seq[slot])); got != uint64(len(blob)) {
		return fmt.Errorf("slot %d: imported %d of %d bytes", slot, got, len(blob))
	}
	return nil
}

// swap exchanges the streams of two slots, with what they hold.
func (s *slots) swap(a, b ieg.Slot) error {
	if s.blocks != nil && s.blocks.inPlace {
		s.blocks.swapRows(a, b)
		s.exchange(a, b)
		return errors.Join(s.blocks.mark(a, s.tokens[a]), s.blocks.mark(b, s.tokens[b]))
	}
	blobs := [2][]byte{}
	for i, slot := range []ieg.Slot{a, b} {
		if s.tokens[slot] == 0 {
			continue
		}
		var err error
		if blobs[i], _, err = s.export(slot, s.tokens[slot], nil); err != nil {
			return err
		}
	}
	s.exchange(a, b)
	for i, slot := range []ieg.Slot{a, b} {
		held := s.tokens[slot]
		if held == 0 {
			if err := s.trim(slot, 0); err != nil {
				return err
			}
			continue
		}
		if err := s.load(slot, blobs[i]); err != nil {
			s.tokens[slot] = 0
			return err
		}
	}
	return nil
}

// swapSeconds is about what a swap takes of two streams that hold so many bytes
// together.
func (s *slots) swapSeconds(bytes float64) float64 {
	if s.blocks != nil && s.blocks.inPlace {
		return 2 * bytes / copyRate // by way of a buffer
	}
	return bytes/exportRate + bytes/importRate
}

// exchange gives two slots each other's stream.
func (s *slots) exchange(a, b ieg.Slot) {
	s.seq[a], s.seq[b] = s.seq[b], s.seq[a]
	s.slot[s.seq[a]], s.slot[s.seq[b]] = a, b
}

// held is the number of tokens that the library says a slot holds.
func (s *slots) held(slot ieg.Slot) int32 { return s.c.held(s.seq[slot]) }

// copyWhole chooses how a batch's copies between streams are made: whole
// streams by the library, or only the tokens held, by export and import. One
// way serves all of a batch, since deferred copies must not meet others.
func (s *slots) copyWhole(ops []ieg.KVOp) bool {
	if s.blocks != nil {
		// What waits for the next decode can't be saved.
		return false
	}
	if s.c.shape.layout != ieg.Streams || s.deferred || s.pruned || !s.c.shape.flash {
		// Without flash attention V is stored column by column: export crawls.
		return true
	}
	whole, bytes, last := 0.0, 0.0, ieg.NoSlot
	for _, op := range ops {
		if op.Kind != ieg.KVCopy || !s.valid(op.From) || op.From == op.To {
			continue
		}
		held := float64(int64(s.tokens[op.From]) * s.bytes)
		whole += float64(int64(s.c.shape.slotTokens)*s.bytes) / copyRate
		bytes += held / importRate
		if op.From != last {
			bytes += held / exportRate
			last = op.From
		}
	}
	return whole <= bytes
}

// dropBlob forgets the export once a batch is done with it. Its memory is kept
// if it is small: to fill new memory takes five times as long.
func (s *slots) dropBlob() {
	s.blobOf = ieg.NoSlot
	if cap(s.blob) > keepBlobBytes {
		s.blob = nil
	}
	if s.blocks != nil && !s.blocks.reserved && cap(s.blocks.state) > keepStateBytes {
		s.blocks.state = nil
	}
}
