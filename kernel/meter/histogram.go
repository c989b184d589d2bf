package meter

import (
	"slices"
	"time"
)

// Histogram counts values by bucket. Counts[i] is the number of values in
// (Bounds[i-1], Bounds[i]]; the last count has no upper bound.
type Histogram struct {
	Bounds []float64
	Counts []uint64
	Sum    float64
	Count  uint64
}

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) add(v float64) {
	i := 0
	for i < len(h.Bounds) && v > h.Bounds[i] {
		i++
	}
	h.Counts[i]++
	h.Sum += v
	h.Count++
}

// span adds a time in seconds; a clock never runs backwards, so a negative one
// is nothing.
func (h *Histogram) span(d time.Duration) { h.add(max(d, 0).Seconds()) }

func (h Histogram) clone() Histogram {
	h.Counts = slices.Clone(h.Counts)
	return h
}

// Add adds the counts of o, which has the same bounds.
func (h *Histogram) Add(o Histogram) {
	for i, n := range o.Counts {
		h.Counts[i] += n
	}
	h.Sum += o.Sum
	h.Count += o.Count
}

// Merge is the sum of histograms with the same bounds.
func Merge(hs ...Histogram) Histogram {
	out := newHistogram(hs[0].Bounds)
	for _, h := range hs {
		out.Add(h)
	}
	return out
}
