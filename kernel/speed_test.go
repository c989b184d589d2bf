package kernel

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"ieg"
)

// steady is a machine under which seqs sequences decode.
type steady struct {
	m    *Machine
	now  ieg.Time
	done ieg.StepDone
	left int32 // repeats of the grant that the engine has not reported
}

func newSteady(tb testing.TB, layout ieg.Layout, seqs int, grant, tokens int32) *steady {
	cfg := DefaultConfig()
	cfg.GrantSteps = grant
	m, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	s := &steady{m: m}
	s.apply(DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu", Type: "CPU"}, Free: 1 << 40})
	s.apply(LoadEngine{Engine: 1, Model: "m", Device: "cpu"})
	s.apply(EngineReady{Info: ieg.EngineInfo{
		ID: 1, Epoch: 1, Model: ieg.ModelInfo{Name: "m", Generative: true}, Device: "cpu", Layout: layout,
		Slots: int32(seqs), SlotTokens: tokens + 64, Cells: int32(seqs) * (tokens + 64), StepTokens: 512, UBatch: 512, Prefixes: true,
	}})
	for i := range seqs {
		s.apply(Arrived{Request: &ieg.Request{ID: ieg.RequestID(i + 1), Model: "m", N: 1,
			Prompt: []ieg.Token{ieg.Token(i), 1, 2, 3}, MaxTokens: tokens, Deadline: ieg.Never}})
	}
	for range 4 * seqs {
		s.step()
	}
	if len(s.done.Results) != seqs {
		tb.Fatalf("%d of %d sequences decode", len(s.done.Results), seqs)
	}
	return s
}

func (s *steady) apply(ev Event) {
	s.now += 1000
	s.m.Apply(s.now, ev)
	s.take()
}

// take makes the engine's report of a new batch.
func (s *steady) take() {
	for _, b := range s.m.Ready().Batches {
		s.left = b.Grant
		s.done = ieg.StepDone{Engine: b.Engine, Epoch: b.Epoch, Step: b.Step, Took: time.Millisecond, Results: s.done.Results[:0]}
		for _, w := range b.Work {
			s.done.Results = append(s.done.Results, ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample, Token: 5})
		}
	}
}

// crowd lets n more requests arrive, which find no row.
func (s *steady) crowd(n int) {
	for i := range n {
		s.apply(Arrived{Request: &ieg.Request{ID: ieg.RequestID(1e6 + i), Model: "m", N: 1,
			Prompt: []ieg.Token{ieg.Token(i % 256), 1, 2, 3, 4}, MaxTokens: 9, Deadline: ieg.Never}})
	}
}

// step reports what the engine did, and takes the next batch.
func (s *steady) step() {
	s.now += ieg.Time(time.Millisecond)
	s.done.Last = s.left == 0
	s.m.Apply(s.now, StepDone{Done: &s.done})
	s.m.Deadline()
	s.left--
	for i := range s.done.Results {
		s.done.Results[i].Computed = 1 // of a repeat
	}
	s.take()
}

// The steady state allocates nothing per token. The tolerance is for a
// sequence's list of tokens, which doubles now and then.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	for _, layout := range []ieg.Layout{ieg.Unified, ieg.Streams} {
		for _, grant := range []int32{0, GrantSteps} {
			s := newSteady(t, layout, 256, grant, 8192)
			if perStep := testing.AllocsPerRun(2000, s.step); perStep > 0.01*256 {
				t.Errorf("%s, grants of %d: %.2f allocations a step of 256 tokens", layout, grant, perStep)
			}
			if err := s.m.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func BenchmarkStep256(b *testing.B) {
	for _, c := range []struct {
		name   string
		layout ieg.Layout
		grant  int32
	}{
		{"streams/granted", ieg.Streams, GrantSteps},
		{"streams/asked", ieg.Streams, 0},
		{"unified/granted", ieg.Unified, GrantSteps},
		{"unified/asked", ieg.Unified, 0},
		{"unified/asked/2000 waiting", ieg.Unified, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			const steps = 20_000
			s := newSteady(b, c.layout, 256, c.grant, steps*2)
			if strings.HasSuffix(c.name, "waiting") {
				s.crowd(2000)
			}
			for range 200 {
				s.step()
			}
			took := make([]time.Duration, 0, steps)
			for b.Loop() {
				took = took[:0]
				runtime.GC()
				for range steps {
					t := time.Now()
					s.step()
					took = append(took, time.Since(t))
				}
				b.StopTimer()
				s = newSteady(b, c.layout, 256, c.grant, steps*2)
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs/step")
			b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}
