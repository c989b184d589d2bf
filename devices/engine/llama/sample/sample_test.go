package sample

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"ieg"
)

const vocab = 49152

// row makes logits with the shape of a language model's: a broad bulk and a
// few high ones.
func row(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 7))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(8 + 3*r.NormFloat64())
	}
	for range 60 {
		v[r.IntN(n)] = float32(16 + 5*r.NormFloat64())
	}
	return v
}

// naive is the twin: all in float64, by sorting.
func naive(par ieg.Sampling, logits []float32, position int32) (ieg.Token, float64) {
	type pair struct {
		t ieg.Token
		p float64
	}
	var all []pair
	for i, v := range logits {
		all = append(all, pair{ieg.Token(i), float64(v)})
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].p > all[j].p || all[i].p == all[j].p && all[i].t < all[j].t
	})
	if par.Temperature <= 0 {
		return all[0].t, 1
	}
	sorted := par.TopK > 0 && par.TopK <= heapMost && int(par.TopK) < len(all)
	if par.TopK > 0 && int(par.TopK) < len(all) {
		all = all[:par.TopK]
	}
	top, mass, n := all[0].p, 0.0, 0
	for _, a := range all {
		x := (a.p - top) / float64(par.Temperature)
		if x < floor || par.MinP > 0 && x < math.Log(float64(par.MinP)) {
			break
		}
		all[n].p = math.Exp(x)
		mass += all[n].p
		n++
	}
	all = all[:n]
	if par.TopP > 0 && par.TopP < 1 {
		sum := 0.0
		for i, a := range all {
			if sum += a.p; sum >= float64(par.TopP)*mass {
				all, mass = all[:i+1], sum
				break
			}
		}
	}
	if !sorted {
		sort.Slice(all, func(i, j int) bool { return all[i].t < all[j].t })
	}
	r, sum := Uniform(par.Seed, par.Choice, position, 0)*mass, 0.0
	for _, a := range all {
		if sum += a.p; sum > r {
			return a.t, min(sum-r, r-(sum-a.p)) / mass
		}
	}
	return all[len(all)-1].t, 0
}

func TestDrawEqualsNaiveTwin(t *testing.T) {
	w := NewScratch(vocab)
	params := []ieg.Sampling{
		{},
		{Temperature: 1},
		{Temperature: 0.7, TopP: 0.9},
		{Temperature: 1, TopP: 0.95},
		{Temperature: 2, TopP: 0.999},
		{Temperature: 1, TopK: 40},
		{Temperature: 1, TopK: 2000, TopP: 0.99},
		{Temperature: 1.3, TopK: 100, TopP: 0.8, MinP: 0.02},
		{Temperature: 1, MinP: 0.05},
		{Temperature: 50, TopP: 0.3},
		{Temperature: 4, TopP: 0.95},
		{Temperature: 3, TopP: 0.9, MinP: 0.01},
		{Temperature: 3, TopP: 0.999, TopK: 30000},
		{Temperature: 0.01},
	}
	close := 0
	for seed := range uint64(12) {
		for i, par := range params {
			n := []int{vocab, 1, 37, 5000}[seed%4]
			logits := row(seed, n)
			par.Seed, par.Choice = seed, int32(i)
			want, slack := naive(par, logits, int32(seed*3))
			got := New(par).Draw(w, logits, int32(seed*3), 0)
			if got != want {
				// Rounding may decide only where the draw falls on an edge.
				if slack > 1e-3 {
					t.Errorf("seed %d, %+v: drew %d, want %d (slack %g)", seed, par, got, want, slack)
				}
				close++
			}
		}
	}
	if close > 20 {
		t.Errorf("%d draws on an edge: the weights are off", close)
	}
}

func TestDistribution(t *testing.T) {
	logits := []float32{1, 2, 3, 0, 2.5, -40, float32(math.NaN()), float32(math.Inf(-1))}
	s := New(ieg.Sampling{Temperature: 1, Seed: 11})
	w := NewScratch(len(logits))
	const draws = 200000
	var count [8]int
	for i := range int32(draws) {
		count[s.Draw(w, logits, i, 0)]++
	}
	sum := 0.0
	for _, v := range logits[:5] {
		sum += math.Exp(float64(v))
	}
	chi := 0.0
	for i, v := range logits[:5] {
		want := draws * math.Exp(float64(v)) / sum
		chi += (float64(count[i]) - want) * (float64(count[i]) - want) / want
	}
	if chi > 18.5 { // 4 degrees of freedom, p = 0.001
		t.Errorf("chi square %.1f, counts %v", chi, count)
	}
	if count[5]+count[6]+count[7] != 0 {
		t.Errorf("drew impossible tokens: %v", count)
	}
}

func TestUniformIsPinned(t *testing.T) {
	// A change of these numbers changes every continued sequence.
	for _, c := range []struct {
		seed        uint64
		choice, pos int32
		salt        uint32
		want        uint64
	}{
		{0, 0, 0, 0, pinned[0]}, {1, 0, 0, 0, pinned[1]}, {0, 1, 0, 0, pinned[2]},
		{0, 0, 1, 0, pinned[3]}, {0, 0, 0, 1, pinned[4]}, {1 << 63, 7, 1 << 30, 2, pinned[5]},
	} {
		got := uint64(Uniform(c.seed, c.choice, c.pos, c.salt) * (1 << 53))
		if got != c.want {
			t.Errorf("Uniform(%d, %d, %d, %d) = %d/2^53, want %d", c.seed, c.choice, c.pos, c.salt, got, c.want)
		}
	}
}

