package enginetest

import (
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// testSaveLoad saves a row in pieces of several operations, loads it into
// another slot of a cleared engine and goes on there.
func testSaveLoad(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	last := ieg.Slot(b.info.Slots - 1)
	want := b.undisturbed(text, outputTokens)
	for _, pieces := range []int32{1, 2, 3, 4} {
		_, first := b.row(0, text)
		list := b.extents(len(text))
		b.save(0, list, pieces*ieg.PieceTokens)
		b.clear()
		b.do(loadOp(last, 0, int32(len(text)), list))
		b.resaved("after a load", last, list)
		b.same("after a load", want, b.resume(last, text, first, outputTokens))
	}
}

// testSaveOn saves a row in one batch of operations that go on with each other.
func testSaveOn(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	_, first := b.row(0, text)
	list := b.extents(len(text))
	for _, pieces := range []int32{1, 3} {
		var ops []ieg.KVOp
		var last []int // operation of each block
		for i := range list {
			e := list[i]
			e.Digest = 0
			for at := int32(0); at < e.N; at += pieces * ieg.PieceTokens {
				op := saveOp(0, &e, at, min(pieces*ieg.PieceTokens, e.N-at))
				op.Next = at > 0
				ops = append(ops, op)
			}
			last = append(last, len(ops)-1)
		}
		done := b.do(ops...)
		for i := range list {
			list[i].Digest = done[last[i]].Digest
			b.proof(&list[i])
		}
	}
	last := ieg.Slot(b.info.Slots - 1)
	b.clear()
	b.do(loadOp(last, 0, int32(len(text)), list))
	b.same("saved as one batch", want, b.resume(last, text, first, outputTokens))
}

// testSealed saves each block as soon as it is computed, beside another
// sequence that decodes, and goes on from all of them. What was saved early
// is what the row holds at its end.
func testSealed(t *testing.T, b *bench) {
	const chunk = 100
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	other, beside := b.row(1, b.prompt)
	s := b.start(0, text)
	list := b.extents(len(text))
	batch := ieg.Batch{New: []ieg.SeqStart{s}}
	saved := 0
	var first output
	for at := int32(0); at < int32(len(text)); {
		n := min(chunk, int32(len(text))-at)
		batch.Work = []ieg.Work{
			{Seq: s.Seq, N: n, Start: at, Sample: int(at+n) == len(text)},
			{Seq: other.Seq, Slot: 1, Start: int32(len(b.prompt) + len(beside.tokens) - 1), N: 1, Sample: true},
		}
		done := b.run(batch)
		b.copies(&batch, done)
		for i, c := range done.Copies {
			list[saved-len(done.Copies)+i].Digest = c.Digest
		}
		beside.take(t, &done.Results[1])
		if at += n; batch.Work[0].Sample {
			first.take(t, &done.Results[0])
		}
		batch = ieg.Batch{}
		for saved < len(list) && list[saved].Start+list[saved].N <= at {
			batch.Ops = append(batch.Ops, saveOp(0, &list[saved], 0, list[saved].N))
			saved++
		}
	}
	for i, c := range b.do(batch.Ops...) {
		list[saved-len(batch.Ops)+i].Digest = c.Digest
	}
	b.resaved("sealed one by one", 0, list)
	b.clear()
	b.do(loadOp(1, 0, int32(len(text)), list))
	b.resaved("loaded after they were sealed one by one", 1, list)
	if got := b.resume(1, text, first, outputTokens); b.o.Exact {
		b.same("sealed one by one", want, got)
	}
}

// testTails saves and loads rows whose end is shorter than a block or a piece.
func testTails(t *testing.T, b *bench) {
	const n = 6
	for _, size := range []int{1, 5, 63, 64, 65, 200, 255, 256, 257} {
		if size+n > int(b.info.SlotTokens) {
			t.Logf("slots of %d tokens have no room for a row of %d", b.info.SlotTokens, size)
			continue
		}
		text := b.text(size, 0)
		want := b.undisturbed(text, n)
		_, first := b.row(0, text)
		list := b.extents(size)
		b.save(0, list, ieg.BlockTokens)
		b.clear()
		b.same("a tail", want, b.resume(1, text, first, n, loadOp(1, 0, int32(size), list)))
		b.pages = 0
	}
}

// testLoadStart loads behind the first block of a row, of which the rest was
// overwritten by another text.
func testLoadStart(t *testing.T, b *bench) {
	const keep = ieg.BlockTokens
	text := b.text(b.rowTokens(), 0)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	first, list := b.savedRow(text)
	other := b.start(0, slices.Concat(text[:keep], b.text(tailTokens, 3)))
	b.prefill(other, []ieg.KVOp{{Kind: ieg.KVTrim, To: 0, N: keep}}, keep, b.info.StepTokens)
	b.do(loadOp(0, keep, n-keep, list[1:]))
	b.resaved("behind what is kept", 0, list)
	b.same("behind what is kept", want, b.resume(0, text, first, outputTokens))
}

// testLoadPieces loads a row in pieces of several operations, all of it or a
// part, and goes on there.
func testLoadPieces(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	first, list := b.savedRow(text)
	for _, pieces := range []int32{1, 2, 3, 5} {
		b.clear()
		b.loadPieces(1, int32(len(text)), list, pieces)
		b.resaved("after a load in pieces", 1, list)
		b.same("after a load in pieces", want, b.resume(1, text, first, outputTokens))
		for _, n := range []int32{100, ieg.BlockTokens, int32(len(text)) - 1} {
			b.clear()
			b.loadPieces(0, n, list, pieces)
			s := b.start(0, text)
			s.Sampling.IgnoreEOS = true
			got := b.prefill(s, nil, n, b.info.StepTokens)
			b.decode(s, &got, outputTokens)
			if b.o.Exact {
				b.same("after a part in pieces", want, got)
			}
		}
		b.pages = len(list) * len(list[0].Pages)
	}
}

// testLoadOn loads a row by operations of one batch that go on with each other.
func testLoadOn(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	first, list := b.savedRow(text)
	for _, pieces := range []int32{1, 2, 3, 5} {
		b.clear()
		ops := loadsOn(1, int32(len(text)), list, pieces)
		for i, c := range b.do(ops...) {
			if (c.Digest != 0) != ops[i].Open {
				t.Errorf("load of tokens %d to %d (open: %t) tells digest %016x", ops[i].Start, ops[i].Start+ops[i].N, ops[i].Open, c.Digest)
			}
		}
		b.resaved("after loads that go on", 1, list)
		b.same("after loads that go on", want, b.resume(1, text, first, outputTokens))
		b.pages = len(list) * len(list[0].Pages)
	}
}

// testLoadPart loads only the beginning of the last extent and computes the
// rest.
func testLoadPart(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	_, list := b.savedRow(text)
	for _, n := range []int32{1, 64, 100, 255, int32(len(text)) - tailTokens + 64, int32(len(text)) - 1} {
		b.clear()
		blocks := (n + ieg.BlockTokens - 1) / ieg.BlockTokens
		b.do(loadOp(1, 0, n, list[:blocks]))
		if e := &list[blocks-1]; n%ieg.PieceTokens == 0 {
			part := []ieg.Extent{b.extent(e.Start, n-e.Start)}
			b.save(1, part, ieg.BlockTokens)
			if want := b.digest(e, part[0].Bytes); part[0].Digest != want {
				t.Errorf("%d tokens loaded: the last %d were saved with digest %016x, want %016x", n, n-e.Start, part[0].Digest, want)
			}
		}
		s := b.start(1, text)
		s.Sampling.IgnoreEOS = true
		got := b.prefill(s, nil, n, b.info.StepTokens)
		b.decode(s, &got, outputTokens)
		if b.o.Exact {
			b.same("after a part", want, got)
		}
	}
}

// testCopyOrder saves, overwrites, saves and loads in one batch.
func testCopyOrder(t *testing.T, b *bench) {
	text, other := b.text(b.rowTokens(), 0), b.text(b.rowTokens(), 3)
	n := int32(len(text))
	want := b.undisturbed(text, outputTokens)
	b.row(0, other)
	others := b.extents(len(other))
	b.save(0, others, ieg.BlockTokens)
	_, first := b.row(0, text)
	digests := b.extents(len(text))
	b.save(0, digests, ieg.BlockTokens)

	var ops []ieg.KVOp
	again, othersAgain := b.extents(len(text)), b.extents(len(text))
	for i := range again {
		ops = append(ops, saveOp(0, &again[i], 0, again[i].N))
		again[i].Digest = digests[i].Digest
	}
	ops = append(ops, loadOp(0, 0, n, others))
	for i := range othersAgain {
		ops = append(ops, saveOp(0, &othersAgain[i], 0, othersAgain[i].N))
	}
	b.do(append(ops, loadOp(0, 0, n, again))...)
	for i := range othersAgain {
		othersAgain[i].Digest = others[i].Digest
		b.proof(&othersAgain[i])
		b.proof(&again[i])
	}
	b.same("saved, overwritten and loaded", want, b.resume(0, text, first, outputTokens))
}

// testCopyAborted: copies of an aborted batch are done.
func testCopyAborted(t *testing.T, b *bench) {
	text := b.text(b.rowTokens(), 0)
	want := b.undisturbed(text, outputTokens)
	first, list := b.savedRow(text)
	long := b.text(int(min(b.info.StepTokens, b.info.SlotTokens-outputTokens)), 1)
	aborted := 0
	for i := range 4 {
		// The row from before is dropped, all but slot 0 emptied.
		b.do(loadOp(0, 0, int32(len(text)), list), ieg.KVOp{Kind: ieg.KVTrim, To: 1})
		other := b.start(1, long)
		batch := ieg.Batch{
			New:  []ieg.SeqStart{other},
			Ops:  []ieg.KVOp{loadOp(0, 0, int32(len(text)), list)},
			Work: []ieg.Work{{Seq: other.Seq, Slot: 1, N: int32(len(long)), Sample: true}},
		}
		again := b.extents(len(text))
		for j := range again {
			batch.Ops = append(batch.Ops, saveOp(0, &again[j], 0, again[j].N))
			again[j].Digest = list[j].Digest
		}
		done := b.tryAborted(batch, time.Duration(i+1)*time.Millisecond)
		if done.Outcome == ieg.StepAborted {
			aborted++
		}
		b.copies(&batch, done)
		for j := range again {
			b.proof(&again[j])
		}
		b.pages = len(list) * len(list[0].Pages)
	}
	t.Logf("%d of 4 aborts were in time", aborted)
	b.clear()
	b.same("after aborts", want, b.resume(1, text, first, outputTokens, loadOp(1, 0, int32(len(text)), list)))
}

// tryAborted runs a batch that is aborted every so often; it may be quicker.
func (b *bench) tryAborted(batch ieg.Batch, every time.Duration) *ieg.StepDone {
	b.Helper()
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				b.runner.Abort()
			}
		}
	}()
	done := b.try(batch)
	close(stop)
	<-gone
	if done.Outcome == ieg.StepFailed || done.Outcome == ieg.StepAborted && len(done.Results) > 0 {
		b.Fatalf("outcome %d with %d results: %s", done.Outcome, len(done.Results), done.Err)
	}
	return done
}

