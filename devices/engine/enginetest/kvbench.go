package enginetest

import (
	"slices"

	"ieg"
	"ieg/devices/engine"
)

// unwritten is what fresh pages hold.
const unwritten = 0xA5

// text is a prompt of n tokens, another one for each turn.
func (b *bench) text(n, turn int) []ieg.Token {
	from := slices.Concat(b.prompt[turn:], b.prompt[:turn])
	return slices.Repeat(from, n/len(from)+1)[:n]
}

// rowTokens is the length of a row of full blocks and a tail, two blocks if
// the slots have room.
func (b *bench) rowTokens() int {
	for _, blocks := range []int{2, 1} {
		if n := blocks*ieg.BlockTokens + tailTokens; n+outputTokens <= int(b.info.SlotTokens) {
			return n
		}
	}
	b.Skipf("slots of %d tokens have no room for a block of %d, a tail of %d and %d more",
		b.info.SlotTokens, ieg.BlockTokens, tailTokens, outputTokens)
	return 0
}

// extent gives a block fresh pages, from the arena's last one down.
func (b *bench) extent(start, n int32) ieg.Extent {
	b.Helper()
	size := engine.BlockBytes(b.o.Arena, ieg.CodecRaw, b.info.KVToken, n)
	page := int64(b.o.Arena.PageBytes())
	e := ieg.Extent{Start: start, N: n, Bytes: size}
	for range (size + page - 1) / page {
		if b.pages == b.o.Arena.Pages() {
			b.Fatalf("the suite needs more than the arena's %d pages", b.pages)
		}
		b.pages++
		p := ieg.Page(b.o.Arena.Pages() - b.pages)
		fill(b.o.Arena.Page(p))
		e.Pages = append(e.Pages, p)
	}
	return e
}

func fill(p []byte) {
	for i := range p {
		p[i] = unwritten
	}
}

// extents gives fresh pages to the blocks of a row of n tokens.
func (b *bench) extents(n int) (list []ieg.Extent) {
	b.Helper()
	for at := 0; at < n; at += ieg.BlockTokens {
		list = append(list, b.extent(int32(at), int32(min(n-at, ieg.BlockTokens))))
	}
	return list
}

// saveOp saves n tokens of an extent, whose digest is of those before, from its
// token at on.
func saveOp(slot ieg.Slot, e *ieg.Extent, at, n int32) ieg.KVOp {
	op := ieg.KVOp{Kind: ieg.KVSave, From: slot, To: ieg.NoSlot, Start: e.Start + at, N: n, Sum: e.Digest, Extents: []ieg.Extent{*e}}
	op.Extents[0].Digest = 0
	return op
}

// loadOp loads n tokens from start on.
func loadOp(slot ieg.Slot, start, n int32, list []ieg.Extent) ieg.KVOp {
	return ieg.KVOp{Kind: ieg.KVLoad, From: ieg.NoSlot, To: slot, Start: start, N: n, Extents: list}
}

// loadPieces loads the first n tokens of a row, so many pieces at once.
func (b *bench) loadPieces(slot ieg.Slot, n int32, list []ieg.Extent, pieces int32) {
	b.Helper()
	sum := uint64(0)
	for at := int32(0); at < n; at += pieces * ieg.PieceTokens {
		op := nextLoad(slot, at, min(at+pieces*ieg.PieceTokens, n), n, sum, list)
		sum = 0
		if c := b.do(op)[0]; op.Open {
			sum = c.Digest
		} else if c.Digest != 0 {
			b.Errorf("a load up to %d of %d tokens, which proves its blocks, tells digest %016x", op.Start+op.N, n, c.Digest)
		}
	}
}

// nextLoad loads tokens [at, end) of the first n of a row, whose block at at has
// a digest of sum before that.
func nextLoad(slot ieg.Slot, at, end, n int32, sum uint64, list []ieg.Extent) ieg.KVOp {
	first, last := at/ieg.BlockTokens, (end-1)/ieg.BlockTokens
	op := loadOp(slot, at, end-at, list[first:last+1])
	op.Sum = sum
	op.Open = end < n && end < list[last].Start+list[last].N
	return op
}

// loadsOn are the loads of a row's first n tokens, so many pieces with each, in
// one batch.
func loadsOn(slot ieg.Slot, n int32, list []ieg.Extent, pieces int32) (ops []ieg.KVOp) {
	for at := int32(0); at < n; at += pieces * ieg.PieceTokens {
		op := nextLoad(slot, at, min(at+pieces*ieg.PieceTokens, n), n, 0, list)
		op.Next = at > op.Extents[0].Start
		ops = append(ops, op)
	}
	return ops
}