func TestPenaltiesAndBias(t *testing.T) {
	w := NewScratch(6)
	s := New(ieg.Sampling{RepetitionPenalty: 2, PresencePenalty: 1, FrequencyPenalty: 0.5,
		LogitBias: []ieg.TokenBias{{Token: 4, Bias: 3}, {Token: 99, Bias: 1}, {Token: -1, Bias: 1}}})
	s.Prompt([]ieg.Token{0, 1})
	s.Accept(1)
	s.Accept(1)
	s.Accept(2)
	logits := []float32{4, 4, -4, 4, 1, 4}
	s.Prepare(w, logits, []ieg.Token{5, 77})
	want := []float32{2, 2 - 1 - 1, -8 - 1 - 0.5, 4, 4, float32(math.Inf(-1))}
	for i := range want {
		if logits[i] != want[i] {
			t.Errorf("token %d: %v, want %v", i, logits[i], want[i])
		}
	}
	if New(ieg.Sampling{RepetitionPenalty: 1}).Plain() != true || s.Plain() {
		t.Error("Plain is wrong")
	}
}

func TestAllowedTokens(t *testing.T) {
	w := NewScratch(6)
	for _, temp := range []float32{0, 1} {
		s := New(ieg.Sampling{Temperature: temp, AllowedTokens: []ieg.Token{2, 3, 44}})
		for i := range int32(200) {
			logits := []float32{9, 9, 1, 2, 9, 9}
			s.Prepare(w, logits, nil)
			if got := s.Draw(w, logits, i, 0); got != 2 && got != 3 {
				t.Fatalf("drew %d", got)
			}
		}
	}
}

func TestNothingLeft(t *testing.T) {
	w := NewScratch(2)
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, temp := range []float32{0, 1} {
		if got := New(ieg.Sampling{Temperature: temp, TopK: 1}).Draw(w, []float32{nan, inf}, 0, 0); got != -1 {
			t.Errorf("drew %d from nothing", got)
		}
	}
}

func TestLogprobs(t *testing.T) {
	w := NewScratch(vocab)
	logits := row(3, vocab)
	w.Keep(logits)
	var lp ieg.Logprob
	w.Logprob(5, 20, &lp)
	sum, top := 0.0, 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	for i, x := range append(lp.Top, lp.Chosen) {
		want := float64(logits[x.Token]) - math.Log(sum)
		if math.Abs(float64(x.Logprob)-want) > 1e-4 {
			t.Errorf("token %d: %v, want %v", x.Token, x.Logprob, want)
		}
		if i > 0 && i < 20 && x.Logprob > lp.Top[i-1].Logprob {
			t.Error("not sorted")
		}
		top += math.Exp(want)
	}
	if len(lp.Top) != 20 || top > 1 {
		t.Errorf("%d alternatives, sum %v", len(lp.Top), top)
	}
}

func TestExp(t *testing.T) {
	for x := float32(0); x > -80; x -= 0.0137 {
		want := math.Exp(float64(x))
		if got := float64(exp(x)); math.Abs(got/want-1) > 1e-5 {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if exp(0) != 1 {
		t.Error("exp(0) is not 1")
	}
}

func TestNoAllocation(t *testing.T) {
	w := NewScratch(vocab)
	base, logits := row(1, vocab), make([]float32, vocab)
	for _, par := range []ieg.Sampling{{}, {Temperature: 1, TopP: 0.95}, {Temperature: 1, TopK: 40}, {Temperature: 1}} {
		s := New(par)
		if n := testing.AllocsPerRun(20, func() {
			copy(logits, base)
			s.Prepare(w, logits, nil)
			s.Draw(w, logits, 3, 0)
		}); n != 0 {
			t.Errorf("%+v: %v allocations a draw", par, n)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	w := NewScratch(vocab)
	base, logits := row(1, vocab), make([]float32, vocab)
	for _, c := range []struct {
		name string
		par  ieg.Sampling
	}{
		{"greedy", ieg.Sampling{}},
		{"temperature", ieg.Sampling{Temperature: 1}},
		{"topp", ieg.Sampling{Temperature: 1, TopP: 0.95}},
		{"topk40", ieg.Sampling{Temperature: 1, TopK: 40, TopP: 0.95}},
		{"minp", ieg.Sampling{Temperature: 1, MinP: 0.05}},
		{"penalties", ieg.Sampling{Temperature: 1, TopP: 0.95, PresencePenalty: 0.5, RepetitionPenalty: 1.1}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := New(c.par)
			for i := range ieg.Token(500) {
				s.Accept(i * 31)
			}
			copy(logits, base)
			for i := range b.N {
				if len(s.hist) > 0 {
					copy(logits, base)
				}
				s.Prepare(w, logits, nil)
				s.Draw(w, logits, int32(i), 0)
			}
		})
	}
	b.Run("flat", func(b *testing.B) {
		s, flat := New(ieg.Sampling{Temperature: 4, TopP: 0.95}), row(1, vocab)
		for i := range b.N {
			s.Draw(w, flat, int32(i), 0)
		}
	})
	b.Run("best256", func(b *testing.B) {
		for range b.N {
			w.Best(base, 256)
		}
	})
	b.Run("logprobs20", func(b *testing.B) {
		var lp ieg.Logprob
		for range b.N {
			w.Keep(base)
			w.Logprob(3, 20, &lp)
		}
	})
}
