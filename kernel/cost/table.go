package cost

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"ieg"
)

// ErrTableFull: the look-up table holds MaxCells cells.
var ErrTableFull = errors.New("profile table full: profile fewer models, precisions or lengths")

// Key names what was profiled: profiles belong to a device type, not to one
// device.
type Key struct {
	Model     string
	Device    string // the device's model, e.g. "A100-80GB"
	Precision string
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Model, o.Model), cmp.Compare(k.Device, o.Device), cmp.Compare(k.Precision, o.Precision))
}

// Cell is one measured point of the profiling matrix, or the reason why it
// can't exist (Absent).
type Cell struct {
	Batch, Length int32

	PrefillP50, PrefillP99 float64 // seconds for the whole batch
	PrefillTPS             float64 // tokens/s
	PeakBytes              int64

	DecodeP50, DecodeP99 float64 // seconds per token (one step)
	BytesPerToken        int64

	Absent string
}

// Row is a cell with its key.
type Row struct {
	Key
	Cell
}

// Table is the look-up table of off-line profiling, sorted by key, batch and
// length.
type Table struct {
	Rows []Row
}

func compareRow(a, b Row) int {
	return cmp.Or(a.Key.compare(b.Key), cmp.Compare(a.Batch, b.Batch), cmp.Compare(a.Length, b.Length))
}

// Set stores a cell, over an older one of the same batch and length.
func (t *Table) Set(k Key, c Cell) error {
	row := Row{k, c}
	i, found := slices.BinarySearchFunc(t.Rows, row, compareRow)
	if found {
		t.Rows[i] = row
		return nil
	}
	if len(t.Rows) >= MaxCells {
		return fmt.Errorf("%w (%d cells)", ErrTableFull, MaxCells)
	}
	t.Rows = slices.Insert(t.Rows, i, row)
	return nil
}

// of returns the rows of a key.
func (t *Table) of(k Key) []Row {
	byKey := func(r Row, k Key) int { return r.Key.compare(k) }
	lo, found := slices.BinarySearchFunc(t.Rows, k, byKey)
	if !found {
		return nil
	}
	hi := lo
	for hi < len(t.Rows) && t.Rows[hi].Key == k {
		hi++
	}
	return t.Rows[lo:hi]
}

// PrefillSeconds interpolates the median time to prefill batch prompts of
// length tokens: linear in the logarithms of batch, length and time between
// measured points, proportional to the length and to the batch outside them.
func (t *Table) PrefillSeconds(k Key, batch, length int32) (float64, bool) {
	return lookup(t.of(k), batch, length, prefillAxis)
}

// DecodeSeconds interpolates the median time of one decode step of batch
// sequences at a context of length tokens; outside the measured points the
// nearest one holds.
func (t *Table) DecodeSeconds(k Key, batch, length int32) (float64, bool) {
	return lookup(t.of(k), batch, length, decodeAxis)
}

// axis reads one quantity of a cell; grows tells how it is continued outside
// the measured points.
type axis struct {
	value func(*Cell) float64
	grows bool
}

var (
	prefillAxis = axis{func(c *Cell) float64 { return c.PrefillP50 }, true}
	decodeAxis  = axis{func(c *Cell) float64 { return c.DecodeP50 }, false}
)

// lookup interpolates along the length inside each batch, then over batches.
func lookup(rows []Row, batch, length int32, a axis) (float64, bool) {
	var at curve
	for i := 0; i < len(rows); {
		var along curve
		b := rows[i].Batch
		for ; i < len(rows) && rows[i].Batch == b; i++ {
			if v := a.value(&rows[i].Cell); v > 0 && rows[i].Absent == "" {
				along.add(float64(rows[i].Length), v, float64(length))
			}
		}
		if v, ok := along.at(float64(length), a.grows); ok {
			at.add(float64(b), v, float64(batch))
		}
	}
	return at.at(float64(batch), a.grows)
}

// curve keeps the two points around x out of a rising series.
type curve struct {
	x0, y0, x1, y1 float64
	n              int
}

// add takes the points in rising order; x is where the curve will be read.
func (c *curve) add(px, py, x float64) {
	switch {
	case c.n == 0:
		c.x0, c.y0, c.x1, c.y1 = px, py, px, py
	case px <= x || c.n == 1 || c.x1 < x:
		c.x0, c.y0, c.x1, c.y1 = c.x1, c.y1, px, py
	default:
		return // already past x
	}
	c.n++
}

func (c *curve) at(x float64, grows bool) (float64, bool) {
	switch {
	case c.n == 0:
		return 0, false
	case x <= c.x0:
		return outside(c.x0, c.y0, x, grows), true
	case x >= c.x1:
		return outside(c.x1, c.y1, x, grows), true
	}
	f := (math.Log(x) - math.Log(c.x0)) / (math.Log(c.x1) - math.Log(c.x0))
	return math.Exp(math.Log(c.y0) + f*(math.Log(c.y1)-math.Log(c.y0))), true
}

func outside(px, py, x float64, grows bool) float64 {
	if !grows || x <= 0 {
		return py
	}
	return py * x / px
}

// Estimate prices a node's work from the table.
func (t *Table) Estimate(k Key, w Work) (Estimate, bool) {
	e := Estimate{Source: FromTable, Scale: 1}
	batch := max(w.Batch, 1)
	switch w.Stage {
	case ieg.StagePrefill, ieg.StageEmbed:
		whole, ok := t.PrefillSeconds(k, batch, w.Past+w.Tokens)
		if !ok {
			return Estimate{}, false
		}
		// Of a prompt whose first tokens are there already, the rest is paid.
		e.Seconds = whole * float64(w.Tokens) / float64(max(w.Past+w.Tokens, 1))
		e.Compute, e.Bottleneck = e.Seconds, Compute
	case ieg.StageDecode:
		step, ok := t.DecodeSeconds(k, batch, w.Past+w.Tokens/2)
		if !ok {
			return Estimate{}, false
		}
		e.Seconds = step * float64(w.Tokens)
		e.Bandwidth, e.Bottleneck = e.Seconds, Bandwidth
	default:
		return Estimate{}, false
	}
	return e, true
}
