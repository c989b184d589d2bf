package enginetest

import (
	"fmt"
	"strings"
	"testing"

	"ieg"
	"ieg/devices/engine"
)

// testBadBytes loads blocks that were changed in the arena: the slot is empty
// then, no work is done, and the engine goes on.
func testBadBytes(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	first, good := b.savedRow(text)
	bad := b.extents(len(text))
	b.save(0, bad, ieg.BlockTokens)
	last := len(bad) - 1
	for _, c := range []struct {
		name  string
		which int
		at    int64 // byte of that block; -1: its digest
		n     int32 // tokens loaded
	}{
		{"the first byte", 0, 0, n},
		{"a byte inside", 0, bad[0].Bytes / 2, n},
		{"the last byte", last, bad[last].Bytes - 1, n},
		{"a byte behind the part that is loaded", last, bad[last].Bytes - 1, n - tailTokens + 1},
		{"the digest", last, -1, n},
	} {
		undo := b.damage(&bad[c.which], c.at)
		b.clear()
		b.do(loadOp(0, 0, n, good))
		other := b.start(0, b.prompt)
		work := []ieg.Work{{Seq: other.Seq, N: int32(len(b.prompt)), Sample: true}}
		done := b.try(ieg.Batch{
			New: []ieg.SeqStart{other}, Work: work,
			Ops: []ieg.KVOp{loadOp(0, 0, c.n, bad), loadOp(1, 0, n, good)},
		})
		if done.Outcome != ieg.StepFailed || len(done.Results) != 0 || len(done.Copies) != 2 {
			t.Fatalf("%s: outcome %d, %d results, %d copies: %s; want a refusal and both copies", c.name, done.Outcome, len(done.Results), len(done.Copies), done.Err)
		}
		if got := done.Copies; got[0].Op != 0 || got[0].Bad != int32(c.which)+1 || got[1].Op != 1 || got[1].Bad != 0 {
			t.Errorf("%s: %+v; want extent %d of the first bad", c.name, got, c.which)
		}
		b.empty(c.name, 0)
		b.same("beside bad bytes", want, b.resume(1, text, first, outputTokens))
		b.run(ieg.Batch{Work: work})
		undo()
	}
	b.clear()
	b.same("after bad bytes", want, b.resume(0, text, first, outputTokens, loadOp(0, 0, n, bad)))
}

// testBadPieces loads a block piece by piece of which one byte was changed: that
// is known once the block is whole, if not before, and the slot is empty then.
func testBadPieces(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	first, list := b.savedRow(text)
	for piece := int64(0); piece < ieg.BlockTokens/ieg.PieceTokens; piece++ {
		undo := b.damage(&list[0], (2*piece+1)*list[0].Bytes/(2*ieg.BlockTokens/ieg.PieceTokens))
		b.clear()
		sum := uint64(0)
		for at := int32(0); at < ieg.BlockTokens; at += ieg.PieceTokens {
			op := nextLoad(0, at, at+ieg.PieceTokens, n, sum, list)
			done := b.try(ieg.Batch{Ops: []ieg.KVOp{op}})
			if len(done.Copies) != 1 {
				t.Fatalf("piece %d: %d copies are reported, not 1: %s", piece, len(done.Copies), done.Err)
			}
			bad := done.Copies[0].Bad
			if (bad != 0) != (done.Outcome == ieg.StepFailed) || !op.Open && bad == 0 {
				t.Errorf("piece %d: load up to %d: outcome %d, copy %+v", piece, at+ieg.PieceTokens, done.Outcome, done.Copies[0])
			}
			if sum = done.Copies[0].Digest; bad != 0 {
				break
			}
		}
		b.empty(fmt.Sprintf("piece %d", piece), 0)
		undo()
	}
	b.clear()
	b.loadPieces(0, n, list, 1)
	b.same("after bad pieces", want, b.resume(0, text, first, outputTokens))
}

