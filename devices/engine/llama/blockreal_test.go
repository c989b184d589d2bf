package llama

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ieg"
)

// realTokens is a text of the model's own making: what a model is sure of shows
// differences less.
func realTokens(d *driver, n int) []ieg.Token {
	par := sampled(5)
	par.Stop = nil
	text := tokenize(d.t, d.r, "Once upon a time, in a land far away, there was a")
	s := d.generate(0, text, par, int32(n-len(text)), 512)
	d.trim(0, 0)
	return s.tokens[:n]
}

// TestBlocksWithRealModel: a real model goes on after a load as it would have
// gone on, in both layouts.
func TestBlocksWithRealModel(t *testing.T) {
	spec, a := blockSpec(t)
	spec.Path, spec.Name = realModel(t), "smol"
	layouts(t, spec, func(t *testing.T, r *Runner) {
		if r.info.KVToken != 23040 || !r.info.KVINT8 {
			t.Fatalf("%d bytes a token, int8 %v: %s", r.info.KVToken, r.info.KVINT8, r.info.KVNote)
		}
		d := &driver{t: t, r: r}
		pages := a.free
		text := realTokens(d, 130)
		d.fillSlot(0, text[:129])
		e := d.saved(a, 0, 0, 129, ieg.CodecRaw, 64)
		want := d.goOn(0, text, 40)
		d.trim(0, 0)
		d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(0, 129, e)}})
		if got := d.goOn(0, text, 40); !slices.Equal(got, want) {
			t.Errorf("it goes on with %v, not %v", got, want)
		}
		a.free = pages
	})
}

// divergence is the Kullback-Leibler divergence of the distributions of two
// rows of logits.
func divergence(p, q []float32) float64 {
	norm := func(x []float32) float64 {
		sum, top := 0.0, float64(slices.Max(x))
		for _, v := range x {
			sum += math.Exp(float64(v) - top)
		}
		return top + math.Log(sum)
	}
	np, nq, kl := norm(p), norm(q), 0.0
	for i := range p {
		lp := float64(p[i]) - np
		kl += math.Exp(lp) * (lp - float64(q[i]) + nq)
	}
	return kl
}

// TestPackedBlocks: KV that was kept as int8 hardly changes what comes next.
func TestPackedBlocks(t *testing.T) {
	spec, a := blockSpec(t)
	spec.Path, spec.Name = realModel(t), "smol"
	spec.Layout = "streams"
	r := start(t, spec)
	d := &driver{t: t, r: r}
	text := realTokens(d, 330)
	d.fillSlot(0, text[:300])
	e := d.saved(a, 0, 0, 300, ieg.CodecINT8, 64)
	if raw := 256 * r.info.KVToken; e[0].Bytes >= raw*6/10 {
		t.Fatalf("%d bytes of %d", e[0].Bytes, raw)
	}
	d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(1, 300, e)}})
	mean, worst := 0.0, 0.0
	for n := 300; n < 330; n++ {
		want := probeLogits(d, 0, text[:n+1])
		kl := divergence(want, probeLogits(d, 1, text[:n+1]))
		mean, worst = mean+kl/30, max(worst, kl)
		d.fillSlot(0, text[:n+1])
		d.fillSlot(1, text[:n+1])
	}
	t.Logf("divergence %.2g in the mean, %.2g at worst", mean, worst)
	if mean <= 0 || mean > 0.01 || worst > 0.1 {
		t.Errorf("divergence %g in the mean, %g at worst", mean, worst)
	}
}

