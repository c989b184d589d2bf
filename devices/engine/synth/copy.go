package synth

import (
	"encoding/binary"
	"fmt"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// A token's KV in a block is KVToken bytes, in words of eight, least byte
// first: the hash of the prefix up to and with it, the hash of the prefix
// before it, and words made of both. So a load sees a byte out of place, and
// a token that does not follow the one before it.
const words = KVToken / 8

func encodeToken(b *[KVToken]byte, before, hash uint64) {
	binary.LittleEndian.PutUint64(b[0:], hash)
	binary.LittleEndian.PutUint64(b[8:], before)
	for i := 2; i < words; i++ {
		binary.LittleEndian.PutUint64(b[8*i:], mix(hash^before, uint64(i)))
	}
}

// decodeToken returns the hash of the prefix that ends with the token, if it
// follows the prefix before.
func decodeToken(b *[KVToken]byte, before uint64) (hash uint64, err error) {
	hash = binary.LittleEndian.Uint64(b[:])
	if has := binary.LittleEndian.Uint64(b[8:]); has != before {
		return 0, fmt.Errorf("it follows the prefix %016x, not %016x", has, before)
	}
	for i := 2; i < words; i++ {
		if has, want := binary.LittleEndian.Uint64(b[8*i:]), mix(hash^before, uint64(i)); has != want {
			return 0, fmt.Errorf("word %d of it is %016x, not %016x", i, has, want)
		}
	}
	return hash, nil
}

// copyKV does a Save or Load and reports it. The error is a breach of the
// contract: nothing is copied then, or, of a Load of bytes whose digest is
// right and which are no KV of this prefix, the slot is empty.
func (r *Runner) copyKV(op *ieg.KVOp, done *ieg.CopyDone) error {
	held := func(s ieg.Slot) int32 { return int32(len(r.kv.slots[s])) }
	if err := engine.CheckCopy(op, &r.info, r.arena, held); err != nil {
		return err
	}
	var bytes int64
	if op.Kind == ieg.KVSave {
		bytes = r.save(op, done)
	} else {
		var err error
		if bytes, err = r.load(op, done); err != nil {
			return err
		}
	}
	r.sum = done.Digest
	done.Took = time.Duration(r.spec.CopyNS * bytes / 1024)
	done.Ran = done.Took
	if r.spec.Sleep && done.Took > 0 {
		r.wait(done.Took)
	}
	return nil
}

// save writes the tokens and returns how many bytes that were.
func (r *Runner) save(op *ieg.KVOp, done *ieg.CopyDone) int64 {
	e := &op.Extents[0]
	place := engine.Place{Arena: r.arena, Pages: e.Pages}
	var buf [KVToken]byte
	off := int64(op.Start-e.Start) * KVToken
	done.Digest = r.before(op)
	for i := range op.N {
		at := op.Start + i
		encodeToken(&buf, r.kv.prefix(op.From, at, r.root), r.kv.prefix(op.From, at+1, r.root))
		place.Write(off, buf[:])
		done.Digest = r.arena.Digest(done.Digest, buf[:])
		off += KVToken
	}
	return int64(op.N) * KVToken
}

// before is the digest of what precedes an op of its first block.
func (r *Runner) before(op *ieg.KVOp) uint64 {
	if op.Next {
		return r.sum
	}
	return op.Sum
}

// load proves the extents, then fills the slot.
func (r *Runner) load(op *ieg.KVOp, done *ieg.CopyDone) (bytes int64, err error) {
	if free := r.kv.most - r.kv.used + r.kv.freed(op.To, int(op.Start)); int(op.N) > free {
		return 0, fmt.Errorf("load into slot %d: no cells: %d tokens, %d of %d cells free", op.To, op.N, free, r.kv.most)
	}
	end := op.Start + op.N
	for i := range op.Extents {
		e := &op.Extents[i]
		sum, from, to := uint64(0), int64(0), e.Bytes
		if i == 0 {
			sum, from = r.before(op), int64(op.Start-e.Start)*KVToken
		}
		open := op.Open && i == len(op.Extents)-1
		if open {
			to = int64(end-e.Start) * KVToken
		}
		bytes += to - from
		switch sum = (engine.Place{Arena: r.arena, Pages: e.Pages}).Digest(sum, from, to-from); {
		case open:
			done.Digest = sum
		case sum != e.Digest:
			r.kv.trim(op.To, 0)
			done.Bad = int32(i) + 1
			return bytes, nil
		}
	}
	r.kv.trim(op.To, int(op.Start))
	for i := range op.Extents {
		e := &op.Extents[i]
		if err := r.fill(op.To, e, max(op.Start-e.Start, 0), min(e.N, end-e.Start)); err != nil {
			r.kv.trim(op.To, 0)
			if op.Open && i == len(op.Extents)-1 {
				done.Bad = int32(i) + 1 // its digest would say so in the end
				return bytes, nil
			}
			return 0, fmt.Errorf("load into slot %d: extent %d: %w", op.To, i, err)
		}
	}
	return bytes, nil
}

// fill appends tokens [from, to) of an extent to a slot.
func (r *Runner) fill(s ieg.Slot, e *ieg.Extent, from, to int32) error {
	place := engine.Place{Arena: r.arena, Pages: e.Pages}
	var buf [KVToken]byte
	for i := from; i < to; i++ {
		place.Read(int64(i)*KVToken, buf[:])
		hash, err := decodeToken(&buf, r.kv.prefix(s, e.Start+i, r.root))
		if err != nil {
			return fmt.Errorf("token %d: %w", e.Start+i, err)
		}
		r.kv.put(s, hash)
	}
	return nil
}
