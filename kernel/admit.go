package kernel

import (
	"slices"

	"ieg"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// admission is how an attempt to give a waiting sequence a row ended.
type admission uint8

const (
	admitted admission = iota
	awaiting           // a prefix that is being computed, or its reader
	full               // no row or no cells yet: nobody behind it gets one either
)

// embedTenant keeps rows that held embeddings from being matched.
const embedTenant = "\x00embed"

// admit gives rows to waiting sequences, most urgent first.
func (m *Machine) admit(e *engine) {
	e.awaits, e.owed, e.fetcher = 0, 0, 0
	if m.wantRows(e) {
		defer e.pool.WantNone() // a row is wanted as long as places are given
	}
	for _, s := range e.running {
		s.lifted = false
		e.owed += s.gap()
	}
	if k, ok := e.passes.Overdue(&e.waiting, e.leastUrgent()); ok {
		s := e.seqs[k.Seq]
		s.yielded = m.cfg.Preemption.MaxPerRequest // its turn has come, and stays
		if m.tryAdmit(e, s) == full {
			return
		}
	}
	for i := 0; i < e.waiting.Len(); {
		s := e.seqs[e.waiting.At(i).Seq]
		switch m.tryAdmit(e, s) {
		case awaiting:
			i++
			e.lift(s)
		case full:
			return
		}
	}
}

// wantRows marks the idle rows from which the next sequences go on, where
// there is a choice; false: there is none.
func (m *Machine) wantRows(e *engine) bool {
	n := e.waiting.Len()
	if _, idle := e.pool.Counts(); n < 2 || idle < 2 {
		return false
	}
	for i := range min(n, WantRowsMax) {
		s := e.seqs[e.waiting.At(i).Seq]
		e.pool.Want(s.tokens, s.tenant(), AwaitTokensMin)
	}
	return true
}

// leastUrgent is the least urgent class that runs; P0 if nothing does.
func (e *engine) leastUrgent() ieg.Class {
	least := ieg.P0
	for _, s := range e.running {
		least = max(least, s.key.Class)
	}
	return least
}

// lift lends the key of a sequence that awaits a prefix to the one that
// computes it, so that the less urgent one does not hold it up.
func (e *engine) lift(s *seq) {
	if s.await == ieg.NoSlot {
		return
	}
	e.awaits++
	if o := e.seqs[s.awaitSeq]; s.key.Compare(*o.effective()) < 0 {
		o.lift, o.lifted = s.key, true
	}
}

// effective is the key by which the sequence's prompt is computed.
func (s *seq) effective() *sched.Key {
	if s.lifted {
		return &s.lift
	}
	return &s.key
}

func (m *Machine) tryAdmit(e *engine, s *seq) admission {
	switch {
	case s.req.paused:
		s.await = ieg.NoSlot
		return awaiting
	case e.stillAwaits(s):
		return awaiting
	case m.awaitsFetch(s):
		return awaiting
	case e.blocked == s.id:
		return full
	case m.wantAgain(e, s):
		return awaiting
	}
	match := e.match(s)
	b, match := m.bring(e, s, match)
	if match.Pending != ieg.NoSlot && match.PendingN-max(match.N, b.end()) >= AwaitTokensMin {
		if o := e.seqs[e.pool.Row(match.Pending).Owner]; o != nil && o.ready() {
			s.await, s.awaitSeq, s.awaitN = match.Pending, o.id, match.PendingN
			m.letGo(&b)
			return awaiting
		}
	}
	if !m.couldFit(e, s, match) {
		m.letGo(&b)
		return m.noRoom(e, s)
	}
	for {
		var fits bool
		if match, fits = m.makeCells(e, s, match, &b); fits && len(e.running) < int(e.info.StepTokens) && m.takeRow(e, s, match, &b) {
			return admitted
		}
		m.letGo(&b)
		if e.clear != ieg.NoSlot {
			return full // what its row holds is being saved
		}
		if !m.yield(e, s) {
			return m.noRoom(e, s)
		}
		b, match = m.bring(e, s, e.match(s))
	}
}

// takeRow gives the sequence a row, after what the row loses by that was saved,
// with what is brought for it. False: there is none, or that is being saved
// first (clear).
func (m *Machine) takeRow(e *engine, s *seq, match kv.Match, b *brought) bool {
	slot, inPlace := e.pool.Plan(match)
	if slot == ieg.NoSlot {
		return false
	}
	keep := int32(0)
	if inPlace {
		keep = match.N
	}
	if m.clears(e, slot, keep) {
		return false
	}
	m.rescue(e, slot, keep)
	g, ops, ok := e.pool.Acquire(s.id, s.tokens, s.tenant(), match, m.now, e.batch.Ops)
	if !ok {
		return false
	}
	e.batch.Ops = ops
	m.account(s, g.Cached, b)
	if !m.tiered(e, s) {
		e.pool.SetRoot(g.Slot, ieg.BlockHash{}) // what it held before is over
		m.unkeep(e, g.Slot)
	} else {
		m.names(e, s)
		root := s.root
		if s.req.spec.NoStore {
			root = ieg.BlockHash{}
		}
		e.pool.SetRoot(g.Slot, root)
		p := m.find(e, s)
		m.kv.host.Touch(p.Blocks, m.now)
		m.keep(e, g.Slot, p.Blocks)
		m.kv.counts.Diverged += int64(p.Left())
		if b.n > 0 {
			s.rest = *b
			g.Cached = b.start + m.carry(e, s, g.Slot)
		}
	}
	m.enter(e, s, g)
	return true
}

// tenant is the salt of the sequence's KV.
func (s *seq) tenant() string {
	if s.req.spec.Kind == ieg.Embed {
		return embedTenant
	}
	return s.req.spec.Tenant
}

// noRoom keeps the sequence waiting, unless it is alone and has outgrown all
// cells of the engine.
func (m *Machine) noRoom(e *engine, s *seq) admission {
	if len(e.running) == 0 && int32(len(s.tokens)) > e.rowMax() {
		m.finish(s, ieg.StopLength, nil)
		return admitted
	}
	e.blocked = s.id
	return full
}

// enter makes a sequence run in the row it was given.
func (m *Machine) enter(e *engine, s *seq, g kv.Grant) {
	r := s.req
	e.waiting.Remove(s.key)
	m.forgetWaits(s)
	e.passes.Admit(s.key.Class, &e.waiting)
	s.state, s.slot, s.computed, s.lifted = seqRunning, g.Slot, g.Cached, false
	e.ahead -= int64(g.Cached)
	e.owed += s.gap()
	at, _ := slices.BinarySearchFunc(e.running, s, func(a, b *seq) int { return a.key.Compare(b.key) })
	e.running = slices.Insert(e.running, at, s)
	if r.times.Admitted == 0 {
		r.times.Admitted = m.now
	}
	sampling := r.spec.Sampling
	sampling.Choice = s.choice
	prompt := int32(len(r.spec.Prompt))
	e.batch.New = append(e.batch.New, ieg.SeqStart{
		Seq: s.id, Slot: s.slot, Tokens: s.tokens, Prompt: prompt,
		// The engine ends the text itself where the row ends, so that no held
		// back text is lost.
		MaxTokens: min(r.spec.MaxTokens, e.rowMax()-prompt+1),
		Sampling:  sampling, Embed: r.spec.Kind == ieg.Embed,
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

// cells is what the sequence needs beside what running ones still need to
// catch up. Their output is not reserved: it is what preemption is for.
func (e *engine) cells(s *seq, match kv.Match) int32 {
	return int32(len(s.tokens)) - match.N + e.owed
}

// couldFit tells whether giving up idle rows and whoever would yield could make
// room: nothing is given up in vain.
func (m *Machine) couldFit(e *engine, s *seq, match kv.Match) bool {
	if e.info.Layout == ieg.Streams {
		return true
	}
	have := e.pool.Free() + e.pool.Idle()
	for _, v := range e.running {
		if m.yields(v, s) {
			have += v.computed + v.gap()
		}
	}
	return have >= e.cells(s, match)
}

// makeCells gives up idle rows until the sequence's tokens fit, the matched one
// last; once that is gone it is looked up again what there is.
func (m *Machine) makeCells(e *engine, s *seq, match kv.Match, b *brought) (kv.Match, bool) {
	if e.info.Layout == ieg.Streams {
		return match, true
	}
	for e.pool.Free() < e.cells(s, match) {
		ok := m.evict(e, match.Slot)
		if !ok && match.Slot != ieg.NoSlot {
			ok = m.evict(e, ieg.NoSlot)
			m.letGo(b)
			*b, match = m.bring(e, s, e.match(s))
		}
		if !ok {
			return match, false
		}
	}
	return match, true
}

// yields tells whether v gives its row to the waiting s: its reader is slow, or
// its class is less urgent.
func (m *Machine) yields(v, s *seq) bool {
	cfg := &m.cfg.Preemption
	return v.req.paused || cfg.Enabled && int(v.key.Class)-int(s.key.Class) >= cfg.MinPriorityGap && v.yielded < cfg.MaxPerRequest
}

// yield preempts one running sequence for a waiting one: a paused one, else the
// least urgent that yields.
func (m *Machine) yield(e *engine, s *seq) bool {
	var least *seq
	for i := len(e.running) - 1; i >= 0; i-- {
		v := e.running[i]
		if v.req.paused {
			m.preempt(v)
			return true
		}
		if least == nil && m.yields(v, s) {
			least = v
		}
	}
	if least == nil {
		return false
	}
	least.yielded++
	m.preempt(least)
	return true
}

// preempt takes the row from a sequence that is not in flight. What it had
// computed stays as idle KV until the row is overwritten, so that it may find
// its own prefix again.
func (m *Machine) preempt(v *seq) {
	e := v.req.engine
	e.running = slices.DeleteFunc(e.running, func(o *seq) bool { return o == v })
	e.owed -= v.gap()
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
