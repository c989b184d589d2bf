package meter

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/kernel"
)

// world is a machine with engines that answer when they are told to, and a
// meter that watches.
type world struct {
	t       testing.TB
	now     ieg.Time
	machine *kernel.Machine
	meter   *Meter
	pending map[ieg.EngineID]*ieg.StepDone
	epochs  map[ieg.EngineID]ieg.Epoch
	nextID  ieg.RequestID
	token   ieg.Token
}

func newWorld(t testing.TB) *world {
	cfg := kernel.DefaultConfig()
	cfg.GrantSteps = 0
	cfg.WaitingMax = 6
	m, err := kernel.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, now: 1000, machine: m, meter: New(DefaultConfig()),
		pending: map[ieg.EngineID]*ieg.StepDone{}, epochs: map[ieg.EngineID]ieg.Epoch{}}
}

func (w *world) apply(ev kernel.Event) {
	w.machine.Apply(w.now, ev)
	r := w.machine.Ready()
	for _, b := range r.Batches {
		d := &ieg.StepDone{Engine: b.Engine, Epoch: b.Epoch, Step: b.Step, Last: true}
		for _, k := range b.Work {
			w.token++
			d.Results = append(d.Results, ieg.SeqResult{Seq: k.Seq, Computed: k.N, Sampled: k.Sample, Token: w.token % 50})
		}
		w.pending[b.Engine] = d
	}
	w.meter.Observe(w.now, ev, r)
	for _, k := range r.Kills {
		w.lose(k.Engine)
	}
	for _, id := range r.Unloads {
		w.apply(kernel.EngineLost{Engine: id, Epoch: w.epochs[id], Final: true})
	}
}

func (w *world) up(id ieg.EngineID, model string, slots, cells int32) {
	w.apply(kernel.DeviceUp{Spec: spec(fmt.Sprintf("dev%d", id)), Free: 1 << 40})
	w.apply(kernel.LoadEngine{Engine: id, Model: model, Device: fmt.Sprintf("dev%d", id), Need: 1})
	w.ready(id, model, slots, cells)
}

func spec(id string) ieg.ResourceSpec {
	s := ieg.ResourceSpec{ID: id}
	s.Compute.FP16, s.Memory.Bandwidth = 1e12, 50e9
	return s
}

func (w *world) ready(id ieg.EngineID, model string, slots, cells int32) {
	w.epochs[id]++
	w.apply(kernel.EngineReady{Info: ieg.EngineInfo{ID: id, Epoch: w.epochs[id], Device: fmt.Sprintf("dev%d", id), Layout: ieg.Unified,
		Model: ieg.ModelInfo{Name: model, ActiveParams: 1e8, WeightBytes: 1e8, KV: []ieg.KVGroup{{Layers: 2, KVHeads: 2, HeadDim: 64, ElemBytes: 2}}},
		Slots: slots, SlotTokens: cells, Cells: cells, StepTokens: 64, Prefixes: true}})
}

func (w *world) lose(id ieg.EngineID) {
	delete(w.pending, id)
	w.apply(kernel.EngineLost{Engine: id, Epoch: w.epochs[id], Reason: "gone"})
}

func (w *world) down(id ieg.EngineID) bool {
	for _, e := range w.machine.Status().Engines {
		if e.Info.ID == id {
			return e.State == ieg.EngineDown
		}
	}
	return false
}

func (w *world) step(id ieg.EngineID, took time.Duration, outcome ieg.Outcome) bool {
	d := w.pending[id]
	if d == nil {
		return false
	}
	delete(w.pending, id)
	w.now = w.now.Add(took)
	d.Took, d.Outcome = took, outcome
	if outcome != ieg.StepOK {
		d.Results = nil
	}
	w.apply(kernel.StepDone{Done: d})
	return true
}

func (w *world) arrive(model string, class ieg.Class, prompt []ieg.Token, n int, maxTokens int32) {
	w.nextID++
	w.apply(kernel.Arrived{Request: &ieg.Request{ID: w.nextID, Name: fmt.Sprint("r", w.nextID), Model: model, Class: class, N: n,
		Prompt: prompt, MaxTokens: maxTokens, Received: w.now - 1, Deadline: ieg.Never}})
}

func prompt(from, n int) []ieg.Token {
	out := make([]ieg.Token, n)
	for i := range out {
		out[i] = ieg.Token(from + i)
	}
	return out
}

