package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/run"
)

// world is a loop with one make-believe engine. It runs in a synctest bubble:
// time passes when everybody waits.
type world struct {
	t      *testing.T
	loop   *run.Loop
	engine *fake
	cancel context.CancelFunc
	ended  chan error
}

// fake is an engine that answers each batch after took, a token per sampling
// sequence: its number in the sequence.
type fake struct {
	w       *world
	epoch   ieg.Epoch
	took    time.Duration
	hang    bool
	refuse  error
	sent    []ieg.Batch
	halts   []ieg.StepID
	aborts  []ieg.StepID
	kills   []string
	stopped int
	refused []error
	freed   int
	halt    chan struct{}
}

func (f *fake) Start(ieg.EngineID) (run.Engine, error) {
	if f.refuse != nil {
		return nil, f.refuse
	}
	go f.ready()
	return f, nil
}

func (f *fake) Stop(id ieg.EngineID) {
	f.stopped++
	go f.w.loop.Post(kernel.EngineLost{Engine: id, Epoch: f.epoch, Reason: "unloaded", Final: true})
}

func (f *fake) Refused(_ ieg.EngineID, err error) { f.refused = append(f.refused, err) }

func (f *fake) ready() {
	f.epoch++
	f.w.loop.Post(kernel.EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: f.epoch, Device: "cpu", Layout: ieg.Streams, Slots: 4,
		SlotTokens: 4096, Cells: 4 * 4096, StepTokens: 512, UBatch: 512, Prefixes: true}})
}

func (f *fake) Submit(b *ieg.Batch) error {
	c := *b
	c.Work, c.New = slices.Clone(b.Work), slices.Clone(b.New)
	f.sent = append(f.sent, c)
	if f.hang {
		return nil
	}
	f.halt = make(chan struct{})
	go f.compute(c, f.halt)
	return nil
}

// compute reports the step and its repeats.
func (f *fake) compute(b ieg.Batch, halt chan struct{}) {
	for repeat := int32(0); ; repeat++ {
		<-time.After(f.took)
		d := &ieg.StepDone{Engine: 1, Epoch: b.Epoch, Step: b.Step, Repeat: repeat, Took: f.took, Last: repeat == b.Grant}
		select {
		case <-halt:
			d.Last = true
		default:
		}
		for i := range b.Work {
			w := &b.Work[i]
			r := ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample}
			if w.Sample {
				r.Token, r.Text = ieg.Token(w.Start+w.N), []byte("x")
			}
			d.Results = append(d.Results, r)
			w.Start, w.N = w.Start+w.N, 1
		}
		f.w.loop.Post(kernel.StepDone{Done: d})
		if d.Last {
			return
		}
	}
}

func (f *fake) Halt(_ ieg.Epoch, step ieg.StepID) {
	f.halts = append(f.halts, step)
	close(f.halt)
}
func (f *fake) Abort(_ ieg.Epoch, step ieg.StepID) { f.aborts = append(f.aborts, step) }
func (f *fake) Release(*ieg.StepDone)              { f.freed++ }
func (f *fake) Kill(epoch ieg.Epoch, reason string) {
	f.kills = append(f.kills, reason)
	f.hang = false
	go func() {
		f.w.loop.Post(kernel.EngineLost{Engine: 1, Epoch: epoch, Reason: reason})
		f.ready()
	}()
}

// sink keeps what it is told, in order, and checks that Finish comes last.
type sink struct {
	t       *testing.T
	tokens  []ieg.Token
	backlog int
	stopAt  int // tokens after which Parse ends the choice
	ends    map[int32]ieg.Finish
	parsed  int
}

func newSink(t *testing.T) *sink { return &sink{t: t, ends: map[int32]ieg.Finish{}} }

func (s *sink) check(what string, choice int32) {
	_, over := s.ends[ieg.AllChoices]
	if _, done := s.ends[choice]; done || over {
		s.t.Errorf("%s of choice %d after its Finish", what, choice)
	}
}

func (s *sink) Parse(choice int32, r *ieg.SeqResult) bool {
	s.check("Parse", choice)
	s.parsed++
	return s.stopAt > 0 && len(s.tokens)+1 >= s.stopAt
}

