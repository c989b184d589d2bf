package llama

import (
	"fmt"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// slots is the KV of the slots as the engine accounts it: how many tokens each
// holds. A slot is the library's sequence of the same number.
type slots struct {
	c      *engineContext
	tokens []int32
	bytes  int64 // of one token's KV
	// deferred: copies between streams wait for the next decode.
	deferred bool
	blob     []byte
	blobOf   ieg.Slot
}

func newSlots(c *engineContext, tokenBytes int64) *slots {
	return &slots{c: c, tokens: make([]int32, c.shape.slots), bytes: tokenBytes}
}

func (s *slots) valid(slot ieg.Slot) bool { return slot >= 0 && int(slot) < len(s.tokens) }

// trim keeps the first n tokens of a slot.
func (s *slots) trim(slot ieg.Slot, n int32) error {
	if !s.c.trim(int32(slot), n) {
		return fmt.Errorf("slot %d: the library can't keep %d of its %d tokens", slot, n, s.tokens[slot])
	}
	s.tokens[slot] = n
	return nil
}

// apply does the operations in order.
func (s *slots) apply(ops []ieg.KVOp) error {
	whole := s.copyWhole(ops)
	s.blobOf = ieg.NoSlot
	for i, op := range ops {
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
		var err error
		if op.Kind == ieg.KVTrim {
			err = s.trim(op.To, op.N)
		} else {
			err = s.copy(op.From, op.To, op.N, whole)
		}
		if err != nil {
			return err
		}
		if op.To == s.blobOf {
			s.blobOf = ieg.NoSlot
		}
	}
	return nil
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
		_ = yz.MemorySeqCp(s.c.mem, yz.SeqId(from), yz.SeqId(to), 0, yz.Pos(n))
		s.tokens[to] = n
		return nil
	case whole:
		// The library copies the whole stream, at the next decode; what is
		// removed until then is removed from the copy.
		_ = yz.MemorySeqCp(s.c.mem, yz.SeqId(from), yz.SeqId(to), -1, -1)
		s.deferred = true
		s.tokens[to] = s.tokens[from]
		return s.trim(to, n)
	}
	return s.copyBytes(from, to, n)
}

// copyBytes copies by export and import. The export is kept for the next copy
// from the same slot.
func (s *slots) copyBytes(from, to ieg.Slot, n int32) error {
	if s.blobOf != from {
		size := yz.StateSeqGetSize(s.c.ctx, yz.SeqId(from))
		if uint64(cap(s.blob)) < size {
			s.blob = make([]byte, size)
		}
		s.blob = s.blob[:size]
		if got := yz.StateSeqGetData(s.c.ctx, s.blob, yz.SeqId(from)); got != size {
			return fmt.Errorf("slot %d: exported %d of %d bytes", from, got, size)
		}
		s.blobOf = from
	}
	if got := yz.StateSeqSetData(s.c.ctx, s.blob, yz.SeqId(to)); got != uint64(len(s.blob)) {
		s.tokens[to] = 0
		return fmt.Errorf("slot %d: imported %d of %d bytes from slot %d", to, got, len(s.blob), from)
	}
	s.tokens[to] = s.tokens[from]
	return s.trim(to, n)
}

// copyWhole chooses how a batch's copies between streams are made: whole
// streams by the library, or only the tokens held, by export and import. One
// way serves all of a batch, since deferred copies must not meet others.
func (s *slots) copyWhole(ops []ieg.KVOp) bool {
	if s.c.shape.layout != ieg.Streams || s.deferred || !s.c.shape.flash {
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

// dropBlob frees the export's memory once a batch is done with it.
func (s *slots) dropBlob() {
	s.blob, s.blobOf = nil, ieg.NoSlot
}