// TestStories runs the golden scripts: what happens, then what was counted.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var id, class, n, size, from, maxTokens, slots, cells, times int
			var took, model, reason string
			id, n, size, maxTokens, slots, cells, times, took, model = 1, 1, 4, 3, 4, 256, 1, "10ms", "m"
			for key, to := range map[string]any{"id": &id, "class": &class, "n": &n, "prompt": &size, "from": &from, "max": &maxTokens,
				"slots": &slots, "cells": &cells, "times": &times, "took": &took, "model": &model, "reason": &reason} {
				d.MaybeScanArgs(t, key, to)
			}
			span, err := time.ParseDuration(took)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "up":
				w.up(ieg.EngineID(id), model, int32(slots), int32(cells))
			case "ready":
				w.ready(ieg.EngineID(id), model, int32(slots), int32(cells))
			case "arrive":
				w.arrive(model, ieg.Class(class), prompt(from, size), n, int32(maxTokens))
			case "wait":
				w.now = w.now.Add(span)
				return ""
			case "step":
				for range times {
					if !w.step(ieg.EngineID(id), span, ieg.StepOK) {
						d.Fatalf(t, "no step is in flight")
					}
				}
			case "fail":
				w.step(ieg.EngineID(id), span, ieg.StepFailed)
			case "cancel":
				w.apply(kernel.Cancel{Request: ieg.RequestID(id), Reason: ieg.StopCancel})
			case "lose":
				w.lose(ieg.EngineID(id))
			case "unload":
				w.apply(kernel.UnloadEngine{Engine: ieg.EngineID(id), Force: true})
			case "drain":
				w.apply(kernel.Drain{})
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return describe(w.meter.Snapshot())
		})
	})
}

// describe prints what is not zero.
func describe(s Snapshot) string {
	var b strings.Builder
	if s.Waiting+s.Running > 0 {
		fmt.Fprintf(&b, "requests waiting=%d running=%d\n", s.Waiting, s.Running)
	}
	for c, k := range s.Classes {
		if k.Arrived > 0 {
			ratio, _ := k.Attainment()
			fmt.Fprintf(&b, "%s arrived=%d ended=%d met=%d cancelled=%d attainment=%.2f\n", ieg.Class(c), k.Arrived, k.Ended, k.Met, k.Cancelled, ratio)
		}
	}
	for r, n := range s.Rejected {
		if n > 0 {
			fmt.Fprintf(&b, "rejected %s=%d\n", Reason(r), n)
		}
	}
	for _, e := range s.Engines {
		fmt.Fprintf(&b, "engine %d %s up=%v waiting=%d running=%d kv=%d (%.2f)", e.ID, e.Model, e.Up, e.Waiting, e.Running, e.KVTokens, e.Usage())
		for _, f := range []struct {
			name string
			n    uint64
		}{{"deaths", e.Deaths}, {"preemptions", e.Preemptions}, {"steps", e.Steps}, {"failed", e.StepsFailed}, {"prompt", e.PromptTokens},
			{"cached", e.CachedTokens}, {"tokens", e.Tokens}} {
			if f.n > 0 {
				fmt.Fprintf(&b, " %s=%d", f.name, f.n)
			}
		}
		b.WriteByte('\n')
		for i, n := range e.Finished {
			if n > 0 {
				fmt.Fprintf(&b, "  finished %s=%d\n", ieg.StopReason(i), n)
			}
		}
		show := func(name string, h Histogram) {
			if h.Count > 0 {
				fmt.Fprintf(&b, "  %s n=%d mean=%.4g\n", name, h.Count, h.Sum/float64(h.Count))
			}
		}
		show("step tokens", e.StepTokens)
		show("computed", e.ComputedSize)
		for c, l := range e.Latency {
			for _, k := range []struct {
				name string
				h    Histogram
			}{{"ttft", l.TTFT}, {"itl", l.ITL}, {"tpot", l.TPOT}, {"e2e", l.E2E}, {"queue", l.Queue}, {"prefill", l.Prefill}, {"decode", l.Decode}} {
				show(fmt.Sprintf("%s %s", ieg.Class(c), k.name), k.h)
			}
		}
	}
	return b.String()
}