func (s *sink) Emit(choice int32, r *ieg.SeqResult) int {
	s.check("Emit", choice)
	s.tokens = append(s.tokens, r.Token)
	return s.backlog
}

func (s *sink) Finish(f ieg.Finish) {
	s.check("Finish", f.Choice)
	s.ends[f.Choice] = f
}

func (s *sink) end() ieg.Finish { return s.ends[ieg.AllChoices] }

// play runs f in a bubble with a loop whose engine is up.
func play(t *testing.T, change func(*fake, *run.Config), f func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, ended: make(chan error, 1)}
		w.engine = &fake{w: w, took: 10 * time.Millisecond}
		cfg := run.Config{Kernel: kernel.DefaultConfig(), Starter: w.engine}
		if change != nil {
			change(w.engine, &cfg)
		}
		loop, err := run.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.loop = loop
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		go func() { w.ended <- loop.Run(ctx) }()
		loop.Post(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu"}, Free: 1 << 30})
		loop.Post(kernel.LoadEngine{Engine: 1, Model: "m", Device: "cpu", Need: 1})
		synctest.Wait()
		f(w)
		cancel()
		w.pass(time.Minute) // what the engine still computes
	})
}

func (w *world) submit(s *sink, n int, max int32) *run.Handle {
	w.t.Helper()
	h, err := w.loop.Submit(&ieg.Request{Name: "chat", Model: "m", N: n, Prompt: []ieg.Token{1, 2, 3}, MaxTokens: max, Deadline: ieg.Never}, s)
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

// pass lets d go by on the bubble's clock. What the test has read until now is
// read before the loop goes on.
func (w *world) pass(d time.Duration) {
	_ = w.loop.Inspect(w.t.Context(), func(*kernel.Machine) {})
	<-time.After(d)
	synctest.Wait()
}

func TestOrderAndEnd(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		w.submit(s, 1, 40)
		w.pass(time.Second)
		f := s.end()
		if len(s.tokens) != 40 || f.Reason != ieg.StopLength || f.Usage.Generated != 40 {
			t.Fatalf("%d tokens, %+v", len(s.tokens), f)
		}
		for i, tok := range s.tokens {
			if tok != ieg.Token(3+i) {
				t.Fatalf("token %d is %d: out of order", i, tok)
			}
		}
		if w.engine.freed < 40 || w.engine.freed > 41 {
			t.Errorf("%d reports of 40 steps were given back", w.engine.freed)
		}
		if len(w.engine.sent) > 4 {
			t.Errorf("%d batches for 40 tokens of a lone sequence: grants are not used", len(w.engine.sent))
		}
	})
}

func TestParserStops(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		s.stopAt = 5
		w.submit(s, 1, 400)
		w.pass(time.Second)
		if s.end().Reason != ieg.StopToolCall || len(s.tokens) != 5 || s.parsed != 5 {
			t.Fatalf("%d tokens, %d parsed, %+v", len(s.tokens), s.parsed, s.end())
		}
		if len(w.engine.halts) == 0 {
			t.Error("the grant was not ended")
		}
	})
}

func TestChoicesEndByThemselves(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		s.stopAt = 7
		w.submit(s, 2, 400)
		w.pass(2 * time.Second)
		if len(s.ends) != 3 || !s.end().Reason.Success() {
			t.Fatalf("%+v", s.ends)
		}
	})
}

func TestSlowReaderIsPausedAndResumed(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		s.backlog = run.BacklogPauseBytes + 1
		h := w.submit(s, 1, 300)
		w.pass(time.Second)
		got := len(s.tokens)
		if got == 0 || got > 2+1 {
			t.Fatalf("%d tokens reached a reader that takes nothing", got)
		}
		w.pass(10 * time.Second)
		if len(s.tokens) != got {
			t.Fatal("a paused reader got more")
		}
		// Another one is not delayed by it.
		other := newSink(t)
		w.submit(other, 1, 20)
		w.pass(time.Second)
		if len(other.tokens) != 20 {
			t.Errorf("%d tokens beside a paused reader", len(other.tokens))
		}
		s.backlog = 0
		h.Resume()
		w.pass(5 * time.Second)
		if s.end().Reason != ieg.StopLength || len(s.tokens) != 300 {
			t.Fatalf("%d tokens after resuming, %+v", len(s.tokens), s.end())
		}
	})
}

