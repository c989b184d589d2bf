package kernel

import (
	"slices"

	"ieg"
	"ieg/memory/kv"
)

// admission is how an attempt to give a waiting sequence a row ended.
type admission uint8

const (
	admitted admission = iota
	awaiting           // a prefix that is being computed, or its reader
	full               // no row or no cells: nobody behind it gets one either
)

// admit gives rows to waiting sequences, most urgent first.
func (m *Machine) admit(e *engine) {
	if e.closing && len(e.running) == 0 && e.waiting.Len() == 0 {
		return
	}
	for i := 0; i < e.waiting.Len(); {
		switch m.tryAdmit(e, e.seqs[e.waiting.At(i).Seq]) {
		case awaiting:
			i++
		case full:
			return
		}
	}
}

func (m *Machine) tryAdmit(e *engine, s *seq) admission {
	if s.req.paused || e.stillAwaits(s) {
		return awaiting
	}
	match := e.match(s)
	if match.Pending != ieg.NoSlot && match.PendingN-match.N >= AwaitTokensMin {
		if o := e.seqs[e.pool.Row(match.Pending).Owner]; o != nil && o.ready() {
			s.await, s.awaitSeq, s.awaitN = match.Pending, o.id, match.PendingN
			return awaiting
		}
	}
	for {
		match, fits := m.makeCells(e, s, match)
		if fits {
			if grant, ops, ok := e.pool.Acquire(s.id, s.tokens, s.req.spec.Tenant, match, m.now, e.batch.Ops); ok {
				e.batch.Ops = ops
				m.enter(e, s, grant)
				return admitted
			}
		}
		if !m.yield(e, s) {
			return m.noRoom(e, s)
		}
	}
}

// noRoom keeps the sequence waiting, unless it is alone and has outgrown all
// cells of the engine.
func (m *Machine) noRoom(e *engine, s *seq) admission {
	if len(e.running) == 0 && e.pool.Idle() == 0 {
		m.finish(s, ieg.StopLength, nil)
		return admitted
	}
	return full
}

// enter makes a sequence run in the row it was given.
func (m *Machine) enter(e *engine, s *seq, g kv.Grant) {
	r := s.req
	e.waiting.Remove(s.key)
	s.state, s.slot, s.computed = seqRunning, g.Slot, g.Cached
	at, _ := slices.BinarySearchFunc(e.running, s, func(a, b *seq) int { return a.key.Compare(b.key) })
	e.running = slices.Insert(e.running, at, s)
	if !s.admitted {
		s.admitted, s.cached = true, g.Cached
		m.totals.PromptTokens += int64(len(r.spec.Prompt))
		m.totals.CachedTokens += int64(g.Cached)
		if s.choice == 0 {
			r.usage.Cached = g.Cached
		}
	}
	if r.times.Admitted == 0 {
		r.times.Admitted = m.now
	}
	sampling := r.spec.Sampling
	sampling.Choice = s.choice
	e.batch.New = append(e.batch.New, ieg.SeqStart{
		Seq: s.id, Slot: s.slot, Tokens: s.tokens, Prompt: int32(len(r.spec.Prompt)),
		MaxTokens: r.spec.MaxTokens, Sampling: sampling, Embed: r.spec.Kind == ieg.Embed,
	})
	m.entered(s)
}

// stillAwaits tells whether the awaited prefix is still being computed.
func (e *engine) stillAwaits(s *seq) bool {
	if s.await == ieg.NoSlot {
		return false
	}
	row := e.pool.Row(s.await)
	if row.Owner == s.awaitSeq && row.Computed < s.awaitN {
		if o := e.seqs[s.awaitSeq]; o != nil && o.ready() {
			return true
		}
	}
	s.await = ieg.NoSlot
	return false
}

func (e *engine) match(s *seq) kv.Match {
	if !e.info.Prefixes || s.req.spec.Kind == ieg.Embed {
		return kv.Match{Slot: ieg.NoSlot, Pending: ieg.NoSlot}
	}
	return e.pool.Match(s.tokens, s.req.spec.Tenant)
}

// makeCells gives up idle rows until the sequence's tokens fit; the match is
// looked up again since it may have been given up.
func (m *Machine) makeCells(e *engine, s *seq, match kv.Match) (kv.Match, bool) {
	if e.info.Layout == ieg.Streams {
		return match, true
	}
	for e.pool.Free() < int32(len(s.tokens))-match.N+int32(len(e.running)) {
		ops, ok := e.pool.Evict(ieg.NoSlot, e.batch.Ops)
		if !ok {
			return match, false
		}
		e.batch.Ops, match = ops, e.match(s)
	}
	return match, true
}

// yield preempts the least urgent running sequence for a waiting one of a
// more urgent class.
func (m *Machine) yield(e *engine, s *seq) bool {
	cfg := m.cfg.Preemption
	if !cfg.Enabled {
		return false
	}
	for i := len(e.running) - 1; i >= 0; i-- {
		v := e.running[i]
		if int(v.key.Class)-int(s.key.Class) < cfg.MinPriorityGap {
			return false
		}
		if v.preempted < cfg.MaxPerRequest {
			m.preempt(v)
			return true
		}
	}
	return false
}

// preempt takes the row from a sequence that is not in flight. What it had
// computed stays as idle KV until the row is overwritten, so that it may find
// its own prefix again.
func (m *Machine) preempt(v *seq) {
	e := v.req.engine
	e.running = slices.DeleteFunc(e.running, func(o *seq) bool { return o == v })
	e.drop = append(e.drop, v.id)
	m.unadmit(e, v)
	m.vacate(v)
	v.preempted++
	m.totals.Preemptions++
	m.requeue(v, true)
}

// unadmit takes a sequence back out of the batch being made.
func (m *Machine) unadmit(e *engine, v *seq) {
	e.batch.New = slices.DeleteFunc(e.batch.New, func(n ieg.SeqStart) bool { return n.Seq == v.id })
}

// ensureCells frees n cells for the step being made: idle rows first, then the
// least urgent running sequences, all but the most urgent.
func (m *Machine) ensureCells(e *engine, n int32) bool {
	for e.pool.Free() < n {
		if ops, ok := e.pool.Evict(ieg.NoSlot, e.batch.Ops); ok {
			e.batch.Ops = ops
			continue
		}
		if len(e.running) < 2 {
			return false
		}
		m.preempt(e.running[len(e.running)-1])
	}
	return true
}