// TestSlidingWindows: blocks hold all layers for all tokens, though a window
// has moved on and others computed in between; copies too.
func TestSlidingWindows(t *testing.T) {
	spec, _ := blockSpec(t)
	a := newTestArena(64, 1<<20)
	spec.Path, spec.Name, spec.Arena = present(t, cached("models", "gemma-3-270m-q4_k_m.gguf")), "gemma", a
	spec.Slots, spec.Context, spec.Layout = 3, 1280, "auto"
	r := start(t, spec)
	if r.info.Layout != ieg.Streams || r.info.KVToken != 18432 || !r.slots.blocks.direct {
		t.Fatalf("%v, %d bytes a token: %s", r.info.Layout, r.info.KVToken, r.info.KVNote)
	}
	spec.Layout = "unified"
	if i := start(t, spec).Info(); i.KVToken != 0 || !strings.Contains(i.KVNote, "sliding window") {
		t.Errorf("unified: %d bytes a token, note %q", i.KVToken, i.KVNote)
	}
	d := &driver{t: t, r: r}
	text := someTokens(r, 1101, 1)
	d.fillSlot(0, text[:300])
	e := d.saved(a, 0, 0, 256, ieg.CodecRaw, 256)
	d.fillSlot(0, text[:600])
	early := probeLogits(d, 0, text[:601])
	d.fillSlot(0, text[:1100])
	late := probeLogits(d, 0, text[:1101])
	e = append(e, d.saved(a, 0, 256, 1100, ieg.CodecRaw, 64)...)
	d.fillSlot(2, text[:64])
	for n := int32(128); n < 1100; n += 64 { // a control: the same text in other passes
		d.fillSlot(2, text[:n])
	}
	d.fillSlot(2, text[:1100])
	band := far(late, probeLogits(d, 2, text[:1101]))
	d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(1, 1100, e)}})
	loaded := far(late, probeLogits(d, 1, text[:1101]))
	d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(1, 600, e[:3])}})
	part := far(early, probeLogits(d, 1, text[:601]))
	d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, From: 0, To: 2, N: 600}}})
	copied := far(early, probeLogits(d, 2, text[:601]))
	t.Logf("off by %g, a part by %g, a copy by %g; other passes by %g", loaded, part, copied, band)
	if band == 0 || loaded > band || part > band || copied > band {
		t.Errorf("off by %g, a part by %g, a copy by %g; other passes by %g", loaded, part, copied, band)
	}
}

// TestSlidingCopies: a copy of a beginning has all its tokens without an arena
// too.
func TestSlidingCopies(t *testing.T) {
	spec := tinySpec(t)
	spec.Path, spec.Name = present(t, cached("models", "gemma-3-270m-q4_k_m.gguf")), "gemma"
	spec.Slots, spec.Context, spec.Layout = 2, 8192, "streams" // whole streams would cost more
	for _, seen := range []bool{true, false} {
		if !seen {
			blind(t)
		}
		r := start(t, spec)
		if seen != (r.slots.blocks != nil) || seen == r.slots.pruned || r.info.KVToken != 0 || r.info.KVNote == "" {
			t.Fatalf("tensors found: %v, pruned %v, note %q", r.slots.blocks != nil, r.slots.pruned, r.info.KVNote)
		}
		d := &driver{t: t, r: r}
		text := someTokens(r, 900, 1)
		d.fillSlot(0, text[:600])
		want := probeLogits(d, 0, text[:601])
		d.fillSlot(0, text)
		d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, From: 0, To: 1, N: 600}}})
		if off := far(want, probeLogits(d, 1, text[:601])); off > 0.05 {
			t.Errorf("tensors found: %v: a copy's logits are off by %g", seen, off)
		}
		r.Close()
	}
}

// TestBlocksAcrossBackends: what one backend saved another takes: logits as
// near as its own computing is.
func TestBlocksAcrossBackends(t *testing.T) {
	if os.Getenv("IEG_DEVICE") == "" {
		t.Skip("IEG_DEVICE names no second device")
	}
	spec, _ := blockSpec(t)
	a := newTestArena(64, 1<<20)
	spec.Path, spec.Name, spec.Slots, spec.Arena = realModel(t), "smol", 2, a
	var text []ieg.Token
	var name string
	var saved [2][]ieg.Extent
	var rows [2][]float32
	var runners [2]*Runner
	for i, y := range []string{"streams", "unified"} {
		spec.Layout = y
		if i == 1 {
			spec.Device = ""
		}
		runners[i] = start(t, spec)
		d := &driver{t: t, r: runners[i]}
		text = someTokens(d.r, 67, 1)
		for n := 22; n <= 66; n += 22 { // more at once the library gives to any device it knows
			d.fillSlot(0, text[:n])
		}
		saved[i] = d.saved(a, 0, 0, 66, ieg.CodecRaw, 256)
		rows[i] = probeLogits(d, 0, text)
		if i == 1 && name != d.r.info.KVName {
			t.Errorf("%q and %q", name, d.r.info.KVName)
		}
		name = d.r.info.KVName
	}
	if slices.EqualFunc(saved[0], saved[1], func(x, y ieg.Extent) bool { return x.Digest == y.Digest }) {
		t.Error("both backends computed the same bits: nothing is shown")
	}
	band := divergence(rows[0], rows[1])
	for i, r := range runners {
		d := &driver{t: t, r: r}
		d.ok(ieg.Batch{Ops: []ieg.KVOp{loadOp(1, 66, saved[1-i])}})
		kl := divergence(rows[i], probeLogits(d, 1, text))
		t.Logf("%s with the other's KV: divergence %.2g; computed by the other: %.2g", r.info.Backend, kl, band)
		if kl > 1.5*band+1e-6 {
			t.Errorf("%s: divergence %g, computed by the other %g", r.info.Backend, kl, band)
		}
	}
}
