package enginetest

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"ieg"
)

// testContract sends batches that break the contract; each must be refused,
// and the engine must go on.
func testContract(t *testing.T, b *bench) {
	n := int32(len(b.prompt))
	slots := ieg.Slot(b.info.Slots)
	bad := []struct {
		name string
		edit func(s *ieg.SeqStart, batch *ieg.Batch)
	}{
		{"unknown sequence", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].Seq += 1000 }},
		{"start beyond the slot", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].Start, x.Work[0].N = 3, n-3 }},
		{"negative start", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].Start = -1 }},
		{"no tokens", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].N, x.Work[0].Sample = 0, false }},
		{"tokens that are not known", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].N = n + 1 }},
		{"sample inside the prompt", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work[0].N = 4 }},
		{"twice in a batch", func(s *ieg.SeqStart, x *ieg.Batch) { x.Work = append(x.Work, x.Work[0]) }},
		{"slot that does not exist", func(s *ieg.SeqStart, x *ieg.Batch) { x.New[0].Slot, x.Work[0].Slot = slots, slots }},
		{"negative slot", func(s *ieg.SeqStart, x *ieg.Batch) { x.New[0].Slot, x.Work[0].Slot = -1, -1 }},
		{"empty prompt", func(s *ieg.SeqStart, x *ieg.Batch) { x.New[0].Tokens, x.New[0].Prompt = nil, 0 }},
		{"token outside the vocabulary", func(s *ieg.SeqStart, x *ieg.Batch) {
			x.New[0].Tokens = append(slices.Clone(b.prompt[1:]), ieg.Token(b.info.Model.Vocab))
		}},
		{"trim of a slot that does not exist", func(s *ieg.SeqStart, x *ieg.Batch) {
			x.Ops = []ieg.KVOp{{Kind: ieg.KVTrim, To: slots}}
		}},
		{"copy of more than there is", func(s *ieg.SeqStart, x *ieg.Batch) {
			x.Ops = []ieg.KVOp{{Kind: ieg.KVCopy, From: 0, To: slots - 1, N: 1000}}
		}},
	}
	want := b.generate(b.start(0, b.prompt), 2)
	for _, c := range bad {
		b.clear()
		s := b.start(0, b.prompt)
		batch := ieg.Batch{New: []ieg.SeqStart{s}, Work: []ieg.Work{{Seq: s.Seq, N: n, Sample: true}}}
		c.edit(&s, &batch)
		done := b.try(batch)
		if done.Outcome != ieg.StepFailed || len(done.Results) != 0 {
			t.Errorf("%s: outcome %d, %d results, want a refusal", c.name, done.Outcome, len(done.Results))
		}
		got := b.generate(b.start(0, b.prompt), 2)
		b.same("after "+c.name, want, got)
	}
}

// testFailedStep: after a step whose work was refused, its Drop, New and Ops
// are done, so the work alone can be sent again.
func testFailedStep(t *testing.T, b *bench) {
	want := b.generate(b.start(0, b.prompt), 2)
	n := int32(len(b.prompt))
	old := b.start(ieg.Slot(b.info.Slots-1), b.prompt)
	b.run(ieg.Batch{New: []ieg.SeqStart{old}})
	s := b.start(0, b.prompt)
	if done := b.try(ieg.Batch{
		Drop: []ieg.SeqID{old.Seq}, New: []ieg.SeqStart{s}, Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 0}},
		Work: []ieg.Work{{Seq: s.Seq, Start: 3, N: n - 3, Sample: true}},
	}); done.Outcome != ieg.StepFailed {
		t.Fatalf("outcome %d, want a refusal", done.Outcome)
	}
	if done := b.try(ieg.Batch{Work: []ieg.Work{{Seq: old.Seq, Slot: old.Slot, N: n}}}); done.Outcome != ieg.StepFailed {
		t.Error("the sequence that was dropped is still there")
	}
	var got output
	got.take(t, &b.run(ieg.Batch{Work: []ieg.Work{{Seq: s.Seq, N: n, Sample: true}}}).Results[0])
	b.decode(s, &got, 2)
	b.same("after a failed step", want, got)
}

