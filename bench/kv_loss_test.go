package bench

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestDivergence(t *testing.T) {
	p, q := logSoftmax([]float32{0, 0, 0}), logSoftmax([]float32{float32(math.Log(2)), 0, 0})
	if got := math.Exp(float64(q[0])); math.Abs(got-0.5) > 1e-6 {
		t.Errorf("softmax %g, 0.5 expected", got)
	}
	// ⅓ ln(⅓/½) + 2·⅓ ln(⅓/¼)
	want := (math.Log(2./3) + 2*math.Log(4./3)) / 3
	if got := divergence(p, q); math.Abs(got-want) > 1e-6 {
		t.Errorf("KL %g, %g expected", got, want)
	}
	if got := divergence(p, p); got != 0 {
		t.Errorf("KL %g to itself", got)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		a, b := make([]float32, 50), make([]float32, 50)
		for i := range a {
			a[i], b[i] = 30*r.Float32(), 30*r.Float32()
		}
		if got := divergence(logSoftmax(a), logSoftmax(b)); got < 0 || math.IsNaN(got) || math.IsInf(got, 0) {
			t.Fatalf("KL %g", got)
		}
	}
}

func TestDrawFromFollowsTheDistribution(t *testing.T) {
	p := logSoftmax([]float32{0, float32(math.Log(2)), 0}) // ¼, ½, ¼
	for _, c := range []struct {
		u    float64
		want int
	}{{0, 0}, {0.24, 0}, {0.26, 1}, {0.74, 1}, {0.76, 2}, {1, 1}} {
		if got := drawFrom(p, c.u); got != c.want {
			t.Errorf("at %g: %d, not %d", c.u, got, c.want)
		}
	}
}