func TestCancel(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		h := w.submit(s, 1, 4000)
		w.pass(100 * time.Millisecond)
		h.Cancel(ieg.StopCancel, "the client went away")
		w.pass(50 * time.Millisecond)
		got := len(s.tokens)
		if f := s.end(); f.Reason != ieg.StopCancel || !errors.Is(f.Err, ieg.ErrCancelled) || f.Request != h.ID() {
			t.Fatalf("%+v", f)
		}
		w.pass(time.Second)
		if len(s.tokens) != got || len(w.engine.halts) == 0 {
			t.Errorf("tokens after the end, or no halt")
		}
		sent := len(w.engine.sent)
		w.pass(time.Second)
		if len(w.engine.sent) != sent {
			t.Error("work goes on for nobody")
		}
		h.Cancel(ieg.StopCancel, "again") // harmless
	})
}

func TestDrain(t *testing.T) {
	play(t, nil, func(w *world) {
		s, late := newSink(t), newSink(t)
		w.submit(s, 1, 100)
		w.pass(50 * time.Millisecond)
		short, cancel := context.WithTimeout(w.t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := w.loop.Drain(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("drained with a request under way: %v", err)
		}
		w.submit(late, 1, 5)
		if err := w.loop.Drain(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(s.tokens) != 100 || !errors.Is(late.end().Err, ieg.ErrDraining) {
			t.Errorf("%d tokens; the late one ended with %v", len(s.tokens), late.end().Err)
		}
	})
}

func TestEngineThatNeverAnswers(t *testing.T) {
	play(t, func(f *fake, _ *run.Config) { f.hang = true }, func(w *world) {
		s := newSink(t)
		w.submit(s, 1, 20)
		w.pass(5 * time.Second)
		if len(w.engine.kills) != 0 {
			t.Fatal("killed while its first step may still load weights")
		}
		w.pass(60 * time.Second)
		if len(w.engine.kills) != 1 || !strings.Contains(w.engine.kills[0], "no progress") {
			t.Fatalf("kills: %q", w.engine.kills)
		}
		if s.end().Reason != ieg.StopLength || len(s.tokens) != 20 {
			t.Fatalf("after the death: %d tokens, %+v", len(s.tokens), s.end())
		}
	})
}

func TestFullInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		loop, err := run.New(run.Config{Kernel: kernel.DefaultConfig(), Starter: f})
		if err != nil {
			t.Fatal(err)
		}
		request := func() *ieg.Request {
			return &ieg.Request{Model: "m", N: 1, Prompt: []ieg.Token{1}, MaxTokens: 1, Deadline: ieg.Never}
		}
		s := newSink(t)
		h, err := loop.Submit(request(), s)
		if err != nil {
			t.Fatal(err)
		}
		for range run.InboxEvents - 1 {
			h.Resume()
		}
		if _, err := loop.Submit(request(), newSink(t)); !errors.Is(err, ieg.ErrBusy) {
			t.Fatalf("a full inbox takes a request: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- loop.Run(ctx) }()
		synctest.Wait()
		if !errors.Is(s.end().Err, ieg.ErrNoModel) {
			t.Errorf("%+v", s.end())
		}
		cancel()
		<-done
	})
}

func TestStopEndsAll(t *testing.T) {
	play(t, nil, func(w *world) {
		running, waiting := newSink(t), newSink(t)
		w.submit(running, 1, 4000)
		w.pass(100 * time.Millisecond)
		w.cancel()
		h, err := w.loop.Submit(&ieg.Request{Model: "m", N: 1, Prompt: []ieg.Token{1}, MaxTokens: 1, Deadline: ieg.Never}, waiting)
		synctest.Wait()
		if err := <-w.ended; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if !errors.Is(running.end().Err, run.ErrStopped) || running.end().Request == 0 {
			t.Errorf("the running request ended with %+v", running.end())
		}
		if err == nil && (!errors.Is(waiting.end().Err, run.ErrStopped) || waiting.end().Request != h.ID()) {
			t.Errorf("the request in the inbox ended with %+v", waiting.end())
		}
		if _, err := w.loop.Submit(&ieg.Request{}, waiting); !errors.Is(err, run.ErrStopped) {
			t.Errorf("a loop that has ended takes a request: %v", err)
		}
		w.loop.Post(kernel.Tick{}) // does not block
		if err := w.loop.Inspect(w.t.Context(), func(*kernel.Machine) {}); !errors.Is(err, run.ErrStopped) {
			t.Errorf("inspected after the end: %v", err)
		}
	})
}

// A request that is in the inbox when the loop ends gets its Finish.
func TestStopFinishesTheInbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loop, err := run.New(run.Config{Kernel: kernel.DefaultConfig(), Starter: &fake{}})
		if err != nil {
			t.Fatal(err)
		}
		var sinks []*sink
		for range 50 {
			s := newSink(t)
			if _, err := loop.Submit(&ieg.Request{Model: "m", N: 1, Prompt: []ieg.Token{1}, MaxTokens: 1, Deadline: ieg.Never}, s); err != nil {
				t.Fatal(err)
			}
			sinks = append(sinks, s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := loop.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for i, s := range sinks {
			if s.end().Err == nil {
				t.Errorf("request %d was never ended", i)
			}
		}
	})
}

