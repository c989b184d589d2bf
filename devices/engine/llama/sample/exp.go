package sample

import "math"

// exp is e^x for x in [-80, 0], within 3e-7 of it: 2^f by a polynomial of
// degree 5 on [-1, 0] (least squares on the relative error, error 9e-8), then
// the exponent's bits. The conversions keep the compiler from fusing
// operations, so that all processors of Go round alike.
func exp(x float32) float32 {
	t := x * log2e
	i := int32(t) // towards zero, so the fraction is in (-1, 0]
	f := t - float32(i)
	p := float32(c5*f) + c4
	p = float32(p*f) + c3
	p = float32(p*f) + c2
	p = float32(p*f) + c1
	p = float32(p*f) + 1
	return math.Float32frombits(uint32(int32(math.Float32bits(p)) + i<<23))
}

const (
	log2e = float32(1.4426950408889634)
	c1    = float32(0.693143567577438)
	c2    = float32(0.24017890316373708)
	c3    = float32(0.055294041020751306)
	c4    = float32(0.009202175836082597)
	c5    = float32(0.0009435106638629162)
)

// argmax returns the first largest value and where it is; -1 if no value is
// larger than minus infinity (not-a-number never is).
func argmax(v []float32) (float32, int) {
	best, at := float32(math.Inf(-1)), -1
	i := 0
	for ; i+8 <= len(v); i += 8 {
		b := v[i : i+8 : i+8]
		if b[0] > best || b[1] > best || b[2] > best || b[3] > best ||
			b[4] > best || b[5] > best || b[6] > best || b[7] > best {
			for j, x := range b {
				if x > best {
					best, at = x, i+j
				}
			}
		}
	}
	for ; i < len(v); i++ {
		if v[i] > best {
			best, at = v[i], i
		}
	}
	return best, at
}
