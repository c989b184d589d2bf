package llama

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"ieg"
	"ieg/devices/engine"
)

// writtenState is a state of n cells of two caches, its rows numbered.
func writtenState(f *stateForm, n, first int) []byte {
	blob := make([]byte, f.size(n))
	at := f.write(blob, [stateHead]byte{1, 2, 3}, n, first, nil)
	i := 0
	for _, rows := range f.caches {
		for _, r := range rows {
			for k := range n * r.bytes {
				blob[at[i]+k] = byte(7*i + k)
			}
			i++
		}
	}
	return blob
}

// twoCaches are caches of two layers and of one, the second without V.
var twoCaches = stateForm{streams: 3, caches: [][]stateRows{
	{{kind: 1, bytes: 6}, {kind: 1, bytes: 4}, {kind: 1, bytes: 6, value: true}, {kind: 1, bytes: 2, value: true}},
	{{kind: 8, bytes: 34}, {kind: 8, bytes: 34, value: true}},
}}

func TestStateForm(t *testing.T) {
	blob := writtenState(&twoCaches, 5, 0)
	f, err := readForm(blob, 5, 3)
	if err != nil || len(f.caches) != 2 || len(f.caches[0]) != 4 || f.caches[0][3].bytes != 2 || !f.caches[1][1].value || f.caches[1][0].kind != 8 {
		t.Fatalf("%+v, %v", f, err)
	}
	later := writtenState(f, 9, 64)
	at, err := f.places(later, 9, 64, nil)
	if err != nil || len(at) != 6 {
		t.Fatalf("%v, %v", at, err)
	}
	for i, r := range append(f.caches[0], f.caches[1]...) {
		if later[at[i]] != byte(7*i) || later[at[i]+9*r.bytes-1] != byte(7*i+9*r.bytes-1) {
			t.Errorf("row %d is not at %d", i, at[i])
		}
	}
	latent := stateForm{streams: 1, caches: [][]stateRows{{{kind: 1, bytes: 8}, {kind: 1, bytes: 8}}}}
	if f, err := readForm(writtenState(&latent, 3, 0), 3, 1); err != nil || len(f.caches[0]) != 2 || f.caches[0][1].value {
		t.Errorf("without V: %+v, %v", f, err)
	}
}

// TestCellsInAnyOrder: cells are brought into the order of their tokens.
func TestCellsInAnyOrder(t *testing.T) {
	want := writtenState(&twoCaches, 5, 64)
	mixed := bytes.Clone(want)
	at, err := twoCaches.places(mixed, 5, 64, nil)
	if err != nil || !bytes.Equal(mixed, want) {
		t.Fatalf("what is in order was changed: %v", err)
	}
	at = append([]int(nil), at...)
	order := []int{3, 0, 4, 1, 2}
	move := func(from, bytes int) {
		for i, k := range order {
			copy(mixed[from+i*bytes:][:bytes], want[from+k*bytes:])
		}
	}
	cells := stateHead + 8 // the first stream's
	for c, rows := range twoCaches.caches {
		move(cells, 12)
		for i, r := range rows {
			move(at[twoCaches.rowsBefore(c)+i], r.bytes)
		}
		last := rows[len(rows)-1]
		cells = at[twoCaches.rowsBefore(c)+len(rows)-1] + 5*last.bytes + 4*(twoCaches.streams-1) + 8
	}
	if bytes.Equal(mixed, want) {
		t.Fatal("nothing is mixed")
	}
	if _, err := twoCaches.places(mixed, 5, 64, nil); err != nil || !bytes.Equal(mixed, want) {
		t.Errorf("what was mixed is not in order: %v", err)
	}
}

// TestUnknownForms: an export that is not as it is known is refused.
func TestUnknownForms(t *testing.T) {
	good := writtenState(&twoCaches, 5, 0)
	word := func(at int, v uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	columns := stateHead + 8 + 5*12
	for name, b := range map[string][]byte{
		"cut":           good[:len(good)-1],
		"longer":        append(bytes.Clone(good), 0),
		"empty":         nil,
		"head only":     good[:stateHead],
		"streams":       word(stateHead, 2),
		"cells":         word(stateHead+4, 6),
		"position":      word(stateHead+8, 1),
		"two sequences": word(stateHead+12, 2),
		"columns":       word(columns, 1),
		"no layers":     word(columns+4, 0),
		"layers":        word(columns+4, 1<<31),
		"row":           word(columns+12, 7),
		"huge row":      word(columns+12, 1<<31),
		"row of 2^32":   word(columns+16, 1),
	} {
		if f, err := readForm(b, 5, 3); !errors.Is(err, errForm) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	f, err := readForm(good, 5, 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]int{"position": stateHead + 8 + 12, "cells": stateHead + 4, "streams": stateHead} {
		if _, err := f.places(word(at, 77), 5, 0, nil); !errors.Is(err, errForm) {
			t.Errorf("places with another %s: %v", name, err)
		}
	}
	for _, b := range [][]byte{good[:len(good)-4], good[:20], nil, append(bytes.Clone(good), 0)} {
		if _, err := f.places(b, 5, 0, nil); !errors.Is(err, errForm) {
			t.Errorf("places in %d bytes: %v", len(b), err)
		}
	}
	if _, err := shapeOf(f); !errors.Is(err, errForm) {
		t.Error("layers of two caches can't be told, but were")
	}
}

func FuzzStateForm(f *testing.F) {
	f.Add(writtenState(&twoCaches, 2, 0), 2, 3)
	f.Add(writtenState(&stateForm{streams: 1, caches: twoCaches.caches[1:]}, 1, 0), 1, 1)
	f.Fuzz(func(t *testing.T, b []byte, n, streams int) {
		if n < 1 || n > 64 || streams < 1 || streams > maxSlots {
			return
		}
		form, err := readForm(b, n, streams)
		if err != nil {
			return
		}
		if size := form.size(n); size != len(b) {
			t.Fatalf("a form of %d bytes read from %d", size, len(b))
		}
		if at, err := form.places(b, n, 0, nil); err != nil || len(at) == 0 || at[len(at)-1] >= len(b) {
			t.Fatalf("places %v, %v", at, err)
		}
	})
}

func TestBlockShape(t *testing.T) {
	s := &blockShape{}
	for _, n := range []int{384, 384, 128, 384} {
		s.add(blockRows{bytes: n})
	}
	if s.token != 1280 || s.rows[3].before != 896 || s.name() != "2x384 1x128 1x384" {
		t.Errorf("%+v, %q", s, s.name())
	}
	if !s.packs("f16") || !s.packs("bf16") || s.packs("f32") || s.packs("q8_0") {
		t.Error("types that pack")
	}
	s.add(blockRows{bytes: 192})
	if s.packs("f16") {
		t.Error("a row of 96 elements packs")
	}
	a := newTestArena(1, 100)
	got := s.pieces(a, &ieg.Extent{N: 150}, nil)
	want := []piece{{0, 64, 0, 64 * 1472}, {64, 64, 64 * 1472, 64 * 1472}, {128, 22, 128 * 1472, 22 * 1472}}
	if len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%+v", got)
	}
	if size := engine.BlockBytes(a, ieg.CodecRaw, 1472, 150); size != int64(got[2].at+got[2].size) {
		t.Errorf("%d bytes", size)
	}
}