func testGenerate(t *testing.T, b *bench) {
	s := b.start(0, b.prompt)
	s.MaxTokens = outputTokens
	s.Sampling.IgnoreEOS = true
	got := b.generate(s, 2*outputTokens)
	if len(got.tokens) != outputTokens || got.stop != ieg.StopLength {
		t.Fatalf("%d tokens, stop %v; want %d, length", len(got.tokens), got.stop, outputTokens)
	}
	text, err := b.runner.Detokenize(got.tokens)
	if err != nil {
		t.Fatal(err)
	}
	// A text that ends inside a character, or holds stray bytes, shows them
	// replaced.
	if shown := strings.ToValidUTF8(text, "\uFFFD"); !strings.Contains(string(got.text), "\uFFFD") && strings.TrimSpace(shown) != strings.TrimSpace(string(got.text)) {
		t.Errorf("text %q of tokens that read %q", got.text, text)
	}
}

func testEmptyWork(t *testing.T, b *bench) {
	s := b.start(0, b.prompt)
	b.run(ieg.Batch{New: []ieg.SeqStart{s}})
	b.run(ieg.Batch{Drop: []ieg.SeqID{s.Seq, s.Seq + 1000}})
	done := b.try(ieg.Batch{Work: []ieg.Work{{Seq: s.Seq, N: 1}}})
	if done.Outcome != ieg.StepFailed {
		t.Errorf("a dropped sequence ran: %+v", done)
	}
}

func testChunked(t *testing.T, b *bench) {
	want := b.generate(b.start(0, b.prompt), outputTokens)
	for _, chunk := range []int32{1, 3, 7} {
		b.clear()
		s := b.start(0, b.prompt)
		got := b.prefill(s, nil, 0, chunk)
		b.decode(s, &got, outputTokens)
		b.same("in chunks", want, got)
	}
}

// testBatch runs several sequences in the same steps, one of them a prompt in
// chunks beside the others' decoding.
func testBatch(t *testing.T, b *bench) {
	const n = 3
	slots := min(b.info.Slots, n)
	var want, got [n]output
	var s [n]ieg.SeqStart
	for i := range slots {
		s[i] = b.start(ieg.Slot(i), b.prompt[i:])
		want[i] = b.generate(s[i], outputTokens)
	}
	b.clear()
	for i := range slots {
		b.live = append(b.live, s[i].Seq)
	}
	batch := ieg.Batch{New: s[:slots]}
	at := [n]int32{}
	for {
		batch.Work = nil
		for i := range slots {
			known := int32(len(s[i].Tokens) + len(got[i].tokens))
			if len(got[i].tokens) == outputTokens || got[i].stop != ieg.NotStopped {
				continue
			}
			k := min(known-at[i], i+1)
			batch.Work = append(batch.Work, ieg.Work{Seq: s[i].Seq, Slot: s[i].Slot, Start: at[i], N: k, Sample: at[i]+k == known})
			at[i] += k
		}
		if len(batch.Work) == 0 {
			break
		}
		done := b.run(batch)
		for j, w := range batch.Work {
			if w.Sample {
				got[w.Slot].take(t, &done.Results[j])
			}
		}
		batch = ieg.Batch{}
	}
	for i := range slots {
		b.same("in a batch", want[i], got[i])
	}
}

func testTrim(t *testing.T, b *bench) {
	const keep = 5
	other := append(slices.Clone(b.prompt[:keep]), b.prompt[len(b.prompt)-2], b.prompt[len(b.prompt)-1])
	want := b.generate(b.start(0, other), outputTokens)
	b.generate(b.start(0, b.prompt), 4)
	s := b.start(0, other)
	got := b.prefill(s, []ieg.KVOp{{Kind: ieg.KVTrim, To: 0, N: keep}}, keep, b.info.StepTokens)
	b.decode(s, &got, outputTokens)
	b.same("after a trim", want, got)
}

