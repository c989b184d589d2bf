package bench

import "math"

// logSoftmax turns logits into log-probabilities.
func logSoftmax(logits []float32) []float32 {
	most := float64(logits[argMax(logits)])
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	shift := most + math.Log(sum)
	out := make([]float32, len(logits))
	for i, x := range logits {
		out[i] = float32(float64(x) - shift)
	}
	return out
}

// divergence is KL(p ‖ q) of distributions given as log-probabilities, in
// nats.
func divergence(p, q []float32) (sum float64) {
	for i, x := range p {
		if d := float64(x) - float64(q[i]); d != 0 {
			sum += math.Exp(float64(x)) * d
		}
	}
	return sum
}

// drawFrom is the token at u in [0, 1) of the cumulative distribution.
func drawFrom(p []float32, u float64) int {
	for i, x := range p {
		if u -= math.Exp(float64(x)); u < 0 {
			return i
		}
	}
	return argMax(p)
}

func argMax(v []float32) int {
	at := 0
	for i, x := range v {
		if x > v[at] {
			at = i
		}
	}
	return at
}
