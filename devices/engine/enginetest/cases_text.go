package enginetest

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"ieg"
)

func testInfo(t *testing.T, b *bench) {
	i := b.info
	if i.Slots < 1 || i.SlotTokens < 1 || i.Cells < i.SlotTokens && i.Layout == ieg.Streams || i.Cells < 1 || i.StepTokens < 1 || i.UBatch < 1 {
		t.Errorf("slots %d of %d tokens, %d cells, steps of %d, passes of %d", i.Slots, i.SlotTokens, i.Cells, i.StepTokens, i.UBatch)
	}
	if i.Backend == "" || i.Library == "" || i.Threads < 1 {
		t.Errorf("backend %q, library %q, %d threads", i.Backend, i.Library, i.Threads)
	}
	if m := i.Model; m.Vocab < 1 || m.Layers < 1 || m.Params < 1 || m.WeightBytes < 1 || !m.Generative && !m.Embedding {
		t.Errorf("model %+v", m)
	}
}

func testTokenize(t *testing.T, b *bench) {
	for _, text := range []string{"hello world", "two\nlines", "naïve café, 東京, 🙂", "w300 w301 ", "  spaces  "} {
		got, err := b.runner.Detokenize(b.tokens(text))
		if err != nil || strings.TrimSpace(got) != strings.TrimSpace(text) {
			t.Errorf("%q came back as %q (%v)", text, got, err)
		}
	}
	if got := b.tokens(""); len(got) != 0 {
		t.Errorf("no text gave tokens %v", got)
	}
	for _, control := range b.info.Model.ControlText {
		special, err := b.runner.Tokenize(control, true)
		if err != nil || len(special) != 1 {
			t.Errorf("%q as a control token: %v (%v)", control, special, err)
			continue
		}
		if plain := b.tokens(control); slices.Contains(plain, special[0]) {
			t.Errorf("user text %q became control token %d", control, special[0])
		}
	}
}

func testTokenizeBeside(t *testing.T, b *bench) {
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := b.runner.Tokenize(b.o.Prompt, false)
				if err != nil || !slices.Equal(got, b.prompt) {
					t.Errorf("beside a step: %v (%v)", got, err)
					return
				}
				if _, err := b.runner.Detokenize(got); err != nil {
					t.Errorf("beside a step: %v", err)
					return
				}
			}
		})
	}
	b.generate(b.start(0, b.prompt), outputTokens)
	close(stop)
	wg.Wait()
}

func testStopToken(t *testing.T, b *bench) {
	free := b.generate(b.start(0, b.prompt), outputTokens)
	want := slices.Index(free.tokens, free.tokens[len(free.tokens)/2])
	s := b.start(0, b.prompt)
	s.Sampling.StopTokens = []ieg.Token{free.tokens[want]}
	got := b.generate(s, outputTokens)
	if got.stop != ieg.StopEnd || got.stopText != "" || len(got.tokens) != want+1 {
		t.Fatalf("stopped %v (%q) after %d tokens, want stop after %d", got.stop, got.stopText, len(got.tokens), want+1)
	}
	if !strings.HasPrefix(string(free.text), string(got.text)) {
		t.Errorf("text %q is no start of %q", got.text, free.text)
	}
}

// longest returns the longest run of letters and digits in text after the
// first few bytes, to be used as a stop string.
func longest(text string) string {
	best := ""
	for _, w := range strings.FieldsFunc(text[min(len(text), 4):], func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}) {
		if len(w) > len(best) {
			best = w
		}
	}
	return best
}

func testStopString(t *testing.T, b *bench) {
	free := b.generate(b.start(0, b.prompt), outputTokens)
	stop := longest(string(free.text))
	if stop == "" {
		t.Skipf("the engine's text %q has no word", free.text)
	}
	at := strings.Index(string(free.text), stop)
	for _, include := range []bool{false, true} {
		s := b.start(0, b.prompt)
		s.Sampling.Stop = []string{"no such text in it", stop}
		s.Sampling.IncludeStop = include
		got := b.generate(s, outputTokens)
		want := string(free.text[:at])
		if include {
			want += stop
		}
		if got.stop != ieg.StopEnd || got.stopText != stop || string(got.text) != want {
			t.Errorf("include %t: text %q, stop %v %q; want %q, %q", include, got.text, got.stop, got.stopText, want, stop)
		}
	}
}

func testMinTokens(t *testing.T, b *bench) {
	const least = 6
	s := b.start(0, b.prompt)
	s.MaxTokens = 12
	s.Sampling.MinTokens = least
	s.Sampling.LogitBias = nil
	for _, e := range b.info.Model.EOG {
		s.Sampling.LogitBias = append(s.Sampling.LogitBias, ieg.TokenBias{Token: e, Bias: 20})
	}
	if got := b.generate(s, 12); len(got.tokens) < least {
		t.Errorf("%d tokens, want at least %d", len(got.tokens), least)
	}
	s = b.start(0, b.prompt)
	s.MaxTokens = 12
	s.Sampling.IgnoreEOS = true
	if got := b.generate(s, 12); len(got.tokens) != 12 || got.stop != ieg.StopLength {
		t.Errorf("%d tokens, stop %v; want 12, length", len(got.tokens), got.stop)
	}
}

func testLogprobs(t *testing.T, b *bench) {
	s := b.start(0, b.prompt)
	s.Sampling.Logprobs = 3
	got := b.generate(s, 4)
	for i, p := range got.probs {
		if p == nil || len(p.Top) != 3 {
			t.Fatalf("token %d: %+v, want 3 alternatives", i, p)
		}
		if p.Chosen.Token != got.tokens[i] || p.Top[0].Token != got.tokens[i] || p.Chosen.Logprob != p.Top[0].Logprob {
			t.Errorf("token %d: chosen %+v, best %+v, drawn %d: arg max is the best", i, p.Chosen, p.Top[0], got.tokens[i])
		}
		for j := range p.Top {
			if p.Top[j].Logprob > 0 || j > 0 && p.Top[j].Logprob > p.Top[j-1].Logprob {
				t.Errorf("token %d: alternatives out of order: %+v", i, p.Top)
			}
		}
	}
	if got := b.generate(b.start(0, b.prompt), 2); got.probs[0] != nil {
		t.Errorf("logprobs %+v that nobody asked for", got.probs[0])
	}
}

func testSeed(t *testing.T, b *bench) {
	draw := func(seed uint64, choice int32) output {
		s := b.start(0, b.prompt)
		s.Sampling.Temperature, s.Sampling.Seed, s.Sampling.Choice = 1.5, seed, choice
		s.Sampling.IgnoreEOS = true
		return b.generate(s, outputTokens)
	}
	first := draw(7, 0)
	b.same("same seed", first, draw(7, 0))
	if slices.Equal(first.tokens, draw(8, 0).tokens) {
		t.Errorf("another seed gave the same %d tokens %v", len(first.tokens), first.tokens)
	}
	if slices.Equal(first.tokens, draw(7, 1).tokens) {
		t.Errorf("another choice gave the same %d tokens %v", len(first.tokens), first.tokens)
	}
}
