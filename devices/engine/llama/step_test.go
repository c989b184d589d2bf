package llama

import (
	"slices"
	"testing"

	"ieg"
)

const chat = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n"

func TestChatWithRealModel(t *testing.T) {
	spec := tinySpec(t)
	spec.Path, spec.Name, spec.Context = realModel(t), "smol", 1024
	layouts(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		s := d.generate(0, tokenize(t, r, chat), greedy(), 40, 512)
		t.Logf("%q, %v, info %+v", s.text, s.stop, r.Info())
		if s.stop != ieg.StopEnd || s.text != "The capital of France is Paris." {
			t.Errorf("%q stops by %v", s.text, s.stop)
		}
	})
}

// TestEqualsRawLoop: in a cleared context the engine draws what a plain loop
// over the library draws.
func TestEqualsRawLoop(t *testing.T) {
	spec := tinySpec(t)
	layouts(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		prompt := tokenize(t, r, "the quick brown fox jumps over a lazy dog, again and again")
		want, err := RawLoop(RawSpec{Load: spec, Layout: r.info.Layout, Flash: true, Prompts: [][]ieg.Token{prompt}, Tokens: 60, Context: 512})
		if err != nil {
			t.Fatal(err)
		}
		par := greedy()
		par.IgnoreEOS = true
		s := d.generate(1, prompt, par, 61, 512)
		if !slices.Equal(s.tokens[s.prompt:], want.Tokens[0]) {
			t.Errorf("drew %v, want %v", s.tokens[s.prompt:], want.Tokens[0])
		}
	})
}
