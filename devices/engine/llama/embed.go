package llama

import (
	"fmt"
	"math"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// embedAll computes the inputs to be embedded, as many at once as fit a pass.
// They have a context of their own: their pooling needs every token's output,
// which would slow generation, and nothing of them is kept.
func (r *Runner) embedAll(work []ieg.Work, done *ieg.StepDone) (aborted bool, err error) {
	c := r.emb
	for next := 0; next < len(r.embeds); {
		c.batch.n = 0
		first := next
		for next < len(r.embeds) && next-first < int(c.shape.slots) {
			in := r.embedInput(r.picked[r.embeds[next]])
			if len(in) > int(r.embedTokens) {
				return false, fmt.Errorf("%w: sequence %d has %d tokens to embed, at most %d", ieg.ErrContextLength, work[r.embeds[next]].Seq, len(in), r.embedTokens)
			}
			if c.batch.n+len(in) > int(c.shape.batch) || c.batch.n > 0 && c.batch.n+len(in) > int(c.shape.ubatch) {
				break
			}
			for k, t := range in {
				c.batch.add(t, int32(k), int32(next-first), true)
			}
			next++
		}
		switch code := c.decode(); code {
		case decodeOK:
		case decodeAborted:
			r.forgetEmbeds()
			return true, nil
		default:
			r.forgetEmbeds()
			return false, fmt.Errorf("embedding: llama.cpp failed with code %d: %s", code, r.lib.log.Take())
		}
		for k := first; k < next; k++ {
			i := r.embeds[k]
			v, err := yz.GetEmbeddingsSeq(c.ctx, yz.SeqId(k-first), r.embedDim)
			if err != nil || v == nil {
				return false, fmt.Errorf("embedding of sequence %d: the library gave no vector", work[i].Seq)
			}
			done.Results[i] = ieg.SeqResult{Seq: work[i].Seq, Computed: work[i].N, Vector: unit(v), Stop: ieg.StopEnd}
		}
		r.forgetEmbeds()
		if r.abort.IsSet() {
			return true, nil
		}
	}
	return false, nil
}

// embedInput is the tokens of an input with the begin and end tokens that the
// model was trained with, if they aren't there.
func (r *Runner) embedInput(q *sequence) []ieg.Token {
	in := q.tokens
	m := &r.info.Model
	if end := r.vocab.endToken(); m.AddEOS && r.vocab.valid(end) && in[len(in)-1] != end {
		in = append(in[:len(in):len(in)], end)
	}
	if m.AddBOS && r.vocab.valid(m.BOS) && in[0] != m.BOS {
		in = append([]ieg.Token{m.BOS}, in...)
	}
	return in
}

func (r *Runner) forgetEmbeds() {
	if r.emb.mem != 0 {
		_ = yz.MemoryClear(r.emb.mem, false)
	}
}

// unit copies a vector, scaled to length 1.
func unit(v []float32) []float32 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := make([]float32, len(v))
	if sum == 0 {
		return out
	}
	by := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * by)
	}
	return out
}