// copies checks that the copies of a batch were all done.
func (b *bench) copies(batch *ieg.Batch, done *ieg.StepDone) {
	b.Helper()
	var want []int32
	for i := range batch.Ops {
		if k := batch.Ops[i].Kind; k == ieg.KVSave || k == ieg.KVLoad {
			want = append(want, int32(i))
		}
	}
	if len(done.Copies) != len(want) {
		b.Fatalf("step %d: %d copies reported of %d: %s", b.step, len(done.Copies), len(want), done.Err)
	}
	for i, c := range done.Copies {
		if c.Op != want[i] || c.Bad != 0 || c.Took < 0 {
			b.Fatalf("step %d: copy %+v of operation %d", b.step, c, want[i])
		}
	}
}

// do runs operations alone.
func (b *bench) do(ops ...ieg.KVOp) []ieg.CopyDone {
	b.Helper()
	batch := ieg.Batch{Ops: ops}
	done := b.run(batch)
	b.copies(&batch, done)
	return done.Copies
}

// save saves the blocks of a slot side by side, so many tokens at once, and
// fills in their digests.
func (b *bench) save(slot ieg.Slot, list []ieg.Extent, per int32) {
	b.Helper()
	for at := int32(0); ; at += per {
		var ops []ieg.KVOp
		var of []int
		for i := range list {
			if e := &list[i]; at < e.N {
				ops, of = append(ops, saveOp(slot, e, at, min(per, e.N-at))), append(of, i)
			}
		}
		if len(ops) == 0 {
			break
		}
		for i, c := range b.do(ops...) {
			list[of[i]].Digest = c.Digest
		}
	}
	for i := range list {
		b.proof(&list[i])
	}
}

// proof checks a saved block's digest, and that nothing was written behind it.
func (b *bench) proof(e *ieg.Extent) {
	b.Helper()
	if got := b.digest(e, e.Bytes); got != e.Digest {
		b.Fatalf("the bytes of the block at %d have digest %016x, reported was %016x", e.Start, got, e.Digest)
	}
	size := int64(b.o.Arena.PageBytes())
	last := b.o.Arena.Page(e.Pages[len(e.Pages)-1])
	for i := e.Bytes - size*int64(len(e.Pages)-1); i < size; i++ {
		if last[i] != unwritten {
			b.Fatalf("byte %d of the last page of the block at %d was written; the block has %d bytes", i, e.Start, e.Bytes)
		}
	}
}

// digest is that of the first n bytes of a block.
func (b *bench) digest(e *ieg.Extent, n int64) uint64 {
	return engine.Place{Arena: b.o.Arena, Pages: e.Pages}.Digest(0, 0, n)
}

// resaved saves a slot again and checks that the bytes are the same.
func (b *bench) resaved(what string, slot ieg.Slot, list []ieg.Extent) {
	b.Helper()
	for i := range list {
		again := []ieg.Extent{b.extent(list[i].Start, list[i].N)}
		b.save(slot, again, ieg.BlockTokens)
		if again[0].Digest != list[i].Digest {
			b.Fatalf("%s: the block at %d was saved with digest %016x, and again with %016x", what, list[i].Start, list[i].Digest, again[0].Digest)
		}
	}
}

// row computes a text alone in a cleared engine and draws its first token.
func (b *bench) row(slot ieg.Slot, text []ieg.Token) (ieg.SeqStart, output) {
	b.Helper()
	b.clear()
	s := b.start(slot, text)
	s.Sampling.IgnoreEOS = true
	return s, b.prefill(s, nil, 0, b.info.StepTokens)
}

// savedRow computes a text alone in slot 0, draws its first token, and saves the
// row.
func (b *bench) savedRow(text []ieg.Token) (first output, list []ieg.Extent) {
	b.Helper()
	_, first = b.row(0, text)
	list = b.extents(len(text))
	b.save(0, list, ieg.BlockTokens)
	return first, list
}

// empty checks that a slot holds nothing.
func (b *bench) empty(what string, slot ieg.Slot) {
	b.Helper()
	if trim := b.try(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot, N: 1}}}); trim.Outcome != ieg.StepFailed {
		b.Errorf("%s: the slot is not empty", what)
	}
}

// undisturbed computes a text alone in a cleared engine and draws n tokens.
func (b *bench) undisturbed(text []ieg.Token, n int) output {
	b.Helper()
	s, out := b.row(0, text)
	b.decode(s, &out, n)
	return out
}

// resume goes on with a row whose first token was drawn, in a slot that holds
// its prompt after ops, to n tokens in all.
func (b *bench) resume(slot ieg.Slot, prompt []ieg.Token, first output, n int, ops ...ieg.KVOp) output {
	b.Helper()
	s := b.start(slot, slices.Concat(prompt, first.tokens))
	s.Prompt, s.Sampling.IgnoreEOS = int32(len(prompt)), true
	next := b.prefill(s, ops, int32(len(s.Tokens)-1), 1)
	b.decode(s, &next, n-len(first.tokens))
	next.tokens = slices.Concat(first.tokens, next.tokens)
	next.text = slices.Concat(first.text, next.text)
	return next
}
