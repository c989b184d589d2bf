package llama

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ieg"
)

// sampled is a lively choice of parameters.
func sampled(seed uint64) ieg.Sampling {
	return ieg.Sampling{Temperature: 1, TopP: 0.95, Seed: seed, RepetitionPenalty: 1.1, PresencePenalty: 0.3,
		Logprobs: -1, IgnoreEOS: true, Stop: []string{"zqx", "kj"}}
}

// TestReplayContinues: a sequence described again from all its tokens goes on
// as if it had never stopped, in another engine.
func TestReplayContinues(t *testing.T) {
	spec := tinySpec(t)
	spec.KVType, spec.FlashAttn = "f32", "off" // see TestConformanceExact
	layouts(t, spec, func(t *testing.T, r *Runner) {
		prompt := tokenize(t, r, "once upon a time there was é and €")
		for seed := range uint64(4) {
			whole := (&driver{t: t, r: start(t, spec)}).generate(0, prompt, sampled(seed), 48, 512)
			for _, cut := range []int{1, 7, 20} {
				if cut >= len(whole.tokens)-whole.prompt {
					continue
				}
				d := &driver{t: t, r: start(t, spec)}
				known := whole.tokens[:whole.prompt+cut]
				s, begin := d.newSeq(2, known, sampled(seed), 48)
				begin.Prompt, s.prompt = int32(whole.prompt), whole.prompt
				b := ieg.Batch{New: []ieg.SeqStart{begin}}
				for s.stop == ieg.NotStopped {
					b.Work = []ieg.Work{s.work(512)}
					s.took(d.ok(b).Results[0])
					b = ieg.Batch{}
				}
				if !slices.Equal(s.tokens, whole.tokens) || s.stop != whole.stop {
					t.Fatalf("seed %d cut %d: %v, want %v", seed, cut, s.tokens, whole.tokens)
				}
				if len(s.text) > len(whole.text) || whole.text[len(whole.text)-len(s.text):] != s.text {
					t.Fatalf("seed %d cut %d: text %q is no end of %q", seed, cut, s.text, whole.text)
				}
			}
		}
	})
}

// probeLogits computes one more token in a slot and returns its logits.
func probeLogits(d *driver, slot ieg.Slot, tokens []ieg.Token) []float32 {
	d.t.Helper()
	held := d.r.slots.tokens[slot]
	s, begin := d.newSeq(slot, tokens, greedy(), 4)
	s.held = held
	d.ok(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{s.work(512)}})
	out := slices.Clone(d.r.gen.logits(1, d.r.vocab.n))
	d.ok(ieg.Batch{Drop: []ieg.SeqID{s.id}, Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot, N: held}}})
	return out
}

func far(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i]-b[i])))
	}
	return worst
}

// TestCopyAndTrim: a copied prefix, cut to a length, gives the logits of a
// computed one.
func TestCopyAndTrim(t *testing.T) {
	spec := tinySpec(t)
	layouts(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		text := tokenize(t, r, "it was the best of times, it was the worst of times, it was the age of wisdom")
		compute := func(slot ieg.Slot, n int) {
			s, begin := d.newSeq(slot, text[:n], greedy(), 4)
			w := s.work(512)
			w.Sample = false
			d.ok(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{w}, Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot, N: 0}}})
		}
		const n = 20
		compute(0, n)
		want := probeLogits(d, 0, text[:n+1])
		compute(0, 40)
		// Copies in one batch, chained, over what was there, and by export:
		compute(3, 10)
		d.ok(ieg.Batch{Ops: []ieg.KVOp{
			{Kind: ieg.KVCopy, From: 0, To: 1, N: 30},
			{Kind: ieg.KVCopy, From: 1, To: 3, N: n},
			{Kind: ieg.KVTrim, To: 1, N: n},
		}})
		for _, slot := range []ieg.Slot{1, 3} {
			if off := far(probeLogits(d, slot, text[:n+1]), want); off > 1e-3 {
				t.Errorf("slot %d: logits off by %g", slot, off)
			}
		}
		d.ok(ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 2, N: 0}}})
		if err := r.slots.copy(0, 2, n, false); err != nil {
			t.Fatal(err)
		}
		r.slots.dropBlob()
		if off := far(probeLogits(d, 2, text[:n+1]), want); off > 1e-3 {
			t.Errorf("copied by export: logits off by %g", off)
		}
		if got := r.slots.tokens; !slices.Equal(got, []int32{40, n, n, n}) {
			t.Errorf("slots hold %v", got)
		}
		if off := far(probeLogits(d, 0, text[:41]), probeLogits(d, 1, text[:n+1])); off == 0 {
			t.Error("the source was cut with its copy")
		}
	})
}

