package sample

import (
	"math"

	"ieg"
)

// Scratch is the working memory of draws; one serves all samplers of a
// goroutine.
type Scratch struct {
	ids    []int32   // the high tokens, in the order of the row
	ps     []float32 // and their weights
	part   []float32
	blocks []float64 // running sums of the weights, one per blockTokens
	// entries are the tokens' places in the table; hist counts the tokens of
	// each, in two halves that don't wait for each other.
	entries []uint16
	hist    [2][histSize]int32
	best    []Candidate
	raw     []float32
}

// NewScratch makes room for rows of a vocabulary.
func NewScratch(vocab int) *Scratch {
	return &Scratch{
		ids: make([]int32, 0, highMost), ps: make([]float32, 0, highMost),
		part: make([]float32, 0, vocab), entries: make([]uint16, vocab),
		blocks: make([]float64, 0, vocab/blockTokens+1),
		best:   make([]Candidate, 0, heapMost),
	}
}

// tail holds the weights of the tokens far below the likeliest.
var tail = func() (t [-floor*tailSteps + 1]float32) {
	for i := range t[:len(t)-1] { // the last is 0, for all that is below
		t[i] = float32(math.Exp(-(float64(i) + 0.5) / tailSteps))
	}
	return t
}()

// histSize is a power of two above the table's size, so that an index masked
// by it needs no check.
const histSize = 4096

// scale says how logits become weights: the likeliest token weighs 1.
type scale struct{ top, inv, span float32 }

// weight is the weight of a logit; 0 if it is not considered.
func (c scale) weight(v float32) float32 {
	d := (c.top - v) * c.inv
	if !(d <= c.span) {
		return 0
	}
	if d < highSpan {
		return exp(-d)
	}
	return tail[uint32(d*tailSteps)]
}

// drawRow draws from the whole row; top is its largest logit.
func (s *Sampler) drawRow(w *Scratch, logits []float32, top float32, u float64) ieg.Token {
	c := scale{top: top, inv: s.inverse(), span: -s.cut()}
	if k := int(s.par.TopK); k > 0 && k < len(logits) {
		w.part = append(w.part[:0], logits...)
		// Ties with the k-th stay: at this size they change nothing.
		c.span = min(c.span, (top-nth(w.part, k))*c.inv)
	}
	mass := w.weigh(logits, c)
	if s.par.TopP <= 0 || s.par.TopP >= 1 {
		return w.walk(logits, c, u*mass)
	}
	return w.drawNucleus(logits, c, float64(s.par.TopP)*mass, u)
}

// drawNucleus draws from the likeliest tokens that together weigh want. Most
// often the high tokens hold them.
func (w *Scratch) drawNucleus(logits []float32, c scale, want, u float64) ieg.Token {
	reached := 0.0
	for _, p := range w.ps {
		reached += float64(p)
	}
	if reached < want || len(w.ps) == highMost {
		return w.drawFlat(logits, c, want, u)
	}
	w.part = append(w.part[:0], w.ps...)
	least := nucleus(w.part, want)
	kept := 0.0
	for _, p := range w.ps {
		if p >= least {
			kept += float64(p)
		}
	}
	r, sum, last := u*kept, 0.0, int32(-1)
	for i, p := range w.ps {
		if p < least {
			continue
		}
		last = w.ids[i]
		if sum += float64(p); sum > r {
			break
		}
	}
	return ieg.Token(last)
}

// drawFlat does the same where the nucleus is large: it counts the tokens by
// their entry of the table, and decides one by one only in the entry in which
// the nucleus ends.
func (w *Scratch) drawFlat(logits []float32, c scale, want, u float64) ieg.Token {
	w.count(logits, c)
	last, end, kept := c.last(), uint32(0), 0.0
	for ; end < last; end++ {
		m := float64(w.hist[0][end]+w.hist[1][end]) * float64(tail[end])
		if kept+m >= want {
			break
		}
		kept += m
	}
	w.part = w.part[:0]
	for i, k := range w.entries[:len(logits)] {
		if uint32(k) == end {
			w.part = append(w.part, exp(-(c.top-logits[i])*c.inv))
		}
	}
	if len(w.part) == 0 { // rounding: the whole row is less than want
		return w.walkFlat(logits, c, end, 0, u*kept)
	}
	least := nucleus(w.part, want-kept)
	for _, p := range w.part {
		if p >= least {
			kept += float64(tail[end])
		}
	}
	return w.walkFlat(logits, c, end, least, u*kept)
}

// count fills entries and hist.
func (w *Scratch) count(logits []float32, c scale) {
	entries := w.entries[:len(logits)]
	even, odd := &w.hist[0], &w.hist[1]
	clear(even[:])
	clear(odd[:])
	i := 0
	for ; i+2 <= len(logits); i += 2 {
		b, e := logits[i:i+2:i+2], entries[i:i+2:i+2]
		k0, k1 := c.entry(b[0]), c.entry(b[1])
		e[0], e[1] = uint16(k0), uint16(k1)
		even[k0%histSize]++
		odd[k1%histSize]++
	}
	if i < len(logits) {
		entries[i] = uint16(c.entry(logits[i]))
		even[entries[i]%histSize]++
	}
}

