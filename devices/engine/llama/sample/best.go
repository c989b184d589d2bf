package sample

import (
	"math"
	"slices"

	"ieg"
)

// Candidate is a token with its logit.
type Candidate struct {
	Token ieg.Token
	Logit float32
}

// better orders candidates: by logit, then the lower token first.
func better(a, b Candidate) bool {
	return a.Logit > b.Logit || a.Logit == b.Logit && a.Token < b.Token
}

// Best returns the n best tokens, best first; fewer if fewer are not minus
// infinity. The slice is the scratch's and lives until its next use.
func (w *Scratch) Best(logits []float32, n int) []Candidate {
	h := w.best[:0]
	root := float32(math.Inf(-1))
	for i, v := range logits {
		if !(v > root) {
			continue
		}
		c := Candidate{ieg.Token(i), v}
		if len(h) < n {
			h = append(h, c)
			if len(h) == n {
				slices.SortFunc(h, compare)
				slices.Reverse(h) // a sorted slice is a heap, worst first
				root = h[0].Logit
			}
			continue
		}
		h[0] = c
		sift(h)
		root = h[0].Logit
	}
	slices.SortFunc(h, compare)
	w.best = h
	return h
}

func compare(a, b Candidate) int {
	if better(a, b) {
		return -1
	}
	if better(b, a) {
		return 1
	}
	return 0
}

// sift restores the heap (worst first) after its root was replaced.
func sift(h []Candidate) {
	i := 0
	for {
		l := 2*i + 1
		if l >= len(h) {
			return
		}
		if r := l + 1; r < len(h) && better(h[l], h[r]) {
			l = r
		}
		if !better(h[i], h[l]) {
			return
		}
		h[i], h[l] = h[l], h[i]
		i = l
	}
}

// nth returns the n-th largest value (n from 1) by partition; it reorders v.
func nth(v []float32, n int) float32 {
	lo, hi := 0, len(v)
	for hi-lo > 1 {
		gt, eq := split(v, lo, hi)
		switch {
		case n <= gt-lo:
			hi = gt
		case n <= eq-lo:
			return v[gt]
		default:
			n -= eq - lo
			lo = eq
		}
	}
	return v[lo]
}

// nucleus returns the smallest value of the fewest largest ones whose sum
// reaches want; it reorders v. All values are finite and positive.
func nucleus(v []float32, want float64) float32 {
	lo, hi := 0, len(v)
	for hi-lo > 1 {
		gt, eq := split(v, lo, hi)
		above := 0.0
		for _, x := range v[lo:gt] {
			above += float64(x)
		}
		if above >= want {
			hi = gt
			continue
		}
		pivot := v[gt]
		same := float64(pivot) * float64(eq-gt)
		if above+same >= want || eq == hi {
			return pivot
		}
		want -= above + same
		lo = eq
	}
	return v[lo]
}

// split partitions v[lo:hi] around the median of three: [lo, gt) is larger,
// [gt, eq) equal, [eq, hi) smaller.
func split(v []float32, lo, hi int) (gt, eq int) {
	a, b, c := v[lo], v[lo+(hi-lo)/2], v[hi-1]
	pivot := max(min(a, b), min(max(a, b), c))
	gt, eq = lo, lo
	end := hi
	for eq < end {
		x := v[eq]
		switch {
		case x > pivot:
			v[eq] = v[gt]
			v[gt] = x
			gt++
			eq++
		case x < pivot:
			end--
			v[eq] = v[end]
			v[end] = x
		default:
			eq++
		}
	}
	return gt, eq
}