// TestBothWaysToCopyAreChosen: few long streams are copied by content, short
// ones whole.
func TestBothWaysToCopyAreChosen(t *testing.T) {
	spec := tinySpec(t)
	spec.Layout = "streams"
	s := start(t, spec).slots
	fan := func(n int) (ops []ieg.KVOp) {
		for range n {
			ops = append(ops, ieg.KVOp{Kind: ieg.KVCopy, From: 0, To: 1, N: 1})
		}
		return ops
	}
	s.tokens[0] = 500
	if !s.copyWhole(fan(1)) {
		t.Error("a full stream is exported")
	}
	s.tokens[0] = 20
	if s.copyWhole(fan(60)) {
		t.Error("60 copies of 20 tokens move whole streams")
	}
	s.deferred = true
	if !s.copyWhole(fan(60)) {
		t.Error("an export could overtake a deferred copy")
	}
}

func TestAbortRollsBack(t *testing.T) {
	spec := tinySpec(t)
	spec.Context = 8192
	layouts(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		long := slices.Repeat(tokenize(t, r, "words and words and words "), 400)[:6000]
		calm, begin := d.newSeq(0, long[:30], sampled(1), 100)
		d2, begin2 := d.newSeq(1, long, greedy(), 4)
		d.ok(ieg.Batch{New: []ieg.SeqStart{begin, begin2}})
		calm.took(d.ok(ieg.Batch{Work: []ieg.Work{calm.work(512)}}).Results[0])
		aborted := 0
		for d2.held < int32(len(long)) {
			work := []ieg.Work{calm.work(512), d2.work(511)}
			before := slices.Clone(r.slots.tokens)
			stop := make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for tick := time.NewTicker(200 * time.Microsecond); ; {
					select {
					case <-stop:
						tick.Stop()
						return
					case <-tick.C:
						r.Abort()
					}
				}
			}()
			done := d.run(ieg.Batch{Work: work})
			close(stop)
			<-ended
			switch done.Outcome {
			case ieg.StepAborted:
				aborted++
				if !slices.Equal(before, r.slots.tokens) || r.slots.held(0) != before[0] || r.slots.held(1) != before[1] {
					t.Fatalf("slots hold %v, the library %d and %d; before %v", r.slots.tokens, r.slots.held(0), r.slots.held(1), before)
				}
				done = d.ok(ieg.Batch{Work: work})
			case ieg.StepFailed:
				t.Fatal(done.Err)
			}
			if calm.stop == ieg.NotStopped {
				calm.took(done.Results[0])
			}
			d2.took(done.Results[1])
			if calm.stop != ieg.NotStopped {
				break
			}
		}
		if aborted == 0 {
			t.Fatal("no step was aborted")
		}
		r.Abort() // between steps: nothing
		d.ok(ieg.Batch{Drop: []ieg.SeqID{calm.id, d2.id}})
		t.Logf("%d steps aborted", aborted)
	})
}

// TestRandomSteps: any mixture of work keeps the accounts right, and texts
// don't depend on it where the library's arithmetic doesn't.
func TestRandomSteps(t *testing.T) {
	spec := tinySpec(t)
	spec.Slots, spec.Context = 6, 256
	layouts(t, spec, func(t *testing.T, r *Runner) {
		d := &driver{t: t, r: r}
		rnd := rand.New(rand.NewPCG(5, 6))
		words := tokenize(t, r, "a b c d the in on er w th x y z é € 1 2 3")
		live := map[ieg.Slot]*seq{}
		for step := range 200 {
			var b ieg.Batch
			for slot := range ieg.Slot(6) {
				s := live[slot]
				switch {
				case s == nil && rnd.IntN(3) == 0:
					n := 1 + rnd.IntN(120)
					prompt := make([]ieg.Token, n)
					for i := range prompt {
						prompt[i] = words[rnd.IntN(len(words))]
					}
					var begin ieg.SeqStart
					s, begin = d.newSeq(slot, prompt, sampled(uint64(step)), int32(1+rnd.IntN(80)))
					if held := r.slots.tokens[slot]; held > 0 && rnd.IntN(2) == 0 {
						b.Ops = append(b.Ops, ieg.KVOp{Kind: ieg.KVTrim, To: slot, N: rnd.Int32N(held + 1)})
					}
					b.New = append(b.New, begin)
					live[slot] = s
				case s == nil && rnd.IntN(6) == 0:
					if from := ieg.Slot(rnd.IntN(6)); len(b.Ops) == 0 {
						b.Ops = append(b.Ops, ieg.KVOp{Kind: ieg.KVCopy, From: from, To: slot, N: rnd.Int32N(r.slots.tokens[from] + 1)})
					}
				case s != nil && rnd.IntN(20) == 0:
					b.Drop = append(b.Drop, s.id)
					delete(live, slot)
					continue
				}
				if s != nil && rnd.IntN(4) > 0 {
					b.Work = append(b.Work, s.work(int32(1+rnd.IntN(60))))
				}
			}
			rnd.Shuffle(len(b.Work), func(i, j int) { b.Work[i], b.Work[j] = b.Work[j], b.Work[i] })
			done := d.ok(b)
			if len(done.Results) != len(b.Work) {
				t.Fatalf("%d results of %d works", len(done.Results), len(b.Work))
			}
			for i, res := range done.Results {
				s := live[b.Work[i].Slot]
				if res.Seq != s.id || res.Computed != b.Work[i].N || res.Sampled != b.Work[i].Sample {
					t.Fatalf("step %d: result %+v of work %+v", step, res, b.Work[i])
				}
				s.took(res)
				if s.stop != ieg.NotStopped {
					delete(live, s.slot)
				}
			}
			for slot, n := range r.slots.tokens {
				if got := r.slots.held(ieg.Slot(slot)); got != n {
					t.Fatalf("step %d: slot %d holds %d, accounted %d", step, slot, got, n)
				}
			}
		}
	})
}