// walkFlat finds the token at which the running sum passes r, of those in
// entries before end and those of at least the weight least in it.
func (w *Scratch) walkFlat(logits []float32, c scale, end uint32, least float32, r float64) ieg.Token {
	sum, at := 0.0, -1
	for i, e := range w.entries[:len(logits)] {
		k := uint32(e)
		if k > end || k == end && exp(-(c.top-logits[i])*c.inv) < least {
			continue
		}
		at = i
		if sum += float64(tail[k]); sum > r {
			break
		}
	}
	return ieg.Token(at)
}

// entry is the place of a logit in the table; the last one holds 0.
// Which tokens lie beyond is as good as random, so the bound is taken without
// a branch.
func (c scale) entry(v float32) uint32 {
	const end = uint32(len(tail) - 1)
	k := uint32(int32((c.top - v) * (c.inv * tailSteps)))
	beyond := uint32(int32(end-k) >> 31) // all ones if k > end
	return k&^beyond | end&beyond
}

// last is the first entry that is not considered.
func (c scale) last() uint32 {
	return min(uint32(c.span*tailSteps)+1, uint32(len(tail)-1))
}

// weigh sums the weights of the row, block by block, and lists the high
// tokens. It returns the total.
func (w *Scratch) weigh(logits []float32, c scale) float64 {
	w.ids, w.ps, w.blocks = w.ids[:0], w.ps[:0], w.blocks[:0]
	mass := 0.0
	for from := 0; from < len(logits); from += blockTokens {
		span := logits[from:min(from+blockTokens, len(logits))]
		if c.span >= -floor {
			mass += float64(w.weighAll(span, c, int32(from)))
		} else {
			mass += float64(w.weighSome(span, c, int32(from)))
		}
		w.blocks = append(w.blocks, mass)
	}
	return mass
}

// weighAll weighs a block without a cut. Four sums run side by side: one
// alone would wait for each addition to end.
func (w *Scratch) weighAll(v []float32, c scale, from int32) float32 {
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(v); i += 4 {
		b := v[i : i+4 : i+4]
		k0, k1, k2, k3 := c.entry(b[0]), c.entry(b[1]), c.entry(b[2]), c.entry(b[3])
		const high = highSpan * tailSteps
		if int32((k0-high)|(k1-high)|(k2-high)|(k3-high)) >= 0 || len(w.ids) == highMost {
			s0 += tail[k0]
			s1 += tail[k1]
			s2 += tail[k2]
			s3 += tail[k3]
			continue
		}
		s0 += w.weighSome(b, c, from+int32(i))
	}
	return s0 + s1 + s2 + s3 + w.weighSome(v[i:], c, from+int32(i))
}

// weighSome weighs tokens one by one.
func (w *Scratch) weighSome(v []float32, c scale, from int32) float32 {
	sum := float32(0)
	for i, x := range v {
		d := (c.top - x) * c.inv
		if !(d <= c.span) {
			continue
		}
		if d >= highSpan || len(w.ids) == highMost {
			sum += tail[uint32(d*tailSteps)]
			continue
		}
		p := exp(-d)
		w.ids, w.ps = append(w.ids, from+int32(i)), append(w.ps, p)
		sum += p
	}
	return sum
}

// walk finds the token at which the running sum passes r: the block by the
// running sums, the token by weighing the block's again.
func (w *Scratch) walk(logits []float32, c scale, r float64) ieg.Token {
	b, sum := 0, 0.0
	for b < len(w.blocks)-1 && w.blocks[b] <= r {
		sum = w.blocks[b]
		b++
	}
	last := -1
	for i := b * blockTokens; i < len(logits); i++ {
		p := c.weight(logits[i])
		if p == 0 {
			continue
		}
		last = i
		if sum += float64(p); sum > r {
			break
		}
	}
	if last < 0 { // rounding at the very end of the row
		_, last = argmax(logits)
	}
	return ieg.Token(last)
}

// Mass is the weight of the whole row at the sampler's temperature (1 for
// arg max) in units of the likeliest token's, and Share the weight of
// candidates in the same units.
func (s *Sampler) Mass(w *Scratch, logits []float32) float64 {
	top, at := argmax(logits)
	if at < 0 {
		return 0
	}
	return w.weigh(logits, scale{top, s.inverse(), -floor})
}

// Share sums the weights of candidates relative to the logit top.
func (s *Sampler) Share(c []Candidate, top float32) float64 {
	sum, inv := 0.0, s.inverse()
	for _, x := range c {
		if d := (x.Logit - top) * inv; d >= floor {
			sum += float64(exp(d))
		}
	}
	return sum
}

func (s *Sampler) inverse() float32 {
	if s.par.Temperature <= 0 {
		return 1
	}
	return 1 / s.par.Temperature
}

// Keep copies the row as the model gave it, for Logprob after the draw.
func (w *Scratch) Keep(logits []float32) { w.raw = append(w.raw[:0], logits...) }

// Logprob fills lp from the kept row: the natural-log probabilities of the
// drawn token and of the n likeliest. Bytes are the caller's.
func (w *Scratch) Logprob(drawn ieg.Token, n int, lp *ieg.Logprob) {
	top, _ := argmax(w.raw)
	norm := float32(math.Log(w.weigh(w.raw, scale{top, 1, -floor}))) + top
	lp.Chosen = ieg.TokenLogprob{Token: drawn, Logprob: w.raw[drawn] - norm}
	lp.Top = lp.Top[:0]
	if n <= 0 {
		return
	}
	for _, c := range w.Best(w.raw, min(n, MaxLogprobs)) {
		lp.Top = append(lp.Top, ieg.TokenLogprob{Token: c.Token, Logprob: c.Logit - norm})
	}
}
