package llama

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// ways runs a test in all ways by which rows get out of slots and into them.
func ways(t *testing.T, spec engine.LoadSpec, f func(t *testing.T, r *Runner)) {
	for _, w := range []string{"in place", "read in place", "export", "unified"} {
		t.Run(w, func(t *testing.T) {
			spec.Layout = "streams"
			if w == "unified" {
				spec.Layout = w
			}
			if w == "export" {
				blind(t)
			}
			r := start(t, spec)
			b := r.slots.blocks
			if b == nil || b.direct != (w == "in place" || w == "read in place") {
				t.Fatalf("note %q, blocks %+v", r.info.KVNote, b)
			}
			if b.inPlace != b.direct && spec.Device == "" {
				t.Fatal("rows of this process's memory can't be written in place")
			}
			if w == "read in place" {
				b.inPlace = false
			} else {
				b.cores, b.alone = joiners, 0
			}
			f(t, r)
		})
	}
}

// blind makes contexts in which no tensors are found.
func blind(t *testing.T) {
	was := unwatch
	unwatch = func(*llamax.Watch, uintptr) error { return errors.New("not found") }
	t.Cleanup(func() { unwatch = was })
}

// TestCellsArePositions: whatever happened to the streams, cell i of a stream
// is its token i, and what is read there is what the library exports.
func TestCellsArePositions(t *testing.T) {
	spec, a := blockSpec(t)
	spec.Slots, spec.Context, spec.Layout = 5, 512, "streams"
	for _, place := range []bool{true, false} {
		r := start(t, spec)
		r.slots.blocks.inPlace = place
		d := &driver{t: t, r: r}
		rnd := rand.New(rand.NewPCG(3, 4))
		var kept []ieg.Extent
		counts := map[string]int{}
		for range 150 {
			slot, other := ieg.Slot(rnd.IntN(5)), ieg.Slot(rnd.IntN(5))
			held := r.slots.tokens[slot]
			switch k := rnd.IntN(10); {
			case k < 4:
				counts["decode"]++
				d.fillSlot(slot, someTokens(r, int(min(held+1+rnd.Int32N(150), 512)), int(slot)))
			case k == 4:
				counts["trim"]++
				d.trim(slot, rnd.Int32N(held+1))
			case k == 5 && held > 0:
				counts["copy"]++
				d.ok(ieg.Batch{Ops: []ieg.KVOp{
					{Kind: ieg.KVCopy, From: slot, To: other, N: 1 + rnd.Int32N(held)},
					{Kind: ieg.KVCopy, From: slot, To: ieg.Slot(rnd.IntN(5)), N: 1},
				}})
			case k == 6:
				counts["swap"]++
				if slot != other {
					if err := r.slots.swap(slot, other); err != nil {
						t.Fatal(err)
					}
				}
			case k == 7:
				counts["abort"] += d.abortedDecode(slot, int(min(held+200, 512)))
			case k == 8 && held > 300:
				counts["save"]++
				for _, e := range kept {
					a.free = append(a.free, e.Pages...)
				}
				kept = d.saved(a, slot, 0, 300, ieg.CodecRaw, 256)
			case k == 9 && len(kept) > 0 && held >= 256:
				counts["load behind"]++
				d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(slot, 257+rnd.Int32N(44), kept[1:])}})
			case k == 9 && len(kept) > 0:
				counts["load"]++
				d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(slot, 257+rnd.Int32N(44), kept)}})
			}
			sameAsExport(t, r)
		}
		t.Log(counts)
		for _, what := range []string{"decode", "trim", "copy", "swap", "abort", "save", "load", "load behind"} {
			if counts[what] == 0 {
				t.Errorf("no %s in it", what)
			}
		}
		r.Close()
	}
}

// abortedDecode computes tokens up to n in a slot while aborts rain, and tells
// whether it was aborted.
func (d *driver) abortedDecode(slot ieg.Slot, n int) int {
	s, begin := d.newSeq(slot, someTokens(d.r, n, 3), greedy(), 4)
	s.held = d.r.slots.tokens[slot]
	w := s.work(512)
	if w.Sample = false; w.N == 0 {
		return 0
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				d.r.Abort()
			}
		}
	}()
	done := d.run(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{w}})
	close(stop)
	<-ended
	if done.Outcome == ieg.StepFailed {
		d.t.Fatal(done.Err)
	}
	d.ok(ieg.Batch{Drop: []ieg.SeqID{s.id}})
	return int(done.Outcome)
}

