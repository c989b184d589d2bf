package llama

import (
	"math"
	"sync"

	"ieg"
	"ieg/devices/engine/llama/sample"
)

// drawer is the working memory of draws.
type drawer struct {
	vocab   int
	scratch *sample.Scratch
	allowed []ieg.Token
	row     []float32 // made for the first grammar
}

func newDrawer(vocab int) *drawer {
	return &drawer{vocab: vocab, scratch: sample.NewScratch(vocab)}
}

// rowsPerDrawer is the number of rows from which another thread draws too: to
// wake it costs as much as a few draws.
const rowsPerDrawer = 4

// drawAll draws for the works that r.rowOf names, on the engine's threads,
// which are idle between two passes.
func (r *Runner) drawAll(rows int) {
	n := min(len(r.drawers), rows/rowsPerDrawer)
	if n <= 1 {
		r.drawShare(0, 1)
		return
	}
	var wg sync.WaitGroup
	for k := 1; k < n; k++ {
		wg.Go(func() { r.drawShare(k, n) })
	}
	r.drawShare(0, n)
	wg.Wait()
}

// drawShare draws every n-th row from the k-th on.
func (r *Runner) drawShare(k, n int) {
	for _, i := range r.order {
		if row := r.rowOf[i]; row >= 0 && row%n == k {
			r.drawers[k].finish(r, r.picked[i], r.logits[row*r.vocab.n:(row+1)*r.vocab.n], &r.results[i])
		}
	}
}

// draw draws the next token of a sequence from its row of logits, which it
// may change. It returns -1 when there is none.
//
// With a grammar the drawn token is checked alone. If it is refused, the best
// bestTokens are checked, and if what is allowed among them weighs enoughShare
// times what was not looked at, the draw is made among them; else the whole
// vocabulary is. Up to that share the result is distributed as if the grammar
// had been applied first: a token is drawn with p if the first draw hits it,
// and with its share of the allowed mass if the first draw is refused. Under
// arg max the best allowed one of bestTokens is exactly that.
func (d *drawer) draw(q *sequence, logits []float32) ieg.Token {
	if q.par.Logprobs >= 0 {
		d.scratch.Keep(logits)
	}
	at := int32(len(q.tokens))
	q.sampler.Prepare(d.scratch, logits, q.suppressed())
	t := q.sampler.Draw(d.scratch, logits, at, 0)
	if t < 0 || q.guard == nil || q.guard.allows(t) {
		return t
	}
	best := d.scratch.Best(logits, bestTokens)
	top, seen := best[0].Logit, q.sampler.Share(best, best[0].Logit)
	n := 0
	for _, c := range best {
		if q.guard.allows(c.Token) {
			best[n] = c
			n++
		}
	}
	best = best[:n]
	if n > 0 {
		if q.par.Temperature <= 0 {
			return best[0].Token
		}
		rest := max(q.sampler.Mass(d.scratch, logits)-seen, 0)
		if q.sampler.Share(best, top) >= enoughShare*rest {
			return q.sampler.DrawAmong(d.scratch, best, at, 1)
		}
	}
	return d.drawAllowed(q, logits, at)
}

// drawAllowed draws among all tokens that the grammar allows.
func (d *drawer) drawAllowed(q *sequence, logits []float32, at int32) ieg.Token {
	d.allowed = q.guard.all(d.allowed[:0])
	if d.row == nil {
		d.row = make([]float32, d.vocab)
	}
	for i := range d.row {
		d.row[i] = float32(math.Inf(-1))
	}
	for _, t := range d.allowed {
		d.row[t] = logits[t]
	}
	return q.sampler.Draw(d.scratch, d.row, at, 1)
}

// logprob reports a draw.
func (d *drawer) logprob(v *vocab, q *sequence, t ieg.Token, lp *ieg.Logprob) *ieg.Logprob {
	if lp == nil {
		lp = &ieg.Logprob{}
	}
	d.scratch.Logprob(t, int(q.par.Logprobs), lp)
	lp.Chosen.Bytes = v.piece(t)
	for i := range lp.Top {
		lp.Top[i].Bytes = v.piece(lp.Top[i].Token)
	}
	return lp
}
