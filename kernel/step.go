package kernel

import (
	"slices"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/sched"
)

// schedule starts a step on each device that is free and has work. Engines
// that share a device take turns: the one that had less of the device's time,
// charged by class, since both have had work.
func (m *Machine) schedule() {
	for _, e := range m.engines {
		e.tried = false
	}
	for {
		var best *engine
		for _, e := range m.engines {
			if e.tried || !m.runnable(e) || m.busy(e) {
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

// runnable tells whether the engine could take a step. One that had no work
// joins the others where they are: it has not saved up its turns.
func (m *Machine) runnable(e *engine) bool {
	if e.pool == nil || e.doomed {
		return false
	}
	if !e.hasWork() {
		e.idle = !e.flight.active
		return m.savable(e) && !m.contended(e)
	}
	if e.idle {
		e.idle, e.served = false, max(e.served, e.dev.turn)
	}
	return true
}

// contended tells whether another engine has work for the same device.
func (m *Machine) contended(e *engine) bool {
	for _, o := range m.engines {
		if o != e && o.device == e.device && o.pool != nil && o.hasWork() {
			return true
		}
	}
	return false
}

func before(a, b *engine) bool {
	if a.served != b.served {
		return a.served < b.served
	}
	return a.top().Class < b.top().Class
}

// busy tells whether a step is in flight on the engine's device; a grant that
// another engine was given there when nobody else had work is ended.
func (m *Machine) busy(e *engine) bool {
	for _, o := range m.engines {
		if o.device == e.device && o.flight.active {
			if o != e && o.flight.grant > SharedGrant {
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
	f.copying = 0

	m.collectRent(e)
	m.carryOn(e)
	m.admit(e)
	m.ensureCells(e)
	if s := e.alone(); s != nil {
		m.work(e, s, s.gap())
	} else if s, n := e.tile(); s != nil {
		m.work(e, s, n)
	} else {
		d, class := m.decode(e)
		m.chunks(e, d, class)
	}
	m.down(e)
	if len(b.Work) == 0 && len(b.New)+len(b.Ops) == 0 {
		return
	}
	m.launch(e)
}

// decodes tells whether the sequence would advance by one token.
func (s *seq) decodes() bool {
	return s.ready() && s.gap() == 1 && s.req.spec.Kind == ieg.Generate
}

// prompt tells whether the sequence has more to compute than its last token.
func (s *seq) prompt() bool {
	return s.ready() && (s.gap() > 1 || s.req.spec.Kind == ieg.Embed)
}

// firstPrompt is the sequence whose prompt is computed first, nil if none.
func (e *engine) firstPrompt() *seq {
	var first *seq
	for _, s := range e.running {
		if s.prompt() && (first == nil || s.effective().Compare(*first.effective()) < 0) {
			first = s
		}
	}
	return first
}

// alone is an embedding that fits beside no decodes and is due: every other
// step is its own.
func (e *engine) alone() *seq {
	s := e.firstPrompt()
	if s == nil || s.req.spec.Kind != ieg.Embed || e.solo {
		e.solo = false
		return nil
	}
	if d, _ := e.split(); s.gap()+int32(d) <= e.info.StepTokens {
		return nil
	}
	e.solo = true
	return s
}

// tile is a chunk of a long prompt that runs without the decodes, because the
// engine computes whole tiles far cheaper and a tile shared with decodes is
// none. Afterwards the streams are owed their share of the time; until it is
// paid there is no next one. Without decodes prompts need no turns.
func (e *engine) tile() (*seq, int32) {
	e.tiled = false
	s := e.firstPrompt()
	if s == nil || !e.long(s) {
		return nil, 0
	}
	if !slices.ContainsFunc(e.running, (*seq).decodes) {
		e.due = 0
		return nil, 0
	}
	n := e.piece(s)
	if e.info.Layout == ieg.Unified {
		n = min(n, e.pool.Free())
	}
	if e.due > 0 || n <= 0 {
		return nil, 0
	}
	e.tiled = true
	return s, n
}

// long tells whether the sequence's prompt goes by tiles.
func (e *engine) long(s *seq) bool {
	return e.info.Tile > 1 && s.gap() >= e.info.Tile && s.req.spec.Kind == ieg.Generate
}

// piece is the next part of a long prompt: a tile, and with the first one what
// makes the rest whole tiles. A part of a tile is dear by itself and cheap in a
// pass with a whole one, cheapest where the context is short.
func (e *engine) piece(s *seq) int32 {
	if n := e.info.Tile + s.gap()%e.info.Tile; n <= e.info.StepTokens {
		return n
	}
	return e.info.Tile
}

// pay settles what streams are owed with the step that ended.
func (e *engine) pay(p sched.Pace, took time.Duration) {
	l := &e.flight.load
	switch {
	case e.tiled:
		e.due += sched.Share(p.StreamShare(e.split()), took)
		e.tiled = false
	case l.Seqs > 0:
		decode := sched.Seconds(e.profile.Speed().Step(cost.Step{Seqs: l.Seqs, KVTokens: l.KVTokens}))
		e.due = max(e.due-min(decode, took), 0)
	}
}

// split counts the sequences that decode and those with a prompt to compute.
func (e *engine) split() (streams, prompts int) {
	for _, s := range e.running {
		switch {
		case s.decodes():
			streams++
		case s.prompt():
			prompts++
		}
	}
	return streams, prompts
}

// decode adds all sequences that advance by one token and returns their number
// and most urgent class.
func (m *Machine) decode(e *engine) (d int, class ieg.Class) {
	class = ieg.NumClasses - 1
	for _, s := range e.running {
		if s.decodes() {
			d, class = d+1, min(class, s.key.Class)
			m.work(e, s, 1)
		}
	}
	return d, class
}

// ensureCells makes room in the unified layout for the least that the step must
// do: a cell per decode and a chunk of the first prompt. Idle rows give way,
// then paused and the least urgent sequences; the last one left that still has
// no room has outgrown the engine.
func (m *Machine) ensureCells(e *engine) {
	if e.info.Layout == ieg.Streams {
		return
	}
	for e.pool.Free() < e.least() {
		if m.evict(e, ieg.NoSlot) {
			e.blocked = 0
			continue
		}
		if len(e.running) == 1 {
			m.finish(e.running[0], ieg.StopLength, nil)
			m.admit(e)
			continue
		}
		m.preempt(e.victim())
	}
}

// least is the number of cells that a step can't do without.
func (e *engine) least() (n int32) {
	for _, s := range e.running {
		if s.decodes() {
			n++
		}
	}
	s := e.firstPrompt()
	switch {
	case s == nil:
		return n
	case s.req.spec.Kind == ieg.Embed:
		return n + s.gap()
	}
	return n + min(s.gap(), sched.ChunkTokensMin)
}

// victim gives way for lack of cells: a paused sequence, else the least urgent.
func (e *engine) victim() *seq {
	for i := len(e.running) - 1; i >= 0; i-- {
		if e.running[i].req.paused {
			return e.running[i]
		}
	}
	return e.running[len(e.running)-1]
}

// chunks fills the step with prompt tokens, most urgent first.
func (m *Machine) chunks(e *engine, d int, class ieg.Class) {
	e.prompts = e.prompts[:0]
	total := int32(0)
	for _, s := range e.running {
		if s.prompt() && !(d > 0 && e.long(s)) {
			e.prompts = append(e.prompts, s)
			total += s.gap()
		}
	}
	if len(e.prompts) == 0 {
		return
	}
	slices.SortFunc(e.prompts, func(a, b *seq) int { return a.effective().Compare(*b.effective()) })
	left, room := m.chunk(e, d, class, total)
	for i, s := range e.prompts {
		n := min(s.gap(), left)
		if e.long(s) && left >= e.info.Tile {
			n = e.pieces(s, left, room)
		}
		if s.req.spec.Kind == ieg.Embed && n < s.gap() {
			// It can't be split: the first one may exceed the chunk.
			if i > 0 || s.gap() > room {
				continue
			}
			n, left = s.gap(), s.gap()
		}
		if n <= 0 {
			break
		}
		m.work(e, s, n)
		left, room = left-n, room-n
	}
	clear(e.prompts)
}

// pieces is as much of a long prompt as a chunk takes in whole pieces; the first
// one may exceed the chunk, but not the room.
func (e *engine) pieces(s *seq, chunk, room int32) int32 {
	n, tile := e.piece(s), e.info.Tile
	if n > room {
		return chunk / tile * tile
	}
	return min(n+max(chunk-n, 0)/tile*tile, s.gap())
}

// chunk is the number of prompt tokens for a step of d decodes, of total that
// could be computed, and the most that there is room for.
func (m *Machine) chunk(e *engine, d int, class ieg.Class, total int32) (n, room int32) {
	l := sched.Load{Step: e.flight.load, Class: class, Past: e.prompts[0].computed, UBatch: int(e.pass())}
	room = e.info.StepTokens - int32(d)
	n = int32(m.cfg.Pace.Chunk(e.profile.Speed(), l, int(room)))
	if e.info.Layout == ieg.Streams {
		return n, room
	}
	for e.pool.Free()-int32(d) < min(n, total) {
		if !m.evict(e, ieg.NoSlot) {
			break
		}
		e.blocked = 0
	}
	free := e.pool.Free() - int32(d)
	return min(n, free), min(room, free)
}

// pass is the number of tokens in whose multiples prompts are computed when no
// stream runs.
func (e *engine) pass() int32 {
	if e.info.Tile > 1 {
		return e.info.Tile
	}
	return e.info.UBatch
}

func (m *Machine) work(e *engine, s *seq, n int32) {
	e.batch.Work = append(e.batch.Work, ieg.Work{
		Seq: s.id, Slot: s.slot, Start: s.computed, N: n,
		Sample: n == s.gap() && s.req.spec.Kind == ieg.Generate,
	})
	e.flight.work = append(e.flight.work, flying{seq: s, n: n})
	e.load(s.computed, n)
	s.inFlight = true
	if !e.pool.Row(s.slot).Unproven {
		m.count(s) // else once it is proven
	}
	m.started(s)
}

// count counts a sequence's prompt with its first work, and what it had found
// of it by then: whoever is given up before that has used nothing.
func (m *Machine) count(s *seq) {
	if s.counted {
		return
	}
	s.counted, s.cached = true, s.computed
	m.totals.PromptTokens += int64(len(s.req.spec.Prompt))
	m.totals.CachedTokens += int64(s.cached)
	if s.choice == 0 {
		s.req.usage.Cached = s.cached
	}
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
	b.Grant = m.grant(e)
	f.active, f.halted, f.aborted, f.over = true, false, false, false
	f.step, f.grant, f.abortAt = b.Step, b.Grant, ieg.Never
	e.dev.turn = e.served
	m.clock(e)
	m.ready.Batches = append(m.ready.Batches, b)
}

// clock starts the step's own clock.
func (m *Machine) clock(e *engine) {
	f := &e.flight
	f.started = m.now
	f.predicted = sched.Seconds(e.profile.Speed().Step(f.load) + f.copying)
	floor := HangFloor
	if e.young < 3 {
		floor = HangFirst
	}
	f.limit = m.now.Add(floor + HangFactor*f.predicted)
}

// grant is the number of repeats that need no decision: all work is the newest
// token of its sequence, nobody can be admitted before somebody stops, and
// every row has room.
func (m *Machine) grant(e *engine) int32 {
	g, d := m.cfg.GrantSteps, int32(len(e.batch.Work))
	if d == 0 || e.awaits > 0 || g == 0 || e.clear != ieg.NoSlot || slices.ContainsFunc(e.running, (*seq).brings) {
		return 0
	}
	for i := range e.batch.Work {
		w := &e.batch.Work[i]
		if !w.Sample || w.N != 1 {
			return 0
		}
		g = min(g, e.info.SlotTokens-w.Start-w.N)
	}
	if e.info.Layout == ieg.Unified {
		g = min(g, (e.pool.Free()-d)/d)
	}
	if e.due > 0 {
		step := max(sched.Seconds(e.profile.Speed().Step(e.flight.load)), 1)
		if s := e.firstPrompt(); s != nil && e.long(s) {
			g = min(g, int32(e.due/step))
		}
	}
	if m.contended(e) || m.savable(e) {
		g = min(g, SharedGrant)
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
		s := e.pool.Oldest(ieg.NoSlot)
		if s == ieg.NoSlot || e.rent-e.pool.Row(s).Rent < price {
			return
		}
		m.evict(e, ieg.NoSlot)
		e.blocked = 0
	}
}

// settleStep folds the measured time of a step into the engine's pace.
func (e *engine) settleStep(p sched.Pace, took time.Duration) {
	e.pay(p, took)
	e.profile.Observe(e.flight.load, took.Seconds())
	e.served += sched.Charge(e.flight.class(), took)
	e.steps++
	e.young++
	if e.info.Layout == ieg.Unified {
		e.rent += e.profile.Speed().KVToken * float64(e.flight.load.Seqs)
	}
}