// TestCompaction: sequences between which gaps persist end up as neighbours,
// and neither they nor the idle slots notice.
func TestCompaction(t *testing.T) {
	spec := tinySpec(t)
	spec.Slots, spec.Context, spec.Layout, spec.KVType = 8, 256, "streams", "f32"
	r, calm := start(t, spec), start(t, spec)
	calm.pass = 0 // no move pays
	var texts [2][]string
	for k, e := range []*Runner{r, calm} {
		d := &driver{t: t, r: e}
		var seqs []*seq
		b := ieg.Batch{}
		for slot := range ieg.Slot(8) {
			s, begin := d.newSeq(slot, tokenize(t, e, strings.Repeat("some words ", int(slot)+1)), sampled(uint64(slot)), 60)
			seqs, b.New, b.Work = append(seqs, s), append(b.New, begin), append(b.Work, s.work(512))
		}
		for step := range 50 {
			for i, res := range d.ok(b).Results {
				seqs[b.Work[i].Slot].took(res)
			}
			b = ieg.Batch{}
			for slot, s := range seqs {
				if s.stop == ieg.NotStopped && (step < 3 || slot%2 == 0) {
					b.Work = append(b.Work, s.work(1))
				}
			}
			for slot, n := range e.slots.tokens {
				if got := e.slots.held(ieg.Slot(slot)); got != n {
					t.Fatalf("step %d: slot %d holds %d, accounted %d", step, slot, got, n)
				}
			}
		}
		for slot, s := range seqs { // the idle ones go on
			for s.stop == ieg.NotStopped && len(s.tokens)-s.prompt < 58 {
				s.took(d.ok(ieg.Batch{Work: []ieg.Work{{Seq: s.id, Slot: ieg.Slot(slot), Start: s.held, N: 1, Sample: true}}}).Results[0])
			}
			texts[k] = append(texts[k], s.text)
		}
	}
	if !slices.Equal(texts[0], texts[1]) {
		t.Errorf("moved: %q\nnot:   %q", texts[0], texts[1])
	}
	var at []int32
	for slot := 0; slot < 8; slot += 2 {
		at = append(at, r.slots.seq[slot])
	}
	slices.Sort(at)
	if at[3]-at[0] != 3 || calm.slots.seq[6] != 6 {
		t.Errorf("the working streams are %v; unmoved %v", at, calm.slots.seq)
	}
}

func TestContractBreaches(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	s, begin := d.newSeq(0, tokenize(t, r, "hello there"), greedy(), 4)
	d.ok(ieg.Batch{New: []ieg.SeqStart{begin}})
	w := s.work(512)
	for name, b := range map[string]ieg.Batch{
		"unknown":      {Work: []ieg.Work{{Seq: 99, N: 1}}},
		"start":        {Work: []ieg.Work{{Seq: s.id, Start: 3, N: 1}}},
		"beyond":       {Work: []ieg.Work{{Seq: s.id, N: w.N + 1}}},
		"nothing":      {Work: []ieg.Work{{Seq: s.id}}},
		"slot":         {Work: []ieg.Work{{Seq: s.id, Slot: 4, N: 1}}},
		"early sample": {Work: []ieg.Work{{Seq: s.id, N: w.N - 1, Sample: true}}},
		"twice":        {Work: []ieg.Work{w, w}},
		"trim":         {Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 1, N: 1}}},
		"copy":         {Ops: []ieg.KVOp{{Kind: ieg.KVCopy, From: 1, To: 9}}},
		"token":        {New: []ieg.SeqStart{{Seq: 7, Tokens: []ieg.Token{-1}, Prompt: 1}}},
		"empty":        {New: []ieg.SeqStart{{Seq: 7}}},
		"prompt":       {New: []ieg.SeqStart{{Seq: 7, Tokens: []ieg.Token{1}, Prompt: 2}}},
	} {
		if done := d.run(b); done.Outcome != ieg.StepFailed || done.Err == "" || len(done.Results) != 0 {
			t.Errorf("%s: %+v", name, done)
		}
	}
	if done := d.ok(ieg.Batch{Work: []ieg.Work{w}}); !done.Results[0].Sampled {
		t.Error("the engine did not recover")
	}
}
