package kernel

import (
	"fmt"
	"slices"

	"ieg"
	"ieg/memory/kv"
)

// Restore makes a machine from a snapshot, which it keeps. An error says what
// in the snapshot does not add up.
func Restore(s *Snapshot) (*Machine, error) {
	m, err := New(s.Config)
	if err != nil {
		return nil, err
	}
	m.now, m.draining, m.nextSeq, m.nextStep, m.totals = s.Now, s.Draining, s.NextSeq, s.NextStep, s.Totals
	for _, d := range s.Devices {
		m.devices = append(m.devices, &device{spec: d.Spec, free: d.Free, turn: d.Turn})
	}
	for i := range s.Engines {
		if err := m.restoreEngine(&s.Engines[i]); err != nil {
			return nil, fmt.Errorf("engine %d: %w", s.Engines[i].ID, err)
		}
	}
	if err := m.restoreHost(&s.KV); err != nil {
		return nil, err
	}
	known := map[ieg.SeqID]*seq{}
	for i := range s.Requests {
		if err := m.restoreRequest(&s.Requests[i], known); err != nil {
			return nil, fmt.Errorf("request %d of %d: %w", i, len(s.Requests), err)
		}
	}
	for i, e := range m.engines {
		if err := m.restoreFlight(e, &s.Engines[i], known); err != nil {
			return nil, fmt.Errorf("engine %d: %w", e.id, err)
		}
	}
	for _, id := range s.KV.Fetchers {
		if known[id] == nil {
			return nil, fmt.Errorf("sequence %d awaits blocks and is unknown", id)
		}
		m.kv.fetchers = append(m.kv.fetchers, known[id])
	}
	return m, m.Check()
}

func (m *Machine) restoreEngine(s *SavedEngine) error {
	e := &engine{
		id: s.ID, model: s.Model, device: s.Device, need: s.Need, state: s.State, reason: s.Reason, final: s.Final, info: s.Info,
		profile: s.Profile, seqs: map[ieg.SeqID]*seq{}, drop: s.Drop, served: s.Served, steps: s.Steps,
		young: s.Young, failed: s.Failed, aborts: s.Aborts, last: s.Last, doomed: s.Doomed, idle: s.Idle, solo: s.Solo, due: s.Due, tiled: s.Tiled, passes: s.Passes,
		blocked: s.Blocked, rent: s.Rent, closing: s.Closing, expect: s.Expect,
		credit: s.Credit, saveBlocked: s.SaveBlocked, saveWaits: s.SaveWaits, saveRate: rate(s.SaveRate), loadRate: rate(s.LoadRate),
	}
	i := slices.IndexFunc(m.devices, func(d *device) bool { return d.spec.ID == s.Device })
	if i < 0 || m.engine(s.ID) != nil {
		return fmt.Errorf("it is there twice, or its device %q is unknown", s.Device)
	}
	e.dev = m.devices[i]
	m.engines = append(m.engines, e)
	return nil
}

func (m *Machine) restoreRequest(s *SavedRequest, known map[ieg.SeqID]*seq) error {
	if s.Spec == nil || m.reqs[s.Spec.ID] != nil || len(s.Seqs) != s.Spec.N {
		return fmt.Errorf("it is there twice, or has %d sequences without a matching specification", len(s.Seqs))
	}
	g := s.Graph
	r := &request{spec: s.Spec, engine: m.engine(s.Engine), paused: s.Paused, deaths: s.Deaths, times: s.Times, usage: s.Usage,
		until: s.Until, itlMax: s.ITLMax, graph: &g}
	if r.engine == nil {
		return fmt.Errorf("its engine %d is unknown", s.Engine)
	}
	for _, d := range s.Decisions {
		r.decisions = append(r.decisions, decision{d.Node, d.Decision})
	}
	for i := range s.Seqs {
		q := &s.Seqs[i]
		if known[q.ID] != nil || q.Computed < 0 || seqState(q.State) > seqFinished {
			return fmt.Errorf("sequence %d is there twice, or in no known state", q.ID)
		}
		n := &seq{id: q.ID, req: r, choice: q.Choice, key: q.Key, state: seqState(q.State), computed: q.Computed, slot: q.Slot,
			inFlight: q.InFlight, await: q.Await, awaitSeq: q.AwaitSeq, awaitN: q.AwaitN, cached: q.Cached, preempted: q.Preempted,
			yielded: q.Yielded, counted: q.Counted, begun: q.Begun, decoding: q.Decoding, last: q.Last, busy: q.Busy}
		n.tokens = slices.Concat(s.Spec.Prompt, q.Generated)
		if err := m.restoreWaits(n, q); err != nil {
			return err
		}
		known[q.ID] = n
		r.seqs = append(r.seqs, n)
		r.take(n)
	}
	m.reqs[s.Spec.ID] = r
	m.order = append(m.order, r)
	return nil
}

// take puts a restored sequence where its state says.
func (r *request) take(n *seq) {
	if n.state == seqFinished {
		return
	}
	e := r.engine
	r.live++
	e.seqs[n.id] = n
	e.ahead += int64(n.gap())
	if n.state == seqWaiting {
		e.waiting.Push(n.key)
		return
	}
	at, _ := slices.BinarySearchFunc(e.running, n, func(a, b *seq) int { return a.key.Compare(b.key) })
	e.running = slices.Insert(e.running, at, n)
}

// restoreFlight gives an engine its step in flight and its pool.
func (m *Machine) restoreFlight(e *engine, s *SavedEngine, known map[ieg.SeqID]*seq) error {
	f := &s.Flight
	e.flight = flight{active: f.Active, step: f.Step, started: f.Started, limit: f.Limit, abortAt: f.AbortAt, predicted: f.Predicted,
		grant: f.Grant, halted: f.Halted, aborted: f.Aborted, load: f.Load}
	for _, o := range f.Orphans {
		if known[o.ID] != nil {
			return fmt.Errorf("orphan %d has a request", o.ID)
		}
		known[o.ID] = &seq{id: o.ID, req: &request{spec: &ieg.Request{Kind: o.Kind}, engine: e}, state: seqFinished,
			tokens: o.Tokens, computed: o.Computed, slot: o.Slot, inFlight: true, await: ieg.NoSlot}
	}
	for _, w := range f.Work {
		if known[w.Seq] == nil {
			return fmt.Errorf("step %d computes sequence %d, which is unknown", f.Step, w.Seq)
		}
		e.flight.work = append(e.flight.work, flying{known[w.Seq], w.N})
	}
	if err := m.restoreCopies(e, s, known); err != nil {
		return err
	}
	if s.Pool == nil {
		return nil
	}
	st := *s.Pool
	st.Rows = slices.Clone(st.Rows)
	for i := range st.Rows {
		if o := st.Rows[i].Owner; o != 0 {
			if known[o] == nil {
				return fmt.Errorf("row %d is owned by sequence %d, which is unknown", i, o)
			}
			st.Rows[i].Tokens = known[o].tokens
		}
	}
	for _, n := range e.running {
		if n.slot < 0 || int(n.slot) >= len(st.Rows) {
			return fmt.Errorf("sequence %d runs in row %d of %d", n.id, n.slot, len(st.Rows))
		}
	}
	var err error
	if e.pool, err = kv.FromState(st); err == nil {
		e.pool.Tell(m.kv.events)
	}
	return err
}