// testBadLoadsOn loads a row by operations of one batch, one byte of which was
// changed: nothing of it is told or kept behind the bad block, and others are
// loaded.
func testBadLoadsOn(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	first, good := b.savedRow(text)
	bad := b.extents(len(text))
	b.save(0, bad, ieg.BlockTokens)
	undo := b.damage(&bad[0], bad[0].Bytes/2)
	for _, pieces := range []int32{1, 2, 3, 5} {
		b.clear()
		ops := append(loadsOn(0, n, bad, pieces), loadOp(1, 0, n, good))
		done := b.try(ieg.Batch{Ops: ops})
		if last := len(done.Copies) - 1; done.Outcome != ieg.StepFailed || last < 1 {
			t.Fatalf("%d pieces at once: outcome %d, copies %+v: %s", pieces, done.Outcome, done.Copies, done.Err)
		} else if c := done.Copies[last]; int(c.Op) != len(ops)-1 || c.Bad != 0 {
			t.Errorf("%d pieces at once: the load of another row is %+v", pieces, c)
		} else if c = done.Copies[last-1]; c.Bad == 0 || ops[c.Op].Extents[c.Bad-1].Start != 0 {
			t.Errorf("%d pieces at once: the last copy of the bad row is %+v, operation %+v", pieces, c, ops[c.Op])
		}
		b.empty(fmt.Sprintf("%d pieces at once", pieces), 0)
		b.same("beside bad bytes", want, b.resume(1, text, first, outputTokens))
	}
	undo()
	b.clear()
	b.same("after bad bytes", want, b.resume(0, text, first, outputTokens, loadsOn(0, n, bad, 1)...))
}

// damage flips a bit of a block's byte or of its digest.
func (b *bench) damage(e *ieg.Extent, at int64) (undo func()) {
	if at < 0 {
		e.Digest ^= 1 << 40
		return func() { e.Digest ^= 1 << 40 }
	}
	flip := func() {
		var p [1]byte
		place := engine.Place{Arena: b.o.Arena, Pages: e.Pages}
		place.Read(at, p[:])
		p[0] ^= 0x10
		place.Write(at, p[:])
	}
	flip()
	return flip
}

// refusal is a copy that breaks the contract.
type refusal struct {
	name string
	edit func(*ieg.KVOp)
}

// first edits the op's first extent.
func first(name string, edit func(*ieg.Extent)) refusal {
	return refusal{name, func(op *ieg.KVOp) { edit(&op.Extents[0]) }}
}

// refusals are those of both kinds of copies.
func (b *bench) refusals() []refusal {
	slots := ieg.Slot(b.info.Slots)
	list := []refusal{
		{"slot that does not exist", func(op *ieg.KVOp) { op.From, op.To = slots, slots }},
		{"negative slot", func(op *ieg.KVOp) { op.From, op.To = -1, -1 }},
		{"no tokens", func(op *ieg.KVOp) { op.N = 0 }},
		{"fewer than no tokens", func(op *ieg.KVOp) { op.N = -ieg.PieceTokens }},
		{"negative start", func(op *ieg.KVOp) { op.Start = -ieg.BlockTokens }},
		{"start inside a piece", func(op *ieg.KVOp) { op.Start++ }},
		{"goes on with nothing", func(op *ieg.KVOp) { op.Next = true }},
		{"digest of no pieces", func(op *ieg.KVOp) { op.Sum = 1 }},
		{"start far away", func(op *ieg.KVOp) { op.Start = 1 << 30 }},
		{"more tokens than there are", func(op *ieg.KVOp) { op.N = 1<<31 - ieg.BlockTokens }},
		{"no extent", func(op *ieg.KVOp) { op.Extents = nil }},
		{"twice the extent", func(op *ieg.KVOp) { op.Extents = append(op.Extents[:1:1], op.Extents[0]) }},
		first("a page too few", func(e *ieg.Extent) { e.Pages = e.Pages[1:] }),
		first("a page too many", func(e *ieg.Extent) { e.Pages = append(e.Pages[:1:1], e.Pages...) }),
		first("page that does not exist", func(e *ieg.Extent) { e.Pages[0] = ieg.Page(b.o.Arena.Pages()) }),
		first("page far away", func(e *ieg.Extent) { e.Pages[0] = 1<<32 - 1 }),
		first("a byte too few", func(e *ieg.Extent) { e.Bytes-- }),
		first("negative bytes", func(e *ieg.Extent) { e.Bytes = -e.Bytes }),
		first("block without tokens", func(e *ieg.Extent) { e.N = 0 }),
		first("block that is too long", func(e *ieg.Extent) { e.N = ieg.BlockTokens + 1 }),
		first("block at a wrong start", func(e *ieg.Extent) { e.Start += ieg.PieceTokens }),
		first("block of other tokens", func(e *ieg.Extent) { e.Start += ieg.BlockTokens }),
		first("block far away", func(e *ieg.Extent) { e.Start = 1<<31 - ieg.BlockTokens }),
	}
	if !b.info.KVINT8 {
		list = append(list, first("codec that the engine has not", func(e *ieg.Extent) { e.Codec = ieg.CodecINT8 }))
	}
	return list
}