// TestAgreesWithTheMachine drives random work and compares with what the
// machine says of itself.
func TestAgreesWithTheMachine(t *testing.T) {
	preempted, died, rejected, cached := int64(0), int64(0), int64(0), int64(0)
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		w := newWorld(t)
		w.up(1, "m", 3, 90)
		w.up(2, "m", 4, 120)
		for range 400 {
			w.now = w.now.Add(time.Duration(r.IntN(30)) * time.Millisecond)
			id := ieg.EngineID(1 + r.IntN(2))
			switch r.IntN(12) {
			case 0, 1:
				w.arrive("m", ieg.Class(r.IntN(3)), prompt(r.IntN(2)*100, 1+r.IntN(40)), 1+r.IntN(2), int32(1+r.IntN(30)))
			case 2:
				if w.nextID > 0 {
					w.apply(kernel.Cancel{Request: ieg.RequestID(1 + r.IntN(int(w.nextID))), Reason: ieg.StopCancel})
				}
			case 3:
				if r.IntN(8) == 0 {
					w.lose(id)
				} else if w.down(id) {
					w.ready(id, "m", 3, 90)
				}
			case 4:
				w.step(id, time.Millisecond, ieg.StepFailed)
			default:
				w.step(id, time.Duration(1+r.IntN(20))*time.Millisecond, ieg.StepOK)
			}
			compare(t, w)
		}
		tot := w.machine.Status().Totals
		preempted, died, rejected, cached = preempted+tot.Preemptions, died+tot.EngineDeaths, rejected+tot.Rejected, cached+tot.CachedTokens
	}
	if preempted == 0 || died == 0 || rejected == 0 || cached == 0 {
		t.Errorf("nothing of a kind happened: %d preemptions, %d deaths, %d rejections, %d cached tokens", preempted, died, rejected, cached)
	}
}

func compare(t *testing.T, w *world) {
	t.Helper()
	st, s := w.machine.Status(), w.meter.Snapshot()
	var got, want ieg.Totals
	want = st.Totals
	for _, e := range s.Engines {
		got.Preemptions += int64(e.Preemptions)
		got.EngineDeaths += int64(e.Deaths)
		got.Steps += int64(e.Steps)
		got.GeneratedTokens += int64(e.Tokens)
		got.PromptTokens += int64(e.PromptTokens)
		got.CachedTokens += int64(e.CachedTokens)
	}
	for _, c := range s.Classes {
		got.Requests += int64(c.Arrived)
	}
	for _, n := range s.Rejected {
		got.Rejected += int64(n)
	}
	// The machine counts a prompt when it gives a row, which it may take back
	// unused, the meter when the first work is sent; and the machine tells
	// endings apart in its own way.
	for _, tot := range []*ieg.Totals{&got, &want} {
		tot.Finished, tot.Failed, tot.Cancelled = 0, 0, 0
	}
	if got.PromptTokens > want.PromptTokens || got.CachedTokens > got.PromptTokens {
		t.Fatalf("more prompt tokens than the machine has seen: %+v, machine %+v", got, want)
	}
	got.PromptTokens, got.CachedTokens, want.PromptTokens, want.CachedTokens = 0, 0, 0, 0
	if got != want {
		t.Fatalf("counted %+v\nmachine %+v", got, want)
	}
	if s.Waiting+s.Running != len(st.Requests) {
		t.Fatalf("%d waiting, %d running requests; the machine has %d", s.Waiting, s.Running, len(st.Requests))
	}
	for i, e := range s.Engines {
		if e.Waiting < 0 || e.Running < 0 || e.KVTokens < 0 || math.IsNaN(e.MFU) {
			t.Fatalf("engine %d: %+v", i, e)
		}
	}
}

// TestIdleIsZero checks that nothing is left of requests that have ended.
func TestIdleIsZero(t *testing.T) {
	w := newWorld(t)
	w.up(1, "m", 3, 90)
	for i := range 5 {
		w.arrive("m", ieg.Class(i%3), prompt(i, 10), 2, 12)
	}
	for range 500 {
		w.step(1, time.Millisecond, ieg.StepOK)
	}
	s := w.meter.Snapshot()
	if len(w.meter.requests)+len(w.meter.seqs)+s.Running+s.Waiting != 0 {
		t.Errorf("%d requests, %d sequences are left", len(w.meter.requests), len(w.meter.seqs))
	}
	if e := s.Engines[0]; e.Running+e.Waiting != 0 || e.KVTokens != 0 || w.meter.unplaced["m"] != 0 {
		t.Errorf("left: %+v, %v", e, w.meter.unplaced)
	}
}

