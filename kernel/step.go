package kernel

import (
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/sched"
)

// schedule starts a step on each device that is free and has work. Engines
// that share a device take turns: the more urgent work first, then the engine
// that had less of the device's time.
func (m *Machine) schedule() {
	for _, e := range m.engines {
		e.tried = false
	}
	for {
		var best *engine
		for _, e := range m.engines {
			if e.tried || e.state == ieg.EngineDown || e.pool == nil || !e.hasWork() || m.busy(e) {
				continue
			}
			if best == nil || before(e, best) {
				best = e
			}
		}
		if best == nil {
			break
		}
		best.tried = true
		m.compose(best)
	}
	m.closeIdle()
}

func before(a, b *engine) bool {
	if ka, kb := a.top(), b.top(); ka.Class != kb.Class {
		return ka.Class < kb.Class
	}
	return a.served < b.served
}

// busy tells whether a step is in flight on the engine's device; a grant of
// another engine there is ended.
func (m *Machine) busy(e *engine) bool {
	for _, o := range m.engines {
		if o.device == e.device && o.flight.active {
			if o != e {
				m.interrupt(o)
			}
			return true
		}
	}
	return false
}

// closeIdle lets go of engines that are to be unloaded and have no work left.
func (m *Machine) closeIdle() {
	for _, e := range m.engines {
		if e.closing && !e.final && !e.flight.active && len(e.seqs) == 0 {
			e.final = true
			m.ready.Unloads = append(m.ready.Unloads, e.id)
		}
	}
}

// compose makes the next batch of an engine that is idle.
func (m *Machine) compose(e *engine) {
	b := &e.batch
	b.New, b.Ops, b.Work, b.Grant = b.New[:0], b.Ops[:0], b.Work[:0], 0
	f := &e.flight
	f.work, f.load = f.work[:0], cost.Step{}

	m.collectRent(e)
	m.admit(e)
	d, class := m.decodes(e)
	if d > 0 && !m.ensureCells(e, int32(d)) {
		// A single sequence has outgrown the engine's cells.
		m.finish(e.running[0], ieg.StopLength, nil)
		d, class = m.decodes(e)
	}
	if e.info.Layout == ieg.Unified && d > 0 {
		d, class = m.decodes(e) // preemption may have changed who runs
	}
	for _, s := range e.running {
		if s.ready() && s.gap() == 1 && s.req.spec.Kind == ieg.Generate && len(b.Work) < int(e.info.StepTokens) {
			m.work(e, s, 1)
		}
	}
	m.chunks(e, d, class)
	if len(b.Work) == 0 && len(b.New)+len(b.Ops) == 0 {
		return
	}
	m.launch(e)
}

// decodes counts the sequences that advance by one token and their most
// urgent class.
func (m *Machine) decodes(e *engine) (d int, class ieg.Class) {
	class = ieg.NumClasses - 1
	for _, s := range e.running {
		if s.ready() && s.gap() == 1 && s.req.spec.Kind == ieg.Generate {
			d, class = d+1, min(class, s.key.Class)
		}
	}
	return d, class
}

// chunks fills the step with prompt tokens, most urgent first.
func (m *Machine) chunks(e *engine, d int, class ieg.Class) {
	left := -1
	for _, s := range e.running {
		embed := s.req.spec.Kind == ieg.Embed
		gap := int(s.gap())
		if !s.ready() || gap == 1 && !embed {
			continue
		}
		if left < 0 {
			left = m.chunk(e, d, class, s.computed)
		}
		n := min(gap, left)
		if embed && n < gap {
			if len(e.batch.Work) > 0 {
				continue
			}
			n, left = gap, gap
		}
		if n <= 0 {
			return
		}
		m.work(e, s, int32(n))
		left -= n
	}
}

// chunk is the number of prompt tokens for a step of d decodes.
func (m *Machine) chunk(e *engine, d int, class ieg.Class, past int32) int {
	l := sched.Load{Step: e.flight.load, Class: class, Past: past}
	n := m.cfg.Pace.Chunk(e.profile.Speed(), l, int(e.info.StepTokens)-d)
	if e.info.Layout == ieg.Unified {
		n = min(n, int(e.pool.Free())-d)
	}
	return n
}