// testCopyRefused sends copies that break the contract; each is refused with
// numbers, and neither the row nor the pages change.
func testCopyRefused(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	s, out := b.row(0, text)
	list := b.extents(len(text))
	b.save(0, list, ieg.BlockTokens)
	saves := append(b.refusals(),
		refusal{"half a piece", func(op *ieg.KVOp) { op.N = ieg.PieceTokens / 2 }},
		refusal{"beyond the block", func(op *ieg.KVOp) { op.N += ieg.PieceTokens }})
	loads := append(b.refusals(),
		refusal{"extents in another order", func(op *ieg.KVOp) { op.Extents[0], op.Extents[1] = op.Extents[1], op.Extents[0] }},
		refusal{"an extent that is not needed", func(op *ieg.KVOp) { op.N = ieg.PieceTokens }},
		refusal{"more than the extents hold", func(op *ieg.KVOp) { op.N++ }},
		refusal{"open at the end of its block", func(op *ieg.KVOp) { op.Open = true }},
		refusal{"open inside a piece", func(op *ieg.KVOp) { op.Open, op.N = true, op.N-1 }},
		refusal{"behind more than is held", func(op *ieg.KVOp) {
			op.To, op.Start, op.N, op.Extents = 1, ieg.BlockTokens, op.N-ieg.BlockTokens, op.Extents[1:]
		}})
	next := []ieg.Work{{Seq: s.Seq, Start: n, N: 1, Sample: true}}
	refuse := func(kind string, c refusal, op ieg.KVOp) {
		t.Helper()
		op.Extents = clone(op.Extents)
		c.edit(&op)
		done := b.try(ieg.Batch{Ops: []ieg.KVOp{op}, Work: next})
		if done.Outcome != ieg.StepFailed || len(done.Results) != 0 || len(done.Copies) != 0 {
			t.Errorf("%s, %s: outcome %d, %d results, copies %+v; want a refusal", kind, c.name, done.Outcome, len(done.Results), done.Copies)
		} else if !strings.ContainsAny(done.Err, "0123456789") {
			t.Errorf("%s, %s: %q tells no numbers", kind, c.name, done.Err)
		}
	}
	for _, c := range saves {
		e := list[0]
		e.Digest = 0
		refuse("save", c, saveOp(0, &e, 0, e.N))
	}
	for _, c := range loads {
		refuse("load", c, loadOp(0, 0, n, list))
	}
	for i := range list {
		b.proof(&list[i])
	}
	b.resaved("after refusals", 0, list)
	b.decode(s, &out, outputTokens)
	b.same("after refusals", want, out)
}

// clone copies extents with their pages.
func clone(list []ieg.Extent) []ieg.Extent {
	out := make([]ieg.Extent, len(list))
	for i, e := range list {
		out[i] = e
		out[i].Pages = append([]ieg.Page(nil), e.Pages...)
	}
	return out
}
