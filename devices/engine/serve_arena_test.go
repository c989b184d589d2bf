package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ieg"
)

// TestMapArena: what the loader is told when there is no arena.
func TestMapArena(t *testing.T) {
	mapped := memory{}
	var asked []int64
	open := func(bytes int64, page int) (Arena, error) {
		asked = append(asked, bytes, int64(page))
		return mapped, nil
	}
	broken := func(int64, int) (Arena, error) { return nil, errors.New("no room") }
	shared := LoadSpec{ArenaBytes: 1 << 20, ArenaPageBytes: 4096}
	for _, c := range []struct {
		name string
		spec LoadSpec
		open func(int64, int) (Arena, error)
		note string
	}{
		{"mapped", shared, open, ""},
		{"none", LoadSpec{}, open, "the node shares no arena"},
		{"no way", shared, nil, "this build of the engine can't map the node's arena"},
		{"broken", shared, broken, "the node's arena can't be mapped: no room"},
	} {
		c.spec.mapArena(c.open)
		if c.spec.ArenaNote != c.note || (c.spec.Arena == mapped) != (c.note == "") {
			t.Errorf("%s: arena %v, note %q, want %q", c.name, c.spec.Arena, c.spec.ArenaNote, c.note)
		}
	}
	if !slices.Equal(asked, []int64{1 << 20, 4096}) {
		t.Errorf("asked for %v", asked)
	}
}

type memory struct{ Arena }

// copier reports fewer copies than it was given.
type copier struct {
	*fake
	missing int
}

func (c copier) Step(b *ieg.Batch, d *ieg.StepDone) {
	for i := range len(b.Ops) - c.missing {
		d.Copies = append(d.Copies, ieg.CopyDone{Op: int32(i)})
	}
}

// TestServeCopies: a runner that leaves copies out of its report has failed.
func TestServeCopies(t *testing.T) {
	for missing, outcome := range []ieg.Outcome{ieg.StepOK, ieg.StepFailed} {
		f := newFake()
		n := serve(t, func(context.Context, LoadSpec, func(float64)) (Runner, error) { return copier{f, missing}, nil })
		n.expect(frameReady)
		ops := []ieg.KVOp{{Kind: ieg.KVSave}, {Kind: ieg.KVLoad}}
		n.send(n.step, frameBatch, appendBatch(nil, &ieg.Batch{Engine: 3, Epoch: 7, Step: 1, Ops: ops}))
		if d := n.report(); d.Outcome != outcome || len(d.Copies) != 2-missing || outcome == ieg.StepFailed && d.Err != "the runner reports 1 copies of 2" {
			t.Errorf("%d missing: %+v, want outcome %d", missing, d, outcome)
		}
	}
}

// TestCopyLimits: both sides refuse an operation over the limits.
func TestCopyLimits(t *testing.T) {
	for name, c := range map[string]struct{ at, over ieg.KVOp }{
		"extents": {ieg.KVOp{Extents: make([]ieg.Extent, OpExtents)}, ieg.KVOp{Extents: make([]ieg.Extent, OpExtents+1)}},
		"pages": {
			ieg.KVOp{Extents: []ieg.Extent{{Pages: make([]ieg.Page, ExtentPages)}}},
			ieg.KVOp{Extents: []ieg.Extent{{Pages: make([]ieg.Page, ExtentPages+1)}}},
		},
	} {
		good, bad := &ieg.Batch{Ops: []ieg.KVOp{c.at}}, &ieg.Batch{Ops: []ieg.KVOp{{}, c.over}}
		if err := checkBatch(good); err != nil {
			t.Errorf("%s at the limit: %v", name, err)
		}
		if err := decodeBatch(appendBatch(nil, good), &ieg.Batch{}); err != nil {
			t.Errorf("%s at the limit, decoded: %v", name, err)
		}
		if err := checkBatch(bad); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("%s over the limit: %v", name, err)
		}
		if err := decodeBatch(appendBatch(nil, bad), &ieg.Batch{}); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("%s over the limit, decoded: %v", name, err)
		}
	}
	for name, op := range map[string]ieg.KVOp{"kind": {Kind: ieg.KVLoad + 1}, "codec": {Extents: []ieg.Extent{{Codec: ieg.NumCodecs}}}} {
		if err := decodeBatch(appendBatch(nil, &ieg.Batch{Ops: []ieg.KVOp{op}}), &ieg.Batch{}); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("a %s that is not known: %v", name, err)
		}
	}
}
