package kv_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/memory/kv"
)

// The scripts spell a token as a letter.
func letters(s string) []ieg.Token {
	t := make([]ieg.Token, len(s))
	for i, c := range []byte(s) {
		t[i] = ieg.Token(c)
	}
	return t
}

func spell(tokens []ieg.Token) string {
	b := make([]byte, len(tokens))
	for i, t := range tokens {
		b[i] = byte(t)
	}
	return string(b)
}

func showOps(w *strings.Builder, ops []ieg.KVOp) {
	for _, op := range ops {
		if op.Kind == ieg.KVCopy {
			fmt.Fprintf(w, "copy %d tokens of slot %d to slot %d\n", op.N, op.From, op.To)
		} else {
			fmt.Fprintf(w, "trim slot %d to %d tokens\n", op.To, op.N)
		}
	}
}

func show(w *strings.Builder, p *kv.Pool) {
	for i := range p.Slots() {
		r := p.Row(ieg.Slot(i))
		state := "empty"
		switch {
		case r.Owner != 0:
			state = fmt.Sprintf("sequence %d", r.Owner)
		case r.Computed > 0:
			state = "idle"
		}
		fmt.Fprintf(w, "slot %d: %s [%s|%s]\n", i, state, spell(r.Tokens[:r.Computed]), spell(r.Tokens[r.Computed:]))
	}
	fmt.Fprintf(w, "%d of %d cells used, %d idle tokens\n", p.Used(), p.Cells(), p.Idle())
}

type script struct {
	p     *kv.Pool
	now   ieg.Time
	slots map[ieg.SeqID]ieg.Slot
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	var w strings.Builder
	var seq, n, slots, cells int
	var text, tenant, layout string
	for name, into := range map[string]any{"seq": &seq, "n": &n, "slots": &slots, "cells": &cells, "text": &text, "tenant": &tenant, "layout": &layout} {
		d.MaybeScanArgs(t, name, into)
	}
	s.now++
	id := ieg.SeqID(seq)
	switch d.Cmd {
	case "pool":
		info := ieg.EngineInfo{Slots: int32(slots), SlotTokens: 64, Cells: int32(cells)}
		if err := info.Layout.UnmarshalText([]byte(layout)); err != nil {
			t.Fatal(err)
		}
		s.p, s.slots = kv.NewPool(info), map[ieg.SeqID]ieg.Slot{}
	case "match":
		m := s.p.Match(letters(text), tenant)
		return fmt.Sprintf("slot %d has %d, slot %d will have %d\n", m.Slot, m.N, m.Pending, m.PendingN)
	case "acquire":
		m := s.p.Match(letters(text), tenant)
		g, ops, ok := s.p.Acquire(id, letters(text), tenant, m, s.now, nil)
		if !ok {
			return "every row has an owner\n"
		}
		s.slots[id] = g.Slot
		fmt.Fprintf(&w, "slot %d, %d tokens cached\n", g.Slot, g.Cached)
		showOps(&w, ops)
	case "advance":
		r := s.p.Row(s.slots[id])
		s.p.Advance(s.slots[id], append(r.Tokens, letters(text)...), r.Computed+int32(n), s.now)
	case "release":
		s.p.Release(s.slots[id], s.now, 0)
	case "evict":
		oldest := s.p.Oldest(ieg.NoSlot)
		if oldest == ieg.NoSlot {
			return "no row is idle\n"
		}
		showOps(&w, s.p.Empty(oldest, nil))
	default:
		t.Fatalf("unknown command %q", d.Cmd)
	}
	show(&w, s.p)
	if err := s.p.Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	return w.String()
}

func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/pool", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.run)
	})
}
