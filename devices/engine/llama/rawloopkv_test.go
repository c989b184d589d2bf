package llama

import (
	"slices"
	"testing"

	"ieg"
)

// TestRawKVMovesAndReadsLogits: a slot that was filled, one that was brought
// from the arena and one that was imported give the same logits.
func TestRawKVMovesAndReadsLogits(t *testing.T) {
	spec, a := blockSpec(t)
	spec.Layout = "streams"
	k, err := OpenRawKV(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	text := someTokens(k.r, 300, 1)
	if err := k.Fill(1, text); err != nil {
		t.Fatal(err)
	}
	state, err := k.Export(1)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{t: t, r: k.r}
	e := d.saved(a, 1, 0, 300, ieg.CodecRaw, 256)
	copies, err := k.Ops(loadOp(2, 300, e))
	if err != nil || len(copies) != 1 || copies[0].Bad != 0 {
		t.Fatalf("%+v, %v", copies, err)
	}
	if took, err := k.Import(0, state, 300); err != nil || took <= 0 {
		t.Fatal(took, err)
	}
	rows, err := k.Next([]ieg.Slot{2, 0, 1}, []ieg.Token{7, 7, 8})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], rows[1]) {
		t.Error("what was brought and what was imported differ")
	}
	if slices.Equal(rows[0], rows[2]) {
		t.Error("another token gives the same logits")
	}
	run, err := k.Run(0, []ieg.Token{9, 10})
	if err != nil || len(run) != 2 || slices.Equal(run[0], run[1]) {
		t.Fatalf("%d rows, %v", len(run), err)
	}
	if _, err := k.Run(0, make([]ieg.Token, 5)); err == nil {
		t.Error("more rows of logits are given than there are")
	}
	if got := k.r.slots.tokens[0]; got != 303 {
		t.Errorf("slot 0 holds %d tokens", got)
	}
	if got := k.r.slots.tokens[1]; got != 301 {
		t.Errorf("slot 1 holds %d tokens", got)
	}
	if _, err := k.Import(0, state[:100], 300); err == nil {
		t.Error("half a state is taken")
	}
	if _, err := k.Ops(loadOp(2, 301, e)); err == nil {
		t.Error("more is loaded than there is")
	}
}

func TestRawKVWantsKVThatMoves(t *testing.T) {
	spec, _ := blockSpec(t)
	spec.Arena, spec.KVType, spec.FlashAttn = nil, "f32", "off"
	k, err := OpenRawKV(spec)
	if err == nil {
		_, err = k.Ops(ieg.KVOp{Kind: ieg.KVSave, N: 1})
		k.Close()
	}
	if err == nil {
		t.Error("KV is saved without an arena")
	}
}
