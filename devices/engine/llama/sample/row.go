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
	best   []Candidate
	raw    []float32
}

// NewScratch makes room for rows of a vocabulary.
func NewScratch(vocab int) *Scratch {
	return &Scratch{
		ids: make([]int32, 0, vocab), ps: make([]float32, 0, vocab),
		part:   make([]float32, 0, vocab),
		blocks: make([]float64, 0, vocab/blockTokens+1),
		best:   make([]Candidate, 0, heapMost), raw: make([]float32, 0, vocab),
	}
}

// tail holds the weights of the tokens far below the likeliest.
var tail = func() (t [-floor*tailSteps + 1]float32) {
	for i := range t {
		t[i] = float32(math.Exp(-(float64(i) + 0.5) / tailSteps))
	}
	return t
}()

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

// drawNucleus draws from the likeliest tokens that together weigh want.
func (w *Scratch) drawNucleus(logits []float32, c scale, want, u float64) ieg.Token {
	reached := 0.0
	for _, p := range w.ps {
		reached += float64(p)
	}
	if reached < want {
		w.all(logits, c)
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

// all lists every considered token with its weight.
func (w *Scratch) all(logits []float32, c scale) {
	w.ids, w.ps = w.ids[:0], w.ps[:0]
	for i, v := range logits {
		if p := c.weight(v); p > 0 {
			w.ids, w.ps = append(w.ids, int32(i)), append(w.ps, p)
		}
	}
}

// weigh sums the weights of the row, block by block, and lists the high
// tokens. It returns the total.
func (w *Scratch) weigh(logits []float32, c scale) float64 {
	ids, ps := w.ids[:0], w.ps[:0]
	w.blocks = w.blocks[:0]
	mass := 0.0
	top, inv, steps := c.top, c.inv, c.inv*tailSteps
	last := uint32(min(c.span, -floor) * tailSteps)
	for from := 0; from < len(logits); from += blockTokens {
		span := logits[from:min(from+blockTokens, len(logits))]
		sum := float32(0)
		for i, v := range span {
			k := uint32(int32((top - v) * steps))
			if k >= highSpan*tailSteps {
				if k <= last && k < uint32(len(tail)) {
					sum += tail[k]
				}
				continue
			}
			if d := (top - v) * inv; d <= c.span {
				p := exp(-d)
				ids, ps = append(ids, int32(from+i)), append(ps, p)
				sum += p
			}
		}
		mass += float64(sum)
		w.blocks = append(w.blocks, mass)
	}
	w.ids, w.ps = ids, ps
	return mass
}

// walk finds the token at which the running sum passes r.
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
