package cost

import "ieg"

// Step is what one step computes, as far as its time is concerned.
type Step struct {
	Seqs     int32 // sequences that decode one token
	KVTokens int64 // Σ of their contexts: cells read
	Prefill  int32 // tokens of prefill chunks
	Attended int64 // Σ of Attended over those chunks
}

// Speed is the time of a step, linear in its parts, in seconds.
type Speed struct {
	Base     float64 // any step
	Seq      float64 // per decoding sequence
	KVToken  float64 // per cell read by them
	Prefill  float64 // per prefill token
	Attended float64 // per pair of a prefill token and a cell it sees
}

// Zero tells whether nothing is known.
func (s Speed) Zero() bool { return s == Speed{} }

// Step is the predicted time of a step in seconds.
func (s Speed) Step(x Step) float64 {
	return s.Base + s.Seq*float64(x.Seqs) + s.KVToken*float64(x.KVTokens) +
		s.Prefill*float64(x.Prefill) + s.Attended*float64(x.Attended)
}

// PrefillSeconds is the time to compute n tokens after past ones in chunks of
// at most chunk tokens (0: one chunk).
func (s Speed) PrefillSeconds(past, n, chunk int32) float64 {
	steps := 1.0
	if chunk > 0 && n > chunk {
		steps = float64((n + chunk - 1) / chunk)
	}
	return steps*s.Base + s.Prefill*float64(n) + s.Attended*float64(Attended(past, n))
}

// DecodeSeconds is the time of n steps of batch sequences whose contexts start
// at past tokens.
func (s Speed) DecodeSeconds(past, n, batch int32) float64 {
	b := float64(max(batch, 1))
	return float64(n)*(s.Base+s.Seq*b) + s.KVToken*b*float64(Attended(past, n))
}

// PrefillTPS is the measured prefill speed in tokens/s of an empty context.
func (s Speed) PrefillTPS() float64 {
	if s.Prefill <= 0 {
		return 0
	}
	return 1 / s.Prefill
}

const profileTerms = 5

// Profile fits the Speed of one engine to its steps: weighted least squares of
// the relative error with forgetting, coefficients never negative, one sweep
// of coordinate descent a step (no matrix is inverted; about 100 ns). The zero
// value knows nothing.
type Profile struct {
	// A and B are the decayed normal equations; X the fitted coefficients.
	A [profileTerms][profileTerms]float64
	B [profileTerms]float64
	X [profileTerms]float64
	// Steps counts observations.
	Steps int64
	// Error is the smoothed relative error of predictions made before each
	// observation; Off counts those in a row above ReprofileError.
	Error float64
	Off   int
}

// Prior starts the profile from an expectation, which the first observations
// outweigh.
func (p *Profile) Prior(s Speed) {
	p.X = [profileTerms]float64{s.Base, s.Seq, s.KVToken, s.Prefill, s.Attended}
}

// Speed is the fitted speed; zero before the first observation or prior.
func (p *Profile) Speed() Speed {
	return Speed{p.X[0], p.X[1], p.X[2], p.X[3], p.X[4]}
}

// Observe takes in a measured step and returns the relative error of its
// prediction, |actual − predicted| / actual.
func (p *Profile) Observe(x Step, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	missed := (p.Speed().Step(x) - seconds) / seconds
	if missed < 0 {
		missed = -missed
	}
	p.judge(missed)
	p.Steps++
	f := [profileTerms]float64{1, float64(x.Seqs), float64(x.KVTokens), float64(x.Prefill), float64(x.Attended)}
	for i := range f {
		f[i] /= seconds // relative error: each step weighs alike
	}
	for i := range p.A {
		p.B[i] = forget*p.B[i] + f[i]
		for j := range p.A[i] {
			p.A[i][j] = forget*p.A[i][j] + f[i]*f[j]
		}
	}
	sweeps := 2
	if p.Steps < 32 {
		sweeps = 32
	}
	for range sweeps {
		p.sweep()
	}
	return missed
}

func (p *Profile) judge(missed float64) {
	if p.Steps == 0 {
		return
	}
	p.Error += 0.1 * (missed - p.Error)
	if missed > ReprofileError {
		p.Off++
	} else {
		p.Off = 0
	}
}

// sweep improves each coefficient once with the others held.
func (p *Profile) sweep() {
	for i := range p.X {
		if p.A[i][i] < 1e-18 {
			continue // not seen for long: keep what was known
		}
		r := p.B[i]
		for j := range p.X {
			if j != i {
				r -= p.A[i][j] * p.X[j]
			}
		}
		p.X[i] = max(r/p.A[i][i], 0)
	}
}

// Reprofile tells that the last ReprofileAfter predictions were all more than
// ReprofileError off: the linear form no longer describes the engine.
func (p *Profile) Reprofile() bool { return p.Off >= ReprofileAfter }

// Estimate is the time of a node's work at this speed. ok is false for stages
// that engines don't run and while nothing was measured.
func (s Speed) Estimate(w Work, chunk int32) (e Estimate, ok bool) {
	if s.Zero() {
		return Estimate{}, false
	}
	e = Estimate{Source: FromProfile, Scale: 1}
	switch w.Stage {
	case ieg.StagePrefill, ieg.StageEmbed:
		e.Seconds = s.PrefillSeconds(w.Past, w.Tokens, chunk) * float64(max(w.Batch, 1))
		e.Compute, e.Bottleneck = e.Seconds, Compute
	case ieg.StageDecode:
		e.Seconds = s.DecodeSeconds(w.Past, w.Tokens, w.Batch)
		e.Bandwidth, e.Bottleneck = e.Seconds, Bandwidth
	default:
		return Estimate{}, false
	}
	return e, true
}