// testCopyGrant: a granted step copies once, not with each repeat.
func testCopyGrant(t *testing.T, h *hosted) {
	h.needKV()
	const repeats = 5
	text := h.text(h.rowTokens(), 0)
	want := h.undisturbed(text, repeats+2)
	first, list := h.savedRow(text)
	h.clear()
	n := int32(len(text))
	s := h.start(1, slices.Concat(text, first.tokens))
	s.Prompt, s.Sampling.IgnoreEOS = n, true
	h.step += 1000
	h.submit(ieg.Batch{
		Step: h.step, Grant: repeats, New: []ieg.SeqStart{s}, Ops: []ieg.KVOp{loadOp(1, 0, n, list)},
		Work: []ieg.Work{{Seq: s.Seq, Slot: 1, Start: n, N: 1, Sample: true}},
	})
	copies := 0
	for repeat := int32(0); repeat <= repeats; repeat++ {
		d := Await[engine.Done](h.Child).Step
		if d.Outcome != ieg.StepOK || d.Repeat != repeat || d.Last != (repeat == repeats) {
			t.Fatalf("repeat %d, last %t, outcome %d: %s; want repeat %d", d.Repeat, d.Last, d.Outcome, d.Err, repeat)
		}
		copies += len(d.Copies)
		first.take(t, &d.Results[0])
	}
	if copies != 1 {
		t.Errorf("%d copies were reported, want 1", copies)
	}
	h.same("granted after a load", want, first)
}

// testCopyAfterDeath: what a killed process saved is loaded by the next one.
func testCopyAfterDeath(t *testing.T, h *hosted) {
	h.needKV()
	text := h.text(h.rowTokens(), 0)
	want := h.undisturbed(text, outputTokens)
	first, list := h.savedRow(text)
	h.Kill(h.up.Info.Epoch, "to be replaced")
	h.comeBack(t, "to be replaced")
	h.same("after a death", want, h.resume(1, text, first, outputTokens, loadOp(1, 0, int32(len(text)), list)))
}