// sameAsExport compares the rows of all slots with the library's export.
func sameAsExport(t *testing.T, r *Runner) {
	t.Helper()
	b := r.slots.blocks
	for slot, n := range r.slots.tokens {
		seq := r.slots.seq[slot]
		if held := r.slots.held(ieg.Slot(slot)); held != n {
			t.Fatalf("slot %d holds %d, accounted %d", slot, held, n)
		}
		if n == 0 {
			continue
		}
		blob, err := r.gen.export(seq, nil)
		if err != nil {
			t.Fatal(err)
		}
		at, err := b.form.places(blob, int(n), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.shape.rows {
			x := &b.shape.rows[i]
			rows := make([]byte, int(n)*x.bytes)
			if err := r.lib.x.ReadRows(x.tensor, int(seq), 0, rows); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(rows, blob[at[x.export]:][:len(rows)]) {
				t.Fatalf("row %d of slot %d, %d tokens, is not what is exported", i, slot, n)
			}
		}
	}
}

// TestBlocksOfAllWays: all ways give the same bytes for the same cells, and
// each takes what another gave.
func TestBlocksOfAllWays(t *testing.T) {
	spec, a := blockSpec(t)
	var first [][]byte
	var from []ieg.Extent
	var want []ieg.Token
	ways(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		text := someTokens(r, 600, 1)
		if first == nil {
			d.fillSlot(1, text)
			from = d.saved(a, 1, 0, 600, ieg.CodecRaw, 128)
			for _, e := range from {
				first = append(first, a.bytes(e))
			}
			d.trim(1, 0)
		}
		d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(2, 600, from), {Kind: ieg.KVCopy, From: 2, To: 0, N: 256}, loadOp(0, 600, from[1:])}})
		d.fillSlot(1, someTokens(r, 80, 2)) // between the two
		for _, slot := range []ieg.Slot{2, 0} {
			for i, e := range d.saved(a, slot, 0, 600, ieg.CodecRaw, 64) {
				if !bytes.Equal(a.bytes(e), first[i]) {
					t.Fatalf("block %d of slot %d differs", i, slot)
				}
			}
		}
		d.trim(0, 0)
		d.trim(1, 0)
		d.trim(2, 0)
		d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(3, 600, from)}})
		got := d.goOn(3, append(slices.Clone(text), 9), 30)
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("it goes on with %v, not %v", got, want)
		}
	})
}

// TestBadExtent: bytes that are not what their digest says leave the slot
// empty and no work done, whichever way they come; other operations are done.
func TestBadExtent(t *testing.T) {
	spec, a := blockSpec(t)
	ways(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		text := someTokens(r, 700, 1)
		d.fillSlot(0, text)
		good := d.saved(a, 0, 0, 700, ieg.CodecRaw, 256)
		bad := slices.Clone(good)
		bad[1].Digest++
		s, begin := d.newSeq(3, text[:40], greedy(), 4)
		done := d.run(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{s.work(512)}, Ops: []ieg.KVOp{
			loadOp(1, 700, bad), loadOp(2, 700, good), {Kind: ieg.KVTrim, To: 0, N: 10},
		}})
		if done.Outcome != ieg.StepFailed || len(done.Copies) != 2 || done.Copies[0].Bad != 2 || done.Copies[1].Bad != 0 || done.Copies[1].Op != 1 {
			t.Fatalf("outcome %d (%s), copies %+v", done.Outcome, done.Err, done.Copies)
		}
		for slot, want := range []int32{10, 0, 700, 0} {
			if held := r.slots.held(ieg.Slot(slot)); held != want || r.slots.tokens[slot] != want {
				t.Errorf("slot %d holds %d, accounted %d, not %d", slot, held, r.slots.tokens[slot], want)
			}
		}
		d.ok(ieg.Batch{Work: []ieg.Work{s.work(512)}})
	})
}
