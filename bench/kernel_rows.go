package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"ieg"
	"ieg/bench/report"
	"ieg/kernel"
)

// kernelStep: the machine's time to take in a step's report and decide the
// next step, with 256 running sequences, and its allocations per token. Each
// step is reported and decided anew (no grants): the dearest case.
func kernelStep(_ context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "kernel-step", Unit: "µs", Bound: 50, Better: report.Lower, Against: "the clock, p99 of a step, 256 sequences"},
		{Name: "kernel-allocs", Unit: "/token", Bound: 0.01, Better: report.Lower, Against: "allocations per token in the steady state"},
	}
	const seqs, steps = 256, 4000
	var p99, allocs []float64
	for range e.Rounds {
		m, err := newSteady(seqs, 2*steps)
		if err != nil {
			return rows, err
		}
		for range steps / 4 {
			m.step()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		took := make([]float64, 0, steps)
		for range steps {
			t := time.Now()
			m.step()
			took = append(took, time.Since(t).Seconds()*1e6)
		}
		runtime.ReadMemStats(&after)
		p99 = append(p99, report.Percentile(took, 99))
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/float64(seqs*steps))
		rows[0].Detail = fmt.Sprintf("p50 %.1f µs", report.Percentile(took, 50))
	}
	rows[0].Measure(p99)
	rows[1].Measure(allocs)
	return rows, nil
}

// steady is a machine whose sequences all decode.
type steady struct {
	m    *kernel.Machine
	now  ieg.Time
	done ieg.StepDone
}

func newSteady(seqs, tokens int) (*steady, error) {
	cfg := kernel.DefaultConfig()
	cfg.GrantSteps = 0
	m, err := kernel.New(cfg)
	if err != nil {
		return nil, err
	}
	s := &steady{m: m}
	s.apply(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu", Type: "CPU"}, Free: 1 << 40})
	s.apply(kernel.LoadEngine{Engine: 1, Model: "m", Device: "cpu"})
	s.apply(kernel.EngineReady{Info: ieg.EngineInfo{
		ID: 1, Epoch: 1, Model: ieg.ModelInfo{Name: "m", Generative: true}, Device: "cpu", Layout: ieg.Streams,
		Slots: int32(seqs), SlotTokens: int32(tokens + 64), Cells: int32(seqs * (tokens + 64)), StepTokens: 512, Prefixes: true,
	}})
	for i := range seqs {
		prompt := []ieg.Token{ieg.Token(i), 1, 2, 3}
		s.apply(kernel.Arrived{Request: &ieg.Request{ID: ieg.RequestID(i + 1), Model: "m", N: 1, Prompt: prompt,
			MaxTokens: int32(tokens), Deadline: ieg.Never}})
	}
	for range 2 * seqs { // prompts, then decoding
		s.step()
	}
	if len(s.done.Results) != seqs {
		return nil, fmt.Errorf("%d of %d sequences decode", len(s.done.Results), seqs)
	}
	return s, nil
}

func (s *steady) apply(ev kernel.Event) {
	s.now += 1000
	s.m.Apply(s.now, ev)
	s.answer()
}

// answer makes the report of the batch that the machine wants run.
func (s *steady) answer() {
	for _, b := range s.m.Ready().Batches {
		s.done = ieg.StepDone{Engine: b.Engine, Epoch: b.Epoch, Step: b.Step, Last: true, Took: time.Millisecond, Results: s.done.Results[:0]}
		for _, w := range b.Work {
			s.done.Results = append(s.done.Results, ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample, Token: 5})
		}
	}
}

// step reports the step in flight.
func (s *steady) step() {
	s.now += ieg.Time(time.Millisecond)
	s.m.Apply(s.now, kernel.StepDone{Done: &s.done})
	s.answer()
}