func testCopy(t *testing.T, b *bench) {
	if b.info.Slots < 2 {
		t.Skip("one slot only")
	}
	keep := int32(len(b.prompt) - 2)
	other := append(slices.Clone(b.prompt[:keep]), b.prompt[0], b.prompt[1])
	want := b.generate(b.start(1, other), outputTokens)
	first := b.start(0, b.prompt)
	whole := b.generate(first, 4)
	s := b.start(1, other)
	got := b.prefill(s, []ieg.KVOp{{Kind: ieg.KVCopy, From: 0, To: 1, N: keep}}, keep, b.info.StepTokens)
	b.decode(s, &got, outputTokens)
	b.same("after a copy", want, got)

	// The source goes on as if nothing had been copied.
	b.decode(first, &whole, outputTokens)
	b.same("source of a copy", b.generate(b.start(0, b.prompt), outputTokens), whole)
}

// testPrefixes trims and copies without asking for equal tokens.
func testPrefixes(t *testing.T, b *bench) {
	if b.info.Slots < 2 {
		t.Skip("one slot only")
	}
	b.generate(b.start(0, b.prompt), 4)
	keep := int32(len(b.prompt) - 3)
	s := b.start(1, b.prompt)
	got := b.prefill(s, []ieg.KVOp{
		{Kind: ieg.KVTrim, To: 0, N: keep},
		{Kind: ieg.KVCopy, From: 0, To: 1, N: keep},
		{Kind: ieg.KVTrim, To: 0, N: 0},
		{Kind: ieg.KVCopy, From: 1, To: 0, N: 2},
	}, keep, 2)
	b.decode(s, &got, outputTokens)
	again := b.start(0, b.prompt)
	out := b.prefill(again, nil, 2, b.info.StepTokens)
	b.decode(again, &out, outputTokens)
	if len(out.tokens) == 0 || len(got.tokens) == 0 {
		t.Error("no tokens after copies")
	}
}

// replay generates to cut tokens, forgets the sequence, and continues it in
// another slot from its tokens.
func replay(b *bench, cut int, edit func(*ieg.SeqStart)) (whole, parts output) {
	s := b.start(0, b.prompt)
	edit(&s)
	whole = b.generate(s, outputTokens)
	s = b.start(0, b.prompt)
	edit(&s)
	parts = b.generate(s, min(cut, len(whole.tokens)))
	if parts.stop != ieg.NotStopped {
		return whole, parts
	}
	again := b.start(ieg.Slot(b.info.Slots-1), append(slices.Clone(b.prompt), parts.tokens...))
	again.Prompt = int32(len(b.prompt))
	edit(&again)
	b.run(ieg.Batch{Drop: []ieg.SeqID{s.Seq}, Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 0}}})
	next := b.prefill(again, nil, 0, b.info.StepTokens)
	parts.tokens = append(parts.tokens, next.tokens...)
	parts.text = append(parts.text, next.text...)
	parts.stop, parts.stopText = next.stop, next.stopText
	for len(parts.tokens) < outputTokens && parts.stop == ieg.NotStopped {
		start := int32(len(b.prompt) + len(parts.tokens) - 1)
		done := b.run(ieg.Batch{Work: []ieg.Work{{Seq: again.Seq, Slot: again.Slot, Start: start, N: 1, Sample: true}}})
		parts.take(b, &done.Results[0])
	}
	return whole, parts
}

func testReplay(t *testing.T, b *bench) {
	edits := map[string]func(*ieg.SeqStart){
		"greedy": func(s *ieg.SeqStart) {},
		"drawn": func(s *ieg.SeqStart) {
			s.Sampling.Temperature, s.Sampling.Seed, s.Sampling.Choice = 1, 99, 2
		},
		"penalties": func(s *ieg.SeqStart) {
			s.Sampling.RepetitionPenalty, s.Sampling.PresencePenalty = 1.3, 0.5
		},
		"length": func(s *ieg.SeqStart) { s.MaxTokens = outputTokens - 3 },
	}
	for name, edit := range edits {
		for _, cut := range []int{1, 5, 11} {
			whole, parts := replay(b, cut, edit)
			b.same("replay of "+name, whole, parts)
		}
	}
}