// TestNoAllocationPerToken checks the steady state: a step of four streams.
func TestNoAllocationPerToken(t *testing.T) {
	w := newWorld(t)
	w.up(1, "m", 4, 4000)
	for i := range 4 {
		w.arrive("m", ieg.P0, prompt(100*i, 4), 1, 900)
	}
	for range 8 {
		w.step(1, time.Millisecond, ieg.StepOK)
	}
	d := *w.pending[1]
	ev := kernel.Event(kernel.StepDone{Done: &d})
	r := &kernel.Ready{}
	b := &ieg.Batch{Engine: 1, Epoch: 1}
	for i := range d.Results {
		s := w.meter.seqs[d.Results[i].Seq]
		r.Emits = append(r.Emits, kernel.Emit{Request: s.req.spec.ID, Result: &d.Results[i]})
		b.Work = append(b.Work, ieg.Work{Seq: s.id, Start: s.computed, N: 1, Sample: true})
	}
	r.Batches = append(r.Batches, b)
	before := w.meter.Snapshot().Engines[0].Tokens
	if n := testing.AllocsPerRun(100, func() { w.now++; w.meter.Observe(w.now, ev, r) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
	if after := w.meter.Snapshot().Engines[0].Tokens; after < before+400 {
		t.Errorf("only %d tokens were counted", after-before)
	}
}

// TestManyEngines loads and unloads more engines than there are series.
func TestManyEngines(t *testing.T) {
	w := newWorld(t)
	for id := ieg.EngineID(1); id <= 2*MaxEngines; id++ {
		w.up(id, "m", 1, 64)
		w.arrive("m", ieg.P0, prompt(0, 4), 1, 1)
		w.step(id, time.Millisecond, ieg.StepOK)
		w.apply(kernel.UnloadEngine{Engine: id})
	}
	s := w.meter.Snapshot()
	if n := len(s.Engines); n != MaxEngines {
		t.Fatalf("%d series", n)
	}
	if e := s.Engines[MaxEngines-1]; e.ID != 2*MaxEngines || e.Tokens != 1 || e.Deaths != 0 {
		t.Errorf("the last engine is %d with %d tokens, %d deaths", e.ID, e.Tokens, e.Deaths)
	}
}

func TestSnapshotIsACopy(t *testing.T) {
	w := newWorld(t)
	w.up(1, "m", 4, 4000)
	w.arrive("m", ieg.P0, prompt(0, 4), 1, 3)
	s := w.meter.Snapshot()
	was := slices.Clone(s.Engines[0].StepTokens.Counts)
	w.step(1, time.Millisecond, ieg.StepOK)
	if !slices.Equal(was, s.Engines[0].StepTokens.Counts) || s.Engines[0].Steps != 0 {
		t.Error("a snapshot changed after it was taken")
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram([]float64{1, 2})
	for _, v := range []float64{0, 1, 1.5, 2, 3} {
		h.add(v)
	}
	h.span(-time.Second)
	if !slices.Equal(h.Counts, []uint64{3, 2, 1}) || h.Count != 6 || h.Sum != 7.5 {
		t.Errorf("got %+v", h)
	}
	if m := Merge(h, h); !slices.Equal(m.Counts, []uint64{6, 4, 2}) || m.Sum != 15 || h.Count != 6 {
		t.Errorf("merged %+v", m)
	}
	for _, bounds := range [][]float64{TTFTBounds, TokenBounds, RequestBounds, StepBounds, CountBounds, ChoiceBounds} {
		if !slices.IsSorted(bounds) {
			t.Errorf("bounds %v are not sorted", bounds)
		}
	}
}

func TestReasons(t *testing.T) {
	for err, want := range map[error]Reason{
		ieg.ErrBusy: Busy, ieg.ErrDraining: Draining, ieg.ErrNoModel: NoModel, ieg.ErrContextLength: ContextLength, errors.New("x"): OtherReason,
	} {
		if got := reasonOf(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v is %s", err, got)
		}
	}
	if err := (Config{SLO: [ieg.NumClasses]SLO{{TTFT: -1}}}).Validate(); err == nil {
		t.Error("a negative bound is accepted")
	}
}
