package llama

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ieg"
	"ieg/devices/engine"
)

// blockSpec is a tiny model with an arena of uneven pages.
func blockSpec(t testing.TB) (engine.LoadSpec, *testArena) {
	spec := tinySpec(t)
	a := newTestArena(4000, 1000)
	spec.Context, spec.Arena = 1024, a
	return spec, a
}

// saved saves tokens [from, to) of a slot in blocks, a piece an op or all of a
// block in one.
func (d *driver) saved(a *testArena, slot ieg.Slot, from, to int32, codec ieg.Codec, step int32) []ieg.Extent {
	d.t.Helper()
	var out []ieg.Extent
	for start := from; start < to; start += ieg.BlockTokens {
		e := a.extent(start, min(ieg.BlockTokens, to-start), codec, d.r.info.KVToken)
		for at := start; at < start+e.N; at += step {
			n := min(step, start+e.N-at)
			done := d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVSave, From: slot, Start: at, N: n, Sum: e.Digest, Extents: []ieg.Extent{e}}}})
			if len(done.Copies) != 1 || done.Copies[0].Op != 0 || done.Copies[0].Bad != 0 || done.Copies[0].Took <= 0 {
				d.t.Fatalf("copies %+v", done.Copies)
			}
			e.Digest = done.Copies[0].Digest
		}
		if want := a.Digest(0, a.bytes(e)); e.Digest != want {
			d.t.Fatalf("block at %d: digest %x, its bytes have %x", start, e.Digest, want)
		}
		out = append(out, e)
	}
	return out
}

// loadOp loads tokens [extents' start, end).
func loadOp(slot ieg.Slot, end int32, e []ieg.Extent) ieg.KVOp {
	return ieg.KVOp{Kind: ieg.KVLoad, To: slot, Start: e[0].Start, N: end - e[0].Start, Extents: e}
}

// fillSlot computes tokens in a slot from what it holds.
func (d *driver) fillSlot(slot ieg.Slot, tokens []ieg.Token) {
	d.t.Helper()
	s, begin := d.newSeq(slot, tokens, greedy(), 4)
	s.held = d.r.slots.tokens[slot]
	b := ieg.Batch{New: []ieg.SeqStart{begin}}
	for s.held < int32(len(tokens)) {
		w := s.work(256)
		w.Sample = false
		b.Work = []ieg.Work{w}
		s.took(d.ok(b).Results[0])
		b = ieg.Batch{}
	}
	d.ok(ieg.Batch{Drop: []ieg.SeqID{s.id}})
}

// someTokens is text of no meaning.
func someTokens(r *Runner, n, seed int) []ieg.Token {
	out := make([]ieg.Token, n)
	for i := range out {
		out[i] = ieg.Token((11 + 7*i*i + 13*seed + i/5) % 250)
	}
	return out
}

// goOn draws greedily after what a slot holds.
func (d *driver) goOn(slot ieg.Slot, tokens []ieg.Token, most int32) []ieg.Token {
	d.t.Helper()
	par := greedy()
	par.IgnoreEOS = true
	s, begin := d.newSeq(slot, tokens, par, most)
	s.held = d.r.slots.tokens[slot]
	b := ieg.Batch{New: []ieg.SeqStart{begin}}
	for s.stop == ieg.NotStopped {
		b.Work = []ieg.Work{s.work(256)}
		s.took(d.ok(b).Results[0])
		b = ieg.Batch{}
	}
	d.ok(ieg.Batch{Drop: []ieg.SeqID{s.id}})
	return s.tokens[s.prompt:]
}

func (d *driver) trim(slot ieg.Slot, n int32) {
	d.t.Helper()
	d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot, N: n}}})
}