func (m *Machine) work(e *engine, s *seq, n int32) {
	e.batch.Work = append(e.batch.Work, ieg.Work{
		Seq: s.id, Slot: s.slot, Start: s.computed, N: n,
		Sample: n == s.gap() && s.req.spec.Kind == ieg.Generate,
	})
	e.flight.work = append(e.flight.work, flying{seq: s, n: n})
	e.load(s.computed, n)
	s.inFlight = true
	m.started(s)
}

// load adds a sequence's part to what the step is expected to cost. In the
// unified layout a sequence's token reads every cell in use, its own or not.
func (e *engine) load(past, n int32) {
	l := &e.flight.load
	reads := past + n
	if e.info.Layout == ieg.Unified {
		reads = max(reads, e.pool.Used())
	}
	if n == 1 {
		l.Seqs++
		l.KVTokens += int64(reads)
		return
	}
	l.Prefill += n
	l.Attended += cost.Attended(max(past, reads-n), n)
}

// launch sends the batch off.
func (m *Machine) launch(e *engine) {
	m.nextStep++
	b, f := &e.batch, &e.flight
	b.Engine, b.Epoch, b.Step = e.id, e.info.Epoch, m.nextStep
	b.Drop = append(b.Drop[:0], e.drop...)
	e.drop = e.drop[:0]
	if f.load.Prefill == 0 && f.load.Seqs > 0 && b.Work[0].Sample {
		b.Grant = m.grant(e, len(b.Work))
	}
	f.active, f.halted, f.aborted = true, false, false
	f.step, f.grant = b.Step, b.Grant
	m.clock(e)
	m.ready.Batches = append(m.ready.Batches, b)
}

// clock starts the step's own clock.
func (m *Machine) clock(e *engine) {
	f := &e.flight
	f.started = m.now
	f.predicted = sched.Seconds(e.profile.Speed().Step(f.load))
	floor := HangFloor
	if e.young < 3 {
		floor = HangFirst
	}
	f.limit = m.now.Add(floor + HangFactor*f.predicted)
}

// grant is the number of repeats that need no decision: nobody can be
// admitted before somebody stops, and every row has room.
func (m *Machine) grant(e *engine, d int) int32 {
	g := m.cfg.GrantSteps
	for _, o := range m.engines {
		if o != e && o.device == e.device && o.pool != nil && o.hasWork() {
			g = min(g, SharedGrant)
		}
	}
	if e.info.Layout == ieg.Unified {
		g = min(g, (e.pool.Free()-int32(d))/int32(d))
	}
	for _, w := range e.flight.work {
		g = min(g, e.info.SlotTokens-int32(len(w.seq.tokens)))
	}
	for i := range e.waiting.Len() {
		if e.seqs[e.waiting.At(i).Seq].await != ieg.NoSlot {
			g = 0
		}
	}
	return max(g, 0)
}

// collectRent charges idle KV in the unified layout for what it costs each
// step, and gives up the oldest once its rent exceeds the price of computing
// it again: whatever comes back later, this costs at most twice the best
// choice made with foresight.
func (m *Machine) collectRent(e *engine) {
	if e.info.Layout != ieg.Unified || e.pool.Idle() == 0 {
		return
	}
	price := e.profile.Speed().Prefill
	for {
		s := e.pool.Oldest()
		if s == ieg.NoSlot || e.rent-e.pool.Row(s).Rent < price {
			return
		}
		e.batch.Ops, _ = e.pool.Evict(ieg.NoSlot, e.batch.Ops)
	}
}

// settleStep folds the measured time of a step into the engine's pace.
func (e *engine) settleStep(took time.Duration) {
	e.profile.Observe(e.flight.load, took.Seconds())
	e.served += took
	e.steps++
	e.young++
	if e.info.Layout == ieg.Unified {
		e.rent += e.profile.Speed().KVToken * float64(e.flight.load.Seqs)
	}
}
