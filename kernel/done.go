package kernel

import (
	"fmt"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
)

// stepDone takes in a report: known tokens grow, rows advance, results go to
// the clients, and what stopped is finished.
func (m *Machine) stepDone(done *ieg.StepDone) {
	e := m.engine(done.Engine)
	if e == nil || e.pool == nil || e.doomed || done.Epoch != e.info.Epoch || !e.flight.active || done.Step != e.flight.step {
		return // a report of an incarnation that is gone, or going
	}
	f := &e.flight
	f.over = done.Last
	e.last = m.now
	var bad []*seq
	if done.Repeat == 0 && len(f.copies) > 0 {
		bad = m.copied(e, done)
	}
	f.copying = 0
	switch done.Outcome {
	case ieg.StepOK:
		if len(done.Results) != len(f.work) {
			m.kill(e, fmt.Sprintf("step %d reports %d results for %d sequences", done.Step, len(done.Results), len(f.work)))
			return
		}
		e.failed, e.aborts = 0, 0
		e.settleStep(m.cfg.Pace, done.Took)
		m.totals.Steps++
		share := done.Took / time.Duration(max(len(f.work), 1))
		for i := range f.work {
			f.work[i].seq.busy += share
			if !m.advance(e, &f.work[i], &done.Results[i]) {
				return
			}
		}
	case ieg.StepAborted:
		e.aborts++
	case ieg.StepFailed:
		if len(bad) == 0 {
			m.failedStep(e, done.Err)
		}
	}
	if done.Last {
		m.land(e)
		m.spoiled(e, bad)
		return
	}
	f.load = cost.Step{}
	for i := range f.work {
		e.load(f.work[i].seq.computed, 1)
	}
	m.clock(e)
}

// land ends the flight; rows of sequences that were finished meanwhile are
// given up now.
func (m *Machine) land(e *engine) {
	f := &e.flight
	f.active, f.over, e.saveBlocked, e.saveWaits = false, false, false, false
	for i := range f.work {
		s := f.work[i].seq
		s.inFlight = false
		if s.state == seqFinished {
			m.vacate(s)
		}
		f.work[i].seq = nil
	}
	f.work = f.work[:0]
}

// spoiled takes back the rows of sequences for which what was brought is not
// what it should be: they compute it.
func (m *Machine) spoiled(e *engine, bad []*seq) {
	for _, s := range bad {
		if s.state == seqRunning && !e.doomed {
			m.unaccount(s)
			m.preempt(s)
		}
	}
}

// advance applies one result. False: the engine broke the contract and is
// killed.
func (m *Machine) advance(e *engine, w *flying, res *ieg.SeqResult) bool {
	s := w.seq
	whole := w.n == s.gap()
	if res.Seq != s.id || res.Computed != w.n || res.Sampled != (whole && s.req.spec.Kind == ieg.Generate) {
		m.kill(e, fmt.Sprintf("step %d reports %d tokens computed of sequence %d (sampled: %t), the work was %d of sequence %d, which has %d to compute",
			e.flight.step, res.Computed, res.Seq, res.Sampled, w.n, s.id, s.gap()))
		return false
	}
	before := s.gap()
	s.computed += w.n
	w.n = 1
	if res.Sampled {
		s.tokens = append(s.tokens, res.Token)
	}
	e.pool.Advance(s.slot, s.tokens, s.computed, m.now)
	e.pool.Sealed(s.slot)
	if s.state == seqFinished {
		return true // cancelled while it was in flight
	}
	e.ahead += int64(s.gap() - before)
	r := s.req
	if res.Sampled {
		m.totals.GeneratedTokens++
		r.usage.Generated++
		r.times.Last = m.now
		if r.times.FirstToken == 0 {
			r.times.FirstToken = m.now
		}
		if s.last != 0 {
			r.itlMax = max(r.itlMax, m.now-s.last)
		}
		s.last = m.now
		m.sampled(s)
	}
	if res.Sampled || res.Stop != ieg.NotStopped || res.Vector != nil {
		m.ready.Emits = append(m.ready.Emits, Emit{Request: r.spec.ID, Choice: s.choice, Result: res})
	}
	switch {
	case res.Stop != ieg.NotStopped:
		m.finish(s, res.Stop, nil)
	case int32(len(s.tokens)) > e.info.SlotTokens || s.generated() >= r.spec.MaxTokens && r.spec.Kind == ieg.Generate:
		m.finish(s, ieg.StopLength, nil)
	default:
		if hit := m.overLimit(s); hit.Limit != graph.NoLimit {
			m.exhausted(r, hit)
		}
	}
	return true
}

// failedStep counts a step that the engine could not run. Its work is
// repeated; an engine that keeps failing is started anew.
func (m *Machine) failedStep(e *engine, why string) {
	if e.failed++; e.failed >= StepFailuresMax {
		m.kill(e, fmt.Sprintf("%d steps in a row failed: %s", e.failed, why))
	}
}

// kill asks for the end of an incarnation, once; its EngineLost follows.
// stalled ends an engine that was seen to hang in the step it still runs.
func (m *Machine) stalled(ev EngineStalled) {
	e := m.engine(ev.Engine)
	if e != nil && e.info.Epoch == ev.Epoch && e.flight.active && e.flight.step == ev.Step && e.flight.limit != ieg.Never {
		m.kill(e, ev.Reason)
	}
}

func (m *Machine) kill(e *engine, why string) {
	if e.doomed {
		return
	}
	e.doomed, e.flight.limit, e.flight.abortAt = true, ieg.Never, ieg.Never
	m.ready.Kills = append(m.ready.Kills, Kill{Engine: e.id, Epoch: e.info.Epoch, Reason: why})
}
