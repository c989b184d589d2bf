package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ieg"
	"ieg/kernel"
)

// Config plugs the world into a loop.
type Config struct {
	Kernel    kernel.Config
	Starter   Starter
	Observers []Observer
	// Mover carries out moves; nil if there is no NVMe tier (the kernel is then
	// not told of one).
	Mover Mover
	// Before sees each event before it is applied, with the machine as it is:
	// the flight recorder. May be nil.
	Before func(now ieg.Time, ev kernel.Event, m *kernel.Machine)
}

// Loop runs a machine.
type Loop struct {
	cfg     Config
	machine *kernel.Machine
	start   time.Time
	inbox   chan item
	done    chan struct{}
	idle    chan struct{} // closed once draining and idle

	// owned by the loop's goroutine
	engines map[ieg.EngineID]Engine
	sinks   map[ieg.RequestID]*bound
	seqs    map[ieg.SeqID]seqRef
	slow    []ieg.RequestID // readers that fell behind in this turn
	later   []kernel.Event  // facts that came up while decisions were carried out
	drained bool

	nextID   atomic.Uint64
	progress atomic.Uint64
	status   atomic.Pointer[ieg.Status]
	closed   atomic.Bool
	stopOnce sync.Once
}

// item is one entry of the inbox: an event, or a function that reads the
// machine between two events.
type item struct {
	ev   kernel.Event
	sink Sink
	call func(*kernel.Machine)
}

// bound is a live request's sink.
type bound struct {
	sink   Sink
	seqs   []ieg.SeqID
	paused bool
}

// seqRef says for whom a sequence speaks.
type seqRef struct {
	req    ieg.RequestID
	choice int32
}

// New makes a loop; Run starts it.
func New(cfg Config) (*Loop, error) {
	m, err := kernel.New(cfg.Kernel)
	if err != nil {
		return nil, err
	}
	l := &Loop{
		cfg: cfg, machine: m, start: time.Now(),
		inbox: make(chan item, InboxEvents), done: make(chan struct{}), idle: make(chan struct{}),
		engines: map[ieg.EngineID]Engine{}, sinks: map[ieg.RequestID]*bound{}, seqs: map[ieg.SeqID]seqRef{},
	}
	l.status.Store(&ieg.Status{})
	return l, nil
}

// Now is the loop's clock.
func (l *Loop) Now() ieg.Time { return ieg.Time(time.Since(l.start)) }

// Progress counts the turns of the loop, at least one a second while it is
// alive: the watchdog's evidence.
func (l *Loop) Progress() uint64 { return l.progress.Load() }

// Status is the last published state, at most about a second old; while work
// is under way at most StatusEvery.
func (l *Loop) Status() ieg.Status { return *l.status.Load() }

// ErrStopped: the loop has ended.
var ErrStopped = fmt.Errorf("%w: the node has stopped", ieg.ErrDraining)

// Run applies facts until ctx ends. It ends every live request on the way out.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	var published ieg.Time
	for {
		l.arm(timer)
		select {
		case <-ctx.Done():
			l.stop()
			return ctx.Err()
		case it := <-l.inbox:
			l.take(it)
		case <-timer.C:
			if now := l.Now(); now >= l.machine.Deadline() {
				l.apply(kernel.Tick{}, nil)
			}
		}
		l.progress.Add(1)
		if now := l.Now(); now.Sub(published) >= StatusEvery || len(l.inbox) == 0 && l.machine.Idle() {
			st := l.machine.Status()
			l.status.Store(&st)
			published = now
		}
		if l.drained && l.machine.Idle() && l.machine.Flushed() {
			l.stopOnce.Do(func() { close(l.idle) })
		}
	}
}

// arm sets the timer to the machine's deadline, a second away at most.
func (l *Loop) arm(t *time.Timer) {
	wait := time.Second
	if d := l.machine.Deadline(); d != ieg.Never {
		wait = min(max(d.Sub(l.Now()), 0), wait)
	}
	t.Reset(wait)
}

func (l *Loop) take(it item) {
	if it.call != nil {
		it.call(l.machine)
		return
	}
	l.apply(it.ev, it.sink)
}

// apply feeds the parsers, the machine, and carries out its decisions.
func (l *Loop) apply(ev kernel.Event, sink Sink) {
	now := l.Now()
	switch ev := ev.(type) {
	case kernel.Arrived:
		l.sinks[ev.Request.ID] = &bound{sink: sink}
	case kernel.StepDone:
		l.parse(ev.Done)
	case kernel.Drain:
		l.drained = true
	case kernel.Resume:
		b := l.sinks[ev.Request]
		if b == nil || !b.paused {
			return
		}
		b.paused = false
	}
	if l.cfg.Before != nil {
		l.cfg.Before(now, ev, l.machine)
	}
	l.machine.Apply(now, ev)
	r := l.machine.Ready()
	l.carryOut(r)
	for _, o := range l.cfg.Observers {
		o.Observe(now, ev, r)
	}
	switch ev := ev.(type) {
	case kernel.StepDone:
		if e := l.engines[ev.Done.Engine]; e != nil {
			e.Release(ev.Done)
		}
	case kernel.EngineLost:
		if ev.Final {
			delete(l.engines, ev.Engine)
		}
	}
	l.follow()
}

