package llama

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// stateForm is the form of the library's export of one sequence: per cache the
// number of streams, for each of them its number of cells, then per cell its
// position and sequences, whether V lies by columns, the number of layers, and
// per layer the type, the bytes of a row and the rows of K, then the same of V.
// Only one stream holds cells. (growState makes do with less.)
type stateForm struct {
	streams int
	caches  [][]stateRows // in the order of the export
}

// stateRows are the rows of one layer's K or V in an export.
type stateRows struct {
	kind  int32 // of the elements
	bytes int   // of a row
	value bool
	at    int // of the first row
}

// errForm tells an export of another form than the one known.
var errForm = errors.New("the library's export has another form")

// stateHead is the length of an export's magic and sequence.
const stateHead = 8

// readForm learns the form from an export of cells [0, n) of a sequence. It
// must follow the form to its last byte. A model with latent attention has no V.
func readForm(blob []byte, n, streams int) (*stateForm, error) {
	for _, values := range []int{2, 1} {
		f := &stateForm{streams: streams}
		r := &formReader{in: blob, at: stateHead}
		for !r.bad && r.at < len(blob) && len(f.caches) < 2 {
			f.caches = append(f.caches, r.cache(n, streams, values))
		}
		if !r.bad && r.at == len(blob) && len(f.caches) > 0 {
			return f, nil
		}
	}
	return nil, errForm
}

type formReader struct {
	in  []byte
	at  int
	bad bool
}

func (r *formReader) word() int {
	if r.bad || r.at > len(r.in)-4 {
		r.bad = true
		return 0
	}
	r.at += 4
	return int(binary.LittleEndian.Uint32(r.in[r.at-4:]))
}

func (r *formReader) cache(n, streams, values int) []stateRows {
	r.bad = r.bad || r.word() != streams
	var rows []stateRows
	for s := 0; s < streams && !r.bad; s++ {
		switch count := r.word(); {
		case count == 0:
		case count == n && rows == nil:
			rows = r.stream(n, values)
		default:
			r.bad = true
		}
	}
	r.bad = r.bad || len(rows) == 0
	return rows
}

func (r *formReader) stream(n, values int) (rows []stateRows) {
	for i := 0; i < n && !r.bad; i++ {
		pos, seqs := r.word(), r.word()
		r.word()
		r.bad = r.bad || pos != i || seqs != 1
	}
	columns, layers := r.word(), r.word()
	r.bad = r.bad || columns != 0 || layers < 1 || layers > 4096
	for i := 0; i < values*layers && !r.bad; i++ {
		s := stateRows{kind: int32(r.word()), bytes: r.word(), value: i >= layers}
		high := r.word()
		s.at = r.at
		if r.bad = r.bad || high != 0 || s.bytes < 1 || s.bytes > maxRowBytes || n*s.bytes > len(r.in)-r.at; r.bad {
			break
		}
		r.at += n * s.bytes
		rows = append(rows, s)
	}
	return rows
}

// size is the length of a state of n cells.
func (f *stateForm) size(n int) int {
	size := stateHead
	for _, rows := range f.caches {
		size += 4 + 4*f.streams + 12*n + 8
		for _, r := range rows {
			size += 12 + n*r.bytes
		}
	}
	return size
}

// write writes a state of n cells from a position on, all but the rows, whose
// places at gets in the order of the export. The library ignores which
// sequence and which stream a state names.
func (f *stateForm) write(buf []byte, head [stateHead]byte, n, first int, at []int) []int {
	w := formWriter{buf: buf, at: copy(buf, head[:])}
	at = at[:0]
	for _, rows := range f.caches {
		w.word(f.streams)
		w.word(n)
		for i := range n {
			w.word(first + i)
			w.word(1)
			w.word(0)
		}
		w.word(0)
		w.word(layers(rows))
		for _, r := range rows {
			w.word(int(r.kind))
			w.word(r.bytes)
			w.word(0)
			at = append(at, w.at)
			w.at += n * r.bytes
		}
		for range f.streams - 1 {
			w.word(0)
		}
	}
	return at
}

func layers(rows []stateRows) (n int) {
	for _, r := range rows {
		if !r.value {
			n++
		}
	}
	return n
}

type formWriter struct {
	buf []byte
	at  int
}

func (w *formWriter) word(n int) {
	binary.LittleEndian.PutUint32(w.buf[w.at:], uint32(n))
	w.at += 4
}

// places finds the rows in an export of n cells of tokens [first, first+n). The
// library lists cells as they lie, in the unified layout in any order: they are
// brought into that of their tokens. It refuses an export that lacks cells: of
// layers with a sliding window the library leaves out what attention won't read
// again.
func (f *stateForm) places(blob []byte, n, first int, at []int) ([]int, error) {
	at = at[:0]
	r := &formReader{in: blob, at: stateHead}
	for c, rows := range f.caches {
		r.bad = r.bad || r.word() != f.streams
		for range f.streams {
			count := r.word()
			if r.bad || count == 0 {
				continue
			}
			if count != n || len(at) != f.rowsBefore(c) {
				return at, fmt.Errorf("%w: %d cells, not %d", errForm, count, n)
			}
			cells := r.at
			r.at += 12*n + 8
			for _, x := range rows {
				at = append(at, r.at+12)
				r.at += 12 + n*x.bytes
			}
			if r.at > len(blob) {
				return at, errForm
			}
			if err := sortCells(blob, cells, n, first, rows, at[len(at)-len(rows):]); err != nil {
				return at, err
			}
		}
	}
	if r.bad || r.at != len(blob) || len(at) != f.rowsBefore(len(f.caches)) {
		return at, errForm
	}
	return at, nil
}

// sortCells brings n cells, listed at cells, and their rows into the order of
// their tokens, which are [first, first+n).
func sortCells(blob []byte, cells, n, first int, rows []stateRows, at []int) error {
	token := func(i int) int { return int(binary.LittleEndian.Uint32(blob[cells+12*i:])) - first }
	sorted := true
	for i := range n {
		sorted = sorted && token(i) == i
	}
	if sorted {
		return nil
	}
	to, seen := make([]int, n), make([]bool, n)
	for i := range n {
		k := token(i)
		if k < 0 || k >= n || seen[k] {
			return fmt.Errorf("%w: cell %d is of token %d, beside others of [%d, %d)", errForm, i, first+k, first, first+n)
		}
		to[i], seen[k] = k, true
	}
	move := func(at, bytes int) {
		was := slices.Clone(blob[at : at+n*bytes])
		for i, k := range to {
			copy(blob[at+k*bytes:][:bytes], was[i*bytes:])
		}
	}
	move(cells, 12)
	for i, r := range rows {
		move(at[i], r.bytes)
	}
	return nil
}

// rowsBefore is the number of rows in the caches before one.
func (f *stateForm) rowsBefore(cache int) int {
	n := 0
	for _, rows := range f.caches[:cache] {
		n += len(rows)
	}
	return n
}
