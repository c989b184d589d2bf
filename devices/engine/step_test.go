package engine_test

import (
	"context"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
)

// TestStepAllocatesNothing: a step of 256 sequences through a real child costs
// the node no allocation, Submit to Release.
func TestStepAllocatesNothing(t *testing.T) {
	step := decoding(t, 256)
	for range 20 {
		step()
	}
	if n := testing.AllocsPerRun(100, step); n >= 1 {
		t.Errorf("%g allocations a step", n)
	}
}

// BenchmarkStep is the whole way of a step: batch to the child, 256 tokens
// back. The synthetic engine's own part is some 20 µs of it.
func BenchmarkStep(b *testing.B) {
	step := decoding(b, 256)
	b.ReportAllocs()
	for b.Loop() {
		step()
	}
}

// decoding starts n sequences in a child and returns a function that decodes
// one token of each.
func decoding(t testing.TB, n int) (step func()) {
	cfg := enginetest.Host(backend("synth"))
	cfg.Spec.Slots, cfg.Spec.Context, cfg.Spec.Synth.Sleep = int32(n), 1<<16, false
	ups, dones := make(chan engine.Up, 1), make(chan *ieg.StepDone, 1)
	cfg.Notify = func(note engine.Note) {
		switch note := note.(type) {
		case engine.Up:
			ups <- note
		case engine.Done:
			dones <- note.Step
		}
	}
	c := engine.Start(cfg)
	t.Cleanup(func() {
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	up := <-ups
	batch := ieg.Batch{Engine: up.Info.ID, Epoch: up.Info.Epoch}
	for i := range n {
		s := ieg.SeqStart{Seq: ieg.SeqID(i + 1), Slot: ieg.Slot(i), Tokens: []ieg.Token{300, ieg.Token(300 + i)}, Prompt: 2}
		s.Sampling.Logprobs = -1
		batch.New = append(batch.New, s)
		batch.Work = append(batch.Work, ieg.Work{Seq: s.Seq, Slot: s.Slot, N: 2, Sample: true})
	}
	return func() {
		batch.Step++
		if err := c.Submit(&batch); err != nil {
			t.Fatal(err)
		}
		d := <-dones
		if d.Outcome != ieg.StepOK || len(d.Results) != n {
			t.Fatalf("outcome %d, %d results: %s", d.Outcome, len(d.Results), d.Err)
		}
		c.Release(d)
		batch.New = nil
		for i := range batch.Work {
			w := &batch.Work[i]
			w.Start, w.N = w.Start+w.N, 1
		}
	}
}