func TestEngineThatCantStart(t *testing.T) {
	play(t, func(f *fake, _ *run.Config) { f.refuse = errors.New("no such file") }, func(w *world) {
		s := newSink(t)
		w.submit(s, 1, 5)
		synctest.Wait()
		if !errors.Is(s.end().Err, ieg.ErrNoModel) {
			t.Fatalf("%+v", s.end())
		}
		st := w.loop.Status()
		if len(st.Engines) != 1 || st.Engines[0].State != ieg.EngineDown || st.Engines[0].Reason != "no such file" {
			t.Errorf("%+v", st.Engines)
		}
	})
}

func TestUnload(t *testing.T) {
	play(t, nil, func(w *world) {
		s := newSink(t)
		w.submit(s, 1, 10)
		synctest.Wait()
		w.loop.Post(kernel.UnloadEngine{Engine: 1})
		w.pass(time.Second)
		if len(s.tokens) != 10 || w.engine.stopped != 1 {
			t.Errorf("%d tokens, stopped %d times", len(s.tokens), w.engine.stopped)
		}
		w.loop.Post(kernel.UnloadEngine{Engine: 1})
		synctest.Wait()
		if len(w.engine.refused) != 1 || !errors.Is(w.engine.refused[0], ieg.ErrNoModel) {
			t.Errorf("%v", w.engine.refused)
		}
	})
}

func TestObserversAndStatus(t *testing.T) {
	var before, after int
	play(t, func(_ *fake, c *run.Config) {
		c.Before = func(ieg.Time, kernel.Event, *kernel.Machine) { before++ }
		c.Observers = []run.Observer{observer(func() { after++ })}
	}, func(w *world) {
		s := newSink(t)
		h := w.submit(s, 1, 5)
		progress := w.loop.Progress()
		w.pass(time.Second)
		if before == 0 || before != after {
			t.Errorf("%d events seen before, %d after", before, after)
		}
		if w.loop.Progress() == progress {
			t.Error("no progress is shown")
		}
		if st := w.loop.Status(); st.Totals.GeneratedTokens != 5 || st.Totals.Finished != 1 {
			t.Errorf("%+v", st.Totals)
		}
		for _, name := range []string{h.ID().String(), "1", "chat"} {
			if x, err := w.loop.Explain(w.t.Context(), name); err != nil || x.ID != h.ID() || len(x.Nodes) == 0 {
				t.Errorf("explain %q: %+v, %v", name, x, err)
			}
		}
		if _, err := w.loop.Explain(w.t.Context(), "r99"); err == nil {
			t.Error("an unknown request is explained")
		}
	})
}

type observer func()

func (o observer) Observe(ieg.Time, kernel.Event, *kernel.Ready) { o() }
