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

// TestThreadsDrawAlike: rows drawn on several threads give the same tokens.
func TestThreadsDrawAlike(t *testing.T) {
	spec := tinySpec(t)
	spec.Slots, spec.Context = 16, 256
	var want [][]ieg.Token
	for _, threads := range []int{1, 2} {
		spec.Threads = threads
		r := start(t, spec)
		d := &driver{t: t, r: r}
		var b ieg.Batch
		var seqs []*seq
		for i := range 16 {
			par := sampled(uint64(i))
			if i%3 == 0 {
				par.Grammar = `root ::= [a-z ]{200} "."`
			}
			par.Logprobs = int32(i%4) - 1
			s, begin := d.newSeq(ieg.Slot(i), tokenize(t, r, "a few words"), par, 20)
			seqs, b.New = append(seqs, s), append(b.New, begin)
		}
		for range 20 {
			b.Work = b.Work[:0]
			for _, s := range seqs {
				if s.stop == ieg.NotStopped {
					b.Work = append(b.Work, s.work(512))
				}
			}
			for i, res := range d.ok(b).Results {
				seqs[b.Work[i].Slot].took(res)
			}
			b.New = nil
		}
		for i, s := range seqs {
			if threads == 1 {
				want = append(want, s.tokens)
			} else if !slices.Equal(s.tokens, want[i]) {
				t.Errorf("sequence %d: %v, alone %v", i, s.tokens, want[i])
			}
		}
	}
}

// TestStepAllocates: what a step allocates does not grow with its batch.
func TestStepAllocates(t *testing.T) {
	spec := tinySpec(t)
	spec.Slots, spec.Context = 16, 512
	r := start(t, spec)
	d := &driver{t: t, r: r}
	perStep := func(batch int) float64 {
		var b ieg.Batch
		var seqs []*seq
		for i := range batch {
			par := ieg.Sampling{Temperature: 1, TopP: 0.9, Seed: uint64(i), IgnoreEOS: true, Logprobs: -1, Stop: []string{"\x00"}}
			s, begin := d.newSeq(ieg.Slot(i), tokenize(t, r, "a few words"), par, 400)
			seqs, b.New = append(seqs, s), append(b.New, begin)
		}
		var done ieg.StepDone
		step := func() {
			b.Work = b.Work[:0]
			for _, s := range seqs {
				b.Work = append(b.Work, s.work(512))
			}
			r.Step(&b, &done)
			for i, res := range done.Results {
				seqs[i].held += res.Computed
				seqs[i].tokens = append(seqs[i].tokens, res.Token)
			}
			b.New = nil
		}
		for _, s := range seqs {
			s.tokens = slices.Grow(s.tokens, 400)
		}
		for range 100 {
			step()
		}
		n := testing.AllocsPerRun(100, step)
		for _, s := range seqs {
			b.Drop = append(b.Drop, s.id)
		}
		d.ok(ieg.Batch{Drop: b.Drop})
		return n
	}
	one, many := perStep(1), perStep(16)
	t.Logf("%v allocations a step of 1, %v of 16", one, many)
	if many > one+2 || one > 16 {
		t.Errorf("%v allocations a step of 1, %v of 16", one, many)
	}
}
