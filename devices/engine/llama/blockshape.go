package llama

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// blockShape is the order of the rows in a piece of a block: layer after layer
// in ascending order, whichever cache of the library they are in, K of all its
// tokens, then layer after layer V.
type blockShape struct {
	rows  []blockRows
	token int // bytes of all rows of one token
}

// blockRows are the rows of one layer's K or V.
type blockRows struct {
	bytes  int // of a row
	before int // bytes of a token's rows before this one
	export int // its number in the library's export
	tensor *llamax.Rows
}

func (s *blockShape) add(r blockRows) {
	r.before = s.token
	s.rows = append(s.rows, r)
	s.token += r.bytes
}

// shapeOf orders the rows of an export of one cache: its layers ascend.
func shapeOf(f *stateForm) (*blockShape, error) {
	if len(f.caches) != 1 {
		return nil, fmt.Errorf("%w: %d caches, whose layers can't be told", errForm, len(f.caches))
	}
	s := &blockShape{}
	for i, r := range f.caches[0] {
		s.add(blockRows{bytes: r.bytes, export: i})
	}
	return s, nil
}

// shapeByContent finds which tensor each row of an export comes from, by what
// they hold: the export doesn't name its layers. read gives the first n rows of
// a tensor.
func shapeByContent(f *stateForm, blob []byte, n int, tensors []llamax.Rows, read func(*llamax.Rows) ([]byte, error)) (*blockShape, error) {
	var all []stateRows
	for _, rows := range f.caches {
		all = append(all, rows...)
	}
	if len(all) != len(tensors) {
		return nil, fmt.Errorf("%w: it has %d rows a token, and %d tensors were found", errForm, len(all), len(tensors))
	}
	s := &blockShape{}
	used := make([]bool, len(all))
	for i := range tensors {
		t := &tensors[i]
		b, err := read(t)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(all, func(r stateRows) bool {
			return r.value == t.Value && r.kind == t.Type && r.bytes == t.Bytes && bytes.Equal(blob[r.at:r.at+n*r.bytes], b)
		})
		if at < 0 || used[at] {
			return nil, fmt.Errorf("%w: the rows of layer %d are not in it", errForm, t.Layer)
		}
		used[at] = true
		s.add(blockRows{bytes: t.Bytes, export: at, tensor: t})
	}
	return s, nil
}

// name tells shapes apart: bytes of the rows in order, equal neighbours counted.
func (s *blockShape) name() string {
	var b strings.Builder
	for i := 0; i < len(s.rows); {
		k := i
		for k < len(s.rows) && s.rows[k].bytes == s.rows[i].bytes {
			k++
		}
		fmt.Fprintf(&b, "%dx%d ", k-i, s.rows[i].bytes)
		i = k
	}
	return strings.TrimSpace(b.String())
}

// packs tells whether blocks may be kept as int8.
func (s *blockShape) packs(kvType string) bool {
	return (kvType == "f16" || kvType == "bf16") && !slices.ContainsFunc(s.rows, func(r blockRows) bool { return r.bytes%packBytes != 0 })
}

// piece is a run of a block's tokens that is kept and encoded by itself.
type piece struct {
	first, n int // tokens, counted from the block's first
	at, size int // bytes as kept
}

// pieces appends the pieces of an extent to out.
func (s *blockShape) pieces(a engine.Arena, e *ieg.Extent, out []piece) []piece {
	at := 0
	for first := 0; first < int(e.N); first += ieg.PieceTokens {
		p := piece{first: first, n: min(ieg.PieceTokens, int(e.N)-first), at: at}
		p.size = a.Size(e.Codec, p.n*s.token)
		at += p.size
		out = append(out, p)
	}
	return out
}