// follow applies what came up while decisions were carried out: readers that
// fell behind, engines that could not be started.
func (l *Loop) follow() {
	for len(l.slow)+len(l.later) > 0 {
		slow, later := l.slow, l.later
		l.slow, l.later = nil, nil
		for _, id := range slow {
			if l.sinks[id] != nil {
				l.apply(kernel.Pause{Request: id}, nil)
			}
		}
		for _, ev := range later {
			l.apply(ev, nil)
		}
	}
}

// parse lets the sinks look at new text before the machine decides: a choice
// whose output is complete stops here.
func (l *Loop) parse(d *ieg.StepDone) {
	if d.Outcome != ieg.StepOK {
		return
	}
	for i := range d.Results {
		r := &d.Results[i]
		ref, ok := l.seqs[r.Seq]
		if !ok {
			continue
		}
		if b := l.sinks[ref.req]; b != nil && b.sink.Parse(ref.choice, r) && r.Stop == ieg.NotStopped {
			r.Stop = ieg.StopToolCall
		}
	}
}

// carryOut does what the machine decided, in the order of Ready's fields.
func (l *Loop) carryOut(r *kernel.Ready) {
	for _, a := range r.Admits {
		l.seqs[a.Seq] = seqRef{a.Request, a.Choice}
		if b := l.sinks[a.Request]; b != nil {
			b.seqs = append(b.seqs, a.Seq)
		}
	}
	for _, e := range r.Emits {
		if b := l.sinks[e.Request]; b != nil {
			if b.sink.Emit(e.Choice, e.Result) > BacklogPauseBytes && !b.paused {
				b.paused = true
				l.slow = append(l.slow, e.Request)
			}
		}
	}
	l.finish(r.Finishes)
	l.steer(r)
	for _, v := range r.Moves {
		l.cfg.Mover.Move(v)
	}
	for _, b := range r.Batches {
		l.submit(b)
	}
}

func (l *Loop) finish(fs []ieg.Finish) {
	for _, f := range fs {
		b := l.sinks[f.Request]
		if b == nil {
			continue
		}
		b.sink.Finish(f)
		switch {
		case f.Choice == ieg.AllChoices:
			for _, id := range b.seqs {
				delete(l.seqs, id)
			}
			delete(l.sinks, f.Request)
		case int(f.Choice) < len(b.seqs):
			// The rest of a grant is still to come: nobody parses it.
			delete(l.seqs, b.seqs[f.Choice])
		}
	}
}

// steer stops steps and engines, and starts engines.
func (l *Loop) steer(r *kernel.Ready) {
	for _, s := range r.Aborts {
		if e := l.engines[s.Engine]; e != nil {
			e.Abort(s.Epoch, s.Step)
		}
	}
	for _, s := range r.Halts {
		if e := l.engines[s.Engine]; e != nil {
			e.Halt(s.Epoch, s.Step)
		}
	}
	for _, k := range r.Kills {
		if e := l.engines[k.Engine]; e != nil {
			e.Kill(k.Epoch, k.Reason)
		}
	}
	for _, f := range r.Refusals {
		l.cfg.Starter.Refused(f.Engine, f.Err)
	}
	for _, id := range r.Unloads {
		l.cfg.Starter.Stop(id)
	}
	for _, id := range r.Loads {
		e, err := l.cfg.Starter.Start(id)
		if err != nil {
			l.later = append(l.later, kernel.EngineLost{Engine: id, Reason: err.Error(), Final: true})
			continue
		}
		l.engines[id] = e
	}
}

// submit sends a batch. An engine that is already gone has posted, or will
// post, its EngineLost; nothing is lost by not sending.
func (l *Loop) submit(b *ieg.Batch) {
	e := l.engines[b.Engine]
	if e == nil {
		return
	}
	if err := e.Submit(b); err != nil && !errors.Is(err, ieg.ErrEngineLost) {
		e.Kill(b.Epoch, "step could not be sent: "+err.Error())
	}
}

// stop ends every live request.
func (l *Loop) stop() {
	if l.closed.Swap(true) {
		return
	}
	for id, b := range l.sinks {
		b.sink.Finish(stopped(id))
	}
	clear(l.sinks)
	close(l.done)
	l.refuse()
}

// stopped ends a request because the loop does.
func stopped(id ieg.RequestID) ieg.Finish {
	return ieg.Finish{Request: id, Choice: ieg.AllChoices, Reason: ieg.StopError, Err: ErrStopped}
}

// refuse ends the requests that are still in the inbox of a loop that has
// ended. It may be called from any goroutine: each entry is taken once.
func (l *Loop) refuse() {
	for {
		select {
		case it := <-l.inbox:
			if a, ok := it.ev.(kernel.Arrived); ok {
				it.sink.Finish(stopped(a.Request.ID))
			}
		default:
			return
		}
	}
}