// testReplayTexts continues inside a stop string that was half shown: what
// was held back before must not be lost, and what was shown not sent again.
func testReplayTexts(t *testing.T, b *bench) {
	free := b.generate(b.start(0, b.prompt), outputTokens)
	stop := longest(string(free.text))
	for cut := 1; cut < 8; cut++ {
		whole, parts := replay(b, cut, func(s *ieg.SeqStart) {
			if stop != "" {
				s.Sampling.Stop = []string{stop}
			}
		})
		if b.o.Exact {
			b.same("replay with a stop string", whole, parts)
			continue
		}
		text, err := b.runner.Detokenize(parts.tokens)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text, string(parts.text)) && !strings.Contains(string(parts.text), "\uFFFD") {
			t.Errorf("cut at %d: text %q of tokens that read %q", cut, parts.text, text)
		}
	}
}

// testAbort aborts prefills at many moments; whether or not the abort was in
// time, the same work afterwards gives the same token.
func testAbort(t *testing.T, b *bench) {
	long := slices.Repeat(b.prompt, int(min(b.info.StepTokens, b.info.SlotTokens-outputTokens))/len(b.prompt))
	want := b.generate(b.start(0, long), 2)
	b.runner.Abort() // without a step it does nothing
	aborted := 0
	for i := range 6 {
		b.clear()
		s := b.start(0, long)
		work := []ieg.Work{{Seq: s.Seq, N: int32(len(long)), Sample: true}}
		done := b.tryAborted(ieg.Batch{New: []ieg.SeqStart{s}, Work: work}, time.Duration(i+1)*time.Millisecond)
		var got output
		switch done.Outcome {
		case ieg.StepOK:
			got.take(t, &done.Results[0])
		case ieg.StepAborted:
			aborted++
			// New is done; only the work is sent again.
			got.take(t, &b.run(ieg.Batch{Work: work}).Results[0])
		}
		b.decode(s, &got, 2)
		b.same("after an abort", want, got)
	}
	t.Logf("%d of 6 aborts were in time", aborted)
}

// testOverflow fills a slot to its end: the last token ends the sequence, and
// more work is refused.
func testOverflow(t *testing.T, b *bench) {
	size := int(b.info.SlotTokens)
	if size > 65536 {
		t.Skipf("slots of %d tokens are too large to fill here", size)
	}
	tokens := slices.Repeat(b.prompt, size/len(b.prompt)+1)[:size]
	s := b.start(0, tokens)
	s.Sampling.IgnoreEOS = true
	var out output
	b.clear()
	b.live = append(b.live, s.Seq)
	out = b.prefill(s, nil, 0, b.info.StepTokens)
	if out.stop != ieg.StopLength {
		t.Errorf("stop %v at the end of the slot, want length", out.stop)
	}
	done := b.try(ieg.Batch{Work: []ieg.Work{{Seq: s.Seq, Start: int32(size), N: 1, Sample: true}}})
	if done.Outcome != ieg.StepFailed {
		t.Errorf("work beyond the slot's %d tokens: outcome %d", size, done.Outcome)
	}
}

func testVectors(t *testing.T, b *bench) {
	embed := func(tokens []ieg.Token) []float32 {
		t.Helper()
		b.clear()
		s := b.start(0, tokens)
		s.Embed = true
		done := b.run(ieg.Batch{New: []ieg.SeqStart{s}, Work: []ieg.Work{{Seq: s.Seq, N: int32(len(tokens))}}})
		r := done.Results[0]
		if r.Stop != ieg.StopEnd || len(r.Vector) == 0 {
			t.Fatalf("stop %v, vector of %d numbers", r.Stop, len(r.Vector))
		}
		for i, v := range r.Vector {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("number %d is %g", i, v)
			}
		}
		return slices.Clone(r.Vector)
	}
	one := embed(b.prompt)
	if again := embed(b.prompt); !near(one, again) {
		t.Errorf("the same text gave %v, then %v", one[:4], again[:4])
	}
	if other := embed(b.prompt[:len(b.prompt)/2]); near(one, other) {
		t.Error("another text gave the same vector")
	}
}

// near tells whether two vectors have a cosine above 0.9999.
func near(a, b []float32) bool {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return len(a) == len(b) && ab > 0.9999*math.Sqrt(aa*bb)
}