// TestBlocksRoundTrip: what was saved, loaded into another slot, goes on as the
// original did; parts of it behind kept tokens too, and it is the same bytes
// again.
func TestBlocksRoundTrip(t *testing.T) {
	spec, a := blockSpec(t)
	layouts(t, spec, func(t *testing.T, r *Runner) {
		if r.info.KVToken != 256 || r.info.KVNote != "" || !strings.HasSuffix(r.info.KVName, r.info.Library) {
			t.Fatalf("%d bytes a token, note %q, name %q", r.info.KVToken, r.info.KVNote, r.info.KVName)
		}
		d := &driver{t: t, r: r}
		text := someTokens(r, 700, 1)
		d.fillSlot(0, text)
		blocks := d.saved(a, 0, 0, 700, ieg.CodecRaw, 64)
		whole := d.saved(a, 0, 0, 700, ieg.CodecRaw, 256)
		for i := range blocks {
			if !bytes.Equal(a.bytes(blocks[i]), a.bytes(whole[i])) {
				t.Fatalf("block %d depends on how it was saved", i)
			}
		}
		d.fillSlot(1, someTokens(r, 300, 2))
		want := d.goOn(0, append(slices.Clone(text), 7), 40)
		for _, c := range []struct{ keep, end int32 }{{0, 700}, {0, 450}, {256, 700}, {512, 600}, {256, 300}} {
			slot := ieg.Slot(2)
			d.trim(slot, 0)
			if c.keep > 0 { // its beginning comes another way
				d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, From: 0, To: slot, N: c.keep}}})
			}
			end := c.end
			use := blocks[c.keep/ieg.BlockTokens : (end+ieg.BlockTokens-1)/ieg.BlockTokens]
			done := d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(slot, end, use)}})
			if held := r.slots.held(slot); held != end || len(done.Copies) != 1 || done.Copies[0].Bad != 0 {
				t.Fatalf("%+v: it holds %d, copies %+v", c, held, done.Copies)
			}
			again := d.saved(a, slot, 0, end/ieg.BlockTokens*ieg.BlockTokens, ieg.CodecRaw, 256)
			for i := range again {
				if !bytes.Equal(a.bytes(blocks[i]), a.bytes(again[i])) {
					t.Fatalf("%+v: block %d is not what was loaded", c, i)
				}
			}
			d.fillSlot(slot, text)
			if got := d.goOn(slot, append(slices.Clone(text), 7), 40); !slices.Equal(got, want) && (c.end == 700) {
				t.Errorf("%+v: it goes on with %v, not %v", c, got, want)
			}
		}
	})
}

// TestUnifiedCellsInAnyOrder: in the unified layout a sequence goes on in cells
// that others left, also below its own. Its blocks are in the order of its
// tokens all the same.
func TestUnifiedCellsInAnyOrder(t *testing.T) {
	spec, a := blockSpec(t)
	spec.Slots, spec.Layout = 3, "unified"
	r := start(t, spec)
	d := &driver{t: t, r: r}
	tokens := someTokens(r, 320, 1)
	d.fillSlot(0, someTokens(r, 300, 0))
	d.fillSlot(1, tokens[:64])
	before := a.bytes(d.saved(a, 1, 0, 64, ieg.CodecRaw, 64)[0])
	d.trim(0, 0)
	d.fillSlot(1, tokens)
	blob, err := r.gen.export(r.slots.seq[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	form := r.slots.blocks.form
	was := bytes.Clone(blob)
	if _, err := form.places(blob, 320, 0, nil); err != nil || bytes.Equal(blob, was) {
		t.Fatalf("the cells were in order, or can't be brought into it: %v", err)
	}
	after := d.saved(a, 1, 0, 320, ieg.CodecRaw, 64)
	if !bytes.Equal(a.bytes(after[0])[:len(before)], before) {
		t.Error("the first piece has changed though nothing wrote to it")
	}
	d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(2, 320, after)}})
	again := d.saved(a, 2, 0, 320, ieg.CodecRaw, 256)
	for i := range after {
		if !bytes.Equal(a.bytes(after[i]), a.bytes(again[i])) {
			t.Errorf("block %d is another one after it was loaded", i)
		}
	}
}
