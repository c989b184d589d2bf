package llama

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/llama/tinygguf"
)

// TestWhyNoBlocks: an engine whose KV can't leave it says why, serves, and
// refuses copies.
func TestWhyNoBlocks(t *testing.T) {
	good, a := blockSpec(t)
	for name, c := range map[string]struct {
		edit func(*engine.LoadSpec)
		why  string
	}{
		"no arena":   {func(s *engine.LoadSpec) { s.Arena = nil }, "without an arena"},
		"told why":   {func(s *engine.LoadSpec) { s.Arena, s.ArenaNote = nil, "no memory" }, "no memory"},
		"flash":      {func(s *engine.LoadSpec) { s.FlashAttn = "off" }, "flash attention"},
		"most slots": {func(s *engine.LoadSpec) { s.Slots, s.Context = maxSlots, 256 }, "fewer slots"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := good
			c.edit(&spec)
			r := start(t, spec)
			if r.info.KVToken != 0 || r.info.KVName != "" || !strings.Contains(r.info.KVNote, c.why) {
				t.Fatalf("%d bytes a token, name %q, note %q", r.info.KVToken, r.info.KVName, r.info.KVNote)
			}
			d := &driver{t: t, r: r}
			text := someTokens(r, 64, 1)
			d.fillSlot(0, text)
			e := a.extent(0, 64, ieg.CodecRaw, 256)
			done := d.run(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVSave, From: 0, N: 64, Extents: []ieg.Extent{e}}}})
			if done.Outcome != ieg.StepFailed || len(done.Copies) != 0 {
				t.Errorf("a save ended in %d with %+v", done.Outcome, done.Copies)
			}
			d.goOn(0, append(text, 3), 3)
		})
	}
}

// TestLayoutForBlocks: with an arena the choice is between layouts with flash
// attention, and is kept apart from that without.
func TestLayoutForBlocks(t *testing.T) {
	spec, _ := blockSpec(t)
	spec.Layout, spec.FlashAttn, spec.StateDir = "auto", "auto", filepath.Join(t.TempDir(), "state")
	with := start(t, spec).Info()
	for _, p := range with.Probe {
		if !p.FlashAttn {
			t.Errorf("%+v was measured", p)
		}
	}
	if len(with.Probe) != 2 || !with.FlashAttn || with.KVToken == 0 {
		t.Errorf("%d candidates, flash %v, %d bytes a token", len(with.Probe), with.FlashAttn, with.KVToken)
	}
	spec.Arena = nil
	without := start(t, spec).Info()
	if files, _ := filepath.Glob(filepath.Join(spec.StateDir, "*")); len(files) != 2 || len(without.Probe) != 3 {
		t.Errorf("outcomes %v; %d candidates", files, len(without.Probe))
	}
	spec, _ = blockSpec(t)
	for _, slots := range []int32{1, maxSlots} {
		spec.Slots, spec.Layout, spec.Context = slots, "auto", 256
		if i := start(t, spec).Info(); i.Layout != ieg.Streams || i.KVToken == 0 {
			t.Errorf("%d slots: %v, %s", slots, i.Layout, i.KVNote)
		}
	}
}

// TestKVNames: names tell apart what must not be mixed, and nothing else.
func TestKVNames(t *testing.T) {
	spec, _ := blockSpec(t)
	first := start(t, spec).Info().KVName
	other, err := tinygguf.Write(t.TempDir(), tinygguf.Config{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit func(*engine.LoadSpec)
		same bool
	}{
		"layout":  {func(s *engine.LoadSpec) { s.Layout = "streams" }, true},
		"slots":   {func(s *engine.LoadSpec) { s.Slots, s.Name = 2, "x" }, true},
		"context": {func(s *engine.LoadSpec) { s.Context = 256 }, true},
		"type":    {func(s *engine.LoadSpec) { s.KVType = "bf16" }, false},
		"model":   {func(s *engine.LoadSpec) { s.Path = other }, false},
	} {
		s := spec
		c.edit(&s)
		i := start(t, s).Info()
		if i.KVToken == 0 || (i.KVName == first) != c.same {
			t.Errorf("another %s: %q, first %q, note %q", name, i.KVName, first, i.KVNote)
		}
	}
}

// TestCopiesAreTimedApart: what copies took is no part of the step's time.
func TestCopiesAreTimedApart(t *testing.T) {
	spec, a := blockSpec(t)
	r := start(t, spec)
	d := &driver{t: t, r: r}
	d.fillSlot(0, someTokens(r, 700, 1))
	e := d.saved(a, 0, 0, 700, ieg.CodecRaw, 256)
	var ops []ieg.KVOp
	for range 20 {
		ops = append(ops, loadOp(1, 700, e))
	}
	started := time.Now()
	done := d.ok(ieg.Batch{Ops: ops})
	whole, sum := time.Since(started), time.Duration(0)
	for i, c := range done.Copies {
		if c.Op != int32(i) || c.Took <= 0 {
			t.Errorf("copy %d: %+v", i, c)
		}
		sum += c.Took
	}
	if len(done.Copies) != 20 || done.Took < 0 || done.Took+sum > whole {
		t.Errorf("%d copies took %v, the rest %v, all %v", len(done.Copies), sum, done.Took, whole)
	}
	if done = d.ok(ieg.Batch{}); len(done.Copies) != 0 {
		t.Errorf("copies %+v of an empty step", done.Copies)
	}
}
