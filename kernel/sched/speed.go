package sched

import (
	"math/bits"
	"time"
)

const buckets = 12 // of 1, 2, 4 … 2048

// Speed is the measured pace of an engine. Step times are kept by size:
// decode by the number of sequences, prefill per token by the size of the
// chunk, each a moving average seeded by a prior until it is measured.
type Speed struct {
	Decode  [buckets]time.Duration // a step that advances 2^i sequences by one token
	Prefill [buckets]time.Duration // per token of a chunk of 2^i tokens
	SeenD   [buckets]int32         // observations
	SeenP   [buckets]int32
}

// Weight of a new observation in the moving average.
const ewma = 0.2

// NewSpeed seeds the pace with a prior: a decode step of one sequence, the
// added time of each further one, and the time per token of a prefill.
func NewSpeed(base, perSeq, perToken time.Duration) *Speed {
	s := &Speed{}
	for i := range s.Decode {
		s.Decode[i] = base + perSeq*time.Duration(1<<i-1)
		s.Prefill[i] = perToken
	}
	return s
}

func bucket(n int) int { return min(bits.Len(uint(max(n, 1)))-1, buckets-1) }

// Observe takes in a step that advanced d sequences by one token and computed
// p tokens of longer gaps.
func (s *Speed) Observe(d, p int, took time.Duration) {
	switch {
	case p == 0 && d > 0:
		i := bucket(d)
		// Steps between powers of two are scaled to the bucket's own size.
		s.fold(&s.Decode[i], &s.SeenD[i], scale(took, s.decodeAt(1<<i), s.decodeAt(d)))
	case p > 0:
		rest := took - s.DecodeStep(d)
		if floor := took / 8; rest < floor {
			rest = floor
		}
		i := bucket(p)
		s.fold(&s.Prefill[i], &s.SeenP[i], rest/time.Duration(p))
	}
}

func scale(took, at, of time.Duration) time.Duration {
	if of <= 0 {
		return took
	}
	return time.Duration(float64(took) * float64(at) / float64(of))
}

func (s *Speed) fold(v *time.Duration, seen *int32, x time.Duration) {
	if *seen == 0 {
		*v = x
	} else {
		*v += time.Duration(ewma * float64(x-*v))
	}
	*seen++
}

// DecodeStep predicts a step that advances d sequences by one token.
func (s *Speed) DecodeStep(d int) time.Duration {
	if d <= 0 {
		return 0
	}
	return s.decodeAt(d)
}

// decodeAt interpolates between buckets; an unmeasured bucket is taken from
// the nearest measured one, scaled by the prior's shape.
func (s *Speed) decodeAt(d int) time.Duration {
	i := bucket(d)
	lo := measured(s.Decode[:], s.SeenD[:], i)
	if i == buckets-1 || d == 1<<i {
		return lo
	}
	hi := max(measured(s.Decode[:], s.SeenD[:], i+1), lo)
	f := float64(d-1<<i) / float64(int(1)<<i)
	return lo + time.Duration(f*float64(hi-lo))
}

// measured is the value of bucket i, or the nearest measured one's.
func measured(v []time.Duration, seen []int32, i int) time.Duration {
	if seen[i] > 0 {
		return v[i]
	}
	for d := 1; d < len(v); d++ {
		if i-d >= 0 && seen[i-d] > 0 {
			return max(v[i-d], 0)
		}
		if i+d < len(v) && seen[i+d] > 0 {
			return v[i+d]
		}
	}
	return v[i]
}

// PrefillToken predicts the time per token of a chunk of p tokens.
func (s *Speed) PrefillToken(p int) time.Duration {
	return measured(s.Prefill[:], s.SeenP[:], bucket(p))
}

// Step predicts a step of d decodes and p prefill tokens.
func (s *Speed) Step(d, p int) time.Duration {
	return s.DecodeStep(d) + time.Duration(p)*s.PrefillToken(p)
}
