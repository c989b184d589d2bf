package synth

import (
	"math"
	"slices"

	"ieg"
)

// mix is the finaliser of SplitMix64 over a sum: a good 64-bit hash step.
func mix(h, v uint64) uint64 {
	h += v*0x9e3779b97f4a7c15 + 0x632be59bd9b4e019
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// extend is the hash of a prefix made longer by one token; it is also what
// the KV of that token's position holds.
func extend(h uint64, t ieg.Token) uint64 { return mix(h, uint64(uint32(t))) }

// halfChar begins a two-byte character, which otherHalf always completes:
// about one token in 16, so that texts are cut inside characters.
const (
	halfChar  = firstByte + 0xC3
	otherHalf = firstByte + 0xA9 // "é"
)

// draw is the token after the prefix with hash h. A bias of 100 or more forces
// its token, one of -100 or less bans it; AllowedTokens leaves only those. The
// end of generation is banned by IgnoreEOS, and like the stop tokens before
// MinTokens.
func (r *Runner) draw(s *sequence, h uint64) ieg.Token {
	p := &s.sampling
	if p.Temperature > 0 {
		h = mix(mix(h, p.Seed), uint64(uint32(p.Choice))+1)
	}
	for _, x := range p.LogitBias {
		if x.Bias >= 100 {
			return x.Token
		}
	}
	t := ieg.Token(0)
	for range redraws {
		if t = r.candidate(s, h); !s.banned(t) {
			return t
		}
		h = mix(h, 7)
	}
	return t
}

// candidate is a token by hash alone.
func (r *Runner) candidate(s *sequence, h uint64) ieg.Token {
	switch {
	case len(s.sampling.AllowedTokens) > 0:
		return s.sampling.AllowedTokens[h%uint64(len(s.sampling.AllowedTokens))]
	case s.last() == halfChar:
		return otherHalf
	case r.stopEvery > 0 && mix(h, 1)%uint64(r.stopEvery) == 0:
		return EOS
	case mix(h, 2)%16 == 0:
		return halfChar
	}
	return r.word(h)
}

func (r *Runner) word(h uint64) ieg.Token {
	return firstWord + ieg.Token(h%uint64(r.info.Model.Vocab-int32(firstWord)))
}

func (s *sequence) banned(t ieg.Token) bool {
	p := &s.sampling
	if isEOG(t) && (p.IgnoreEOS || s.generated() < p.MinTokens) {
		return true
	}
	if s.generated() < p.MinTokens && slices.Contains(p.StopTokens, t) {
		return true
	}
	for _, x := range p.LogitBias {
		if x.Token == t && x.Bias <= -100 {
			return true
		}
	}
	return false
}

// logprob makes up probabilities: the best is the greedy token with -0.25,
// each further one is 0.5 less; a drawn token outside them has -9.
func (r *Runner) logprob(s *sequence, h uint64, chosen ieg.Token) *ieg.Logprob {
	n := min(int(s.sampling.Logprobs), int(r.info.Model.Vocab-int32(firstWord)))
	l := &ieg.Logprob{Chosen: ieg.TokenLogprob{Token: chosen, Logprob: -9, Bytes: appendToken(nil, chosen, true)}}
	temperature := s.sampling.Temperature
	s.sampling.Temperature = 0
	best := r.draw(s, h)
	s.sampling.Temperature = temperature
	if best == chosen {
		l.Chosen.Logprob = -0.25
	}
	for i := range n {
		t := best
		if i > 0 {
			t = firstWord + (r.word(h)-firstWord+ieg.Token(i))%(ieg.Token(r.info.Model.Vocab)-firstWord)
		}
		if i > 0 && t == best {
			t = TurnStart
		}
		top := ieg.TokenLogprob{Token: t, Logprob: -0.25 - 0.5*float32(i), Bytes: appendToken(nil, t, true)}
		if t == chosen {
			l.Chosen.Logprob = top.Logprob
		}
		l.Top = append(l.Top, top)
	}
	return l
}

// vector is a unit vector made of a prefix's hash.
func vector(h uint64) []float32 {
	v := make([]float32, VectorSize)
	sum := 0.0
	for i := range v {
		h = mix(h, uint64(i))
		x := float64(int64(h)) / math.MaxInt64
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
