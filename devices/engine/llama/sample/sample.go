package sample

import (
	"math"

	"ieg"
)

// Sampler draws the tokens of one sequence.
type Sampler struct {
	par  ieg.Sampling
	seen map[ieg.Token]int32 // index into hist
	hist []history
}

// history is what the penalties know of one token.
type history struct {
	token  ieg.Token
	output int32 // times drawn
}

// New makes a sampler. Out-of-range tokens in the parameters are ignored when
// a row is prepared.
func New(par ieg.Sampling) *Sampler {
	s := &Sampler{par: par}
	if s.repeats() || par.PresencePenalty != 0 || par.FrequencyPenalty != 0 {
		s.seen = map[ieg.Token]int32{}
	}
	return s
}

func (s *Sampler) repeats() bool {
	return s.par.RepetitionPenalty > 0 && s.par.RepetitionPenalty != 1
}

// Prompt adds tokens of the prompt to the history.
func (s *Sampler) Prompt(tokens []ieg.Token) {
	if s.seen == nil || !s.repeats() {
		return
	}
	for _, t := range tokens {
		s.note(t)
	}
}

// Accept adds a drawn token to the history.
func (s *Sampler) Accept(t ieg.Token) {
	if s.seen != nil {
		s.note(t).output++
	}
}

func (s *Sampler) note(t ieg.Token) *history {
	i, ok := s.seen[t]
	if !ok {
		i = int32(len(s.hist))
		s.seen[t] = i
		s.hist = append(s.hist, history{token: t})
	}
	return &s.hist[i]
}

// Plain tells that Prepare changes nothing, given no suppressed tokens.
func (s *Sampler) Plain() bool {
	return len(s.par.AllowedTokens) == 0 && len(s.par.LogitBias) == 0 && len(s.hist) == 0
}

// Prepare applies allowed tokens, bias, penalties and suppressed tokens to the
// row, in place. It touches only the tokens concerned, except that a list of
// allowed tokens rewrites the row.
func (s *Sampler) Prepare(w *Scratch, logits []float32, suppress []ieg.Token) {
	n := ieg.Token(len(logits))
	if len(s.par.AllowedTokens) > 0 {
		s.allow(w, logits)
	}
	for _, b := range s.par.LogitBias {
		if b.Token >= 0 && b.Token < n {
			logits[b.Token] += b.Bias
		}
	}
	rep, repeats := s.par.RepetitionPenalty, s.repeats()
	for i := range s.hist {
		h := &s.hist[i]
		if h.token < 0 || h.token >= n {
			continue
		}
		v := logits[h.token]
		if repeats && v > 0 {
			v /= rep
		} else if repeats {
			v *= rep
		}
		if h.output > 0 {
			v -= s.par.PresencePenalty + s.par.FrequencyPenalty*float32(h.output)
		}
		logits[h.token] = v
	}
	for _, t := range suppress {
		if t >= 0 && t < n {
			logits[t] = float32(math.Inf(-1))
		}
	}
}

func (s *Sampler) allow(w *Scratch, logits []float32) {
	keep := w.part[:0]
	for _, t := range s.par.AllowedTokens {
		v := float32(math.Inf(-1))
		if t >= 0 && int(t) < len(logits) {
			v = logits[t]
		}
		keep = append(keep, v)
	}
	for i := range logits {
		logits[i] = float32(math.Inf(-1))
	}
	for i, t := range s.par.AllowedTokens {
		if t >= 0 && int(t) < len(logits) {
			logits[t] = keep[i]
		}
	}
	w.part = keep[:0]
}

// Draw draws the token at a position from a prepared row. The salt tells apart
// several draws at one position. It returns -1 if no token is left (all are
// minus infinity or not a number).
func (s *Sampler) Draw(w *Scratch, logits []float32, position int32, salt uint32) ieg.Token {
	top, at := argmax(logits)
	if at < 0 || s.par.Temperature <= 0 || math.IsInf(float64(top), 1) {
		return ieg.Token(at)
	}
	u := Uniform(s.par.Seed, s.par.Choice, position, salt)
	if k := int(s.par.TopK); k > 0 && k < len(logits) && k <= heapMost {
		return s.among(w, w.Best(logits, k), u)
	}
	return s.drawRow(w, logits, top, u)
}

// DrawAmong draws from candidates sorted best first, as if no other token
// existed. The salt tells apart several draws at one position.
func (s *Sampler) DrawAmong(w *Scratch, c []Candidate, position int32, salt uint32) ieg.Token {
	if len(c) == 0 {
		return -1
	}
	if s.par.Temperature <= 0 {
		return c[0].Token
	}
	if k := int(s.par.TopK); k > 0 && k < len(c) {
		c = c[:k]
	}
	return s.among(w, c, Uniform(s.par.Seed, s.par.Choice, position, salt))
}

// cut is the relative log-probability below which min_p and the floor drop a
// token.
func (s *Sampler) cut() float32 {
	if s.par.MinP > 0 {
		return max(floor, float32(math.Log(float64(s.par.MinP))))
	}
	return floor
}

// among draws from candidates sorted best first.
func (s *Sampler) among(w *Scratch, c []Candidate, u float64) ieg.Token {
	inv, low := 1/s.par.Temperature, s.cut()
	ps, mass := w.part[:0], 0.0
	for _, x := range c {
		d := (x.Logit - c[0].Logit) * inv
		if !(d >= low) {
			break
		}
		p := exp(d)
		ps = append(ps, p)
		mass += float64(p)
	}
	w.part = ps
	if s.par.TopP > 0 && s.par.TopP < 1 {
		want, sum := float64(s.par.TopP)*mass, 0.0
		for i, p := range ps {
			sum += float64(p)
			if sum >= want && (i+1 == len(ps) || ps[i+1] < p) {
				ps, mass = ps[:i+1], sum
				break
			}
		}
	}
	r, sum := u*mass, 0.0
	for i, p := range ps {
		if sum += float64(p); sum > r {
			return c[i].Token
		}
	}
	return c[len(ps)-1].Token
}
