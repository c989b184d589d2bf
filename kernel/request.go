package kernel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ieg"
	"ieg/kernel/graph"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// request is a live request.
type request struct {
	spec   *ieg.Request
	engine *engine
	seqs   []*seq
	live   int // sequences that are not finished
	paused bool
	deaths int
	times  ieg.RequestTimes
	usage  ieg.Usage
	graph  *graph.Graph
	// decisions of nodes that are not ready yet.
	decisions []decision
	until     ieg.Time // deadline, or the graph's timeout
	itlMax    ieg.Time
	tiers     [ieg.NumTiers]int32 // cached tokens by where they came from
	notes     []string            // on KV, for explain
}

// seqState is the state of a sequence.
type seqState uint8

const (
	seqWaiting seqState = iota
	seqRunning
	seqFinished
)

// seq is one token stream of a request.
type seq struct {
	id       ieg.SeqID
	req      *request
	choice   int32
	key      sched.Key
	state    seqState
	tokens   []ieg.Token // known: prompt, then generated
	computed int32
	slot     ieg.Slot
	inFlight bool
	// await is the row that is computing tokens this sequence shares, up to
	// awaitN; NoSlot if it waits for nothing but a slot.
	await     ieg.Slot
	awaitSeq  ieg.SeqID
	awaitN    int32
	cached    int32
	preempted int // times that it lost its row
	yielded   int // of them to a more urgent class
	// lift is the key of the most urgent sequence that awaits what this one
	// computes, if lifted.
	lift     sched.Key
	lifted   bool
	counted  bool // its prompt is in the totals
	begun    bool // its node runs since it was last placed
	decoding bool // its decode node runs
	last     ieg.Time
	busy     time.Duration // device time not yet charged to a node
	// root and chain name its text; wants are the blocks below the device that
	// it would use, while it waits.
	root  ieg.BlockHash
	chain []ieg.BlockHash
	wants []*kv.Known
	fetch fetching
	from  [ieg.NumTiers]int32 // its cached tokens at its last admission, by tier
	rest  brought             // what is still to be copied to its row
}

func (s *seq) generated() int32 { return int32(len(s.tokens) - len(s.req.spec.Prompt)) }
func (s *seq) gap() int32       { return int32(len(s.tokens)) - s.computed }

// ready tells whether the sequence may advance now.
func (s *seq) ready() bool {
	return s.state == seqRunning && !s.req.paused && s.gap() > 0 && s.rest.n == 0
}

// brings tells whether a part of its row is still to be copied.
func (s *seq) brings() bool { return s.state == seqRunning && s.rest.n > 0 }

func (m *Machine) arrive(spec *ieg.Request) {
	m.totals.Requests++
	if m.reqs[spec.ID] != nil || spec.N < 1 || len(spec.Prompt) == 0 {
		panic(fmt.Sprintf("kernel: request %d: duplicate, or without choices or prompt", spec.ID))
	}
	r := &request{spec: spec, live: spec.N}
	r.times = ieg.RequestTimes{Received: spec.Received, Arrived: m.now}
	r.usage.Prompt = int32(len(spec.Prompt))
	promised := m.promise(spec)
	if promised != nil {
		defer m.kv.host.Want(promised, -1)
	}
	if err := m.admissible(r); err != nil {
		m.reject(r, err)
		return
	}
	e := r.engine
	m.reqs[spec.ID] = r
	m.order = append(m.order, r)
	for i := range spec.N {
		m.nextSeq++
		s := &seq{id: m.nextSeq, req: r, choice: int32(i), slot: ieg.NoSlot, await: ieg.NoSlot}
		s.tokens = slices.Grow(slices.Clone(spec.Prompt), int(min(spec.MaxTokens, 1024)))
		s.key = sched.Key{Class: spec.Class, Deadline: spec.Deadline, Type: ieg.ComputeNode, Arrival: m.now, Seq: s.id}
		r.seqs = append(r.seqs, s)
		e.waiting.Push(s.key)
		e.seqs[s.id] = s
		e.ahead += int64(s.gap())
		m.want(e, s)
		m.ready.Admits = append(m.ready.Admits, Admit{Request: spec.ID, Choice: s.choice, Seq: s.id})
	}
	m.interrupt(e)
}

// reject refuses a request at the door.
func (m *Machine) reject(r *request, err error) {
	m.totals.Rejected++
	f := ieg.Finish{Request: r.spec.ID, Choice: ieg.AllChoices, Reason: ieg.StopError, Err: err, Times: r.times}
	if r.engine != nil && errors.Is(err, ieg.ErrBusy) {
		f.RetryAfter = m.backlog(r.engine)
	}
	m.ready.Finishes = append(m.ready.Finishes, f)
}

// admissible builds and places the request's graph, or says why it can't be
// taken.
func (m *Machine) admissible(r *request) error {
	if m.draining {
		return ieg.ErrDraining
	}
	known := m.known(r.spec.Model)
	if known == nil {
		return fmt.Errorf("%w: %q", ieg.ErrNoModel, r.spec.Model)
	}
	if m.crowded(r) {
		r.engine = known // for the time to try again
		return known.busy()
	}
	if err := m.bear(r, known); err != nil {
		return err
	}
	switch e := r.engine; {
	case e.waiting.Len()+r.spec.N > m.cfg.WaitingMax:
		return e.busy()
	case e.pool != nil && int32(len(r.spec.Prompt)) > e.promptMax(r.spec.Kind):
		return fmt.Errorf("%w: the prompt has %d tokens, %q takes %d", ieg.ErrContextLength, len(r.spec.Prompt), e.model, e.promptMax(r.spec.Kind))
	}
	return nil
}

// crowded tells that no engine of the model has room in its queue: the request
// is refused before any work is spent on it.
func (m *Machine) crowded(r *request) bool {
	for _, e := range m.engines {
		if e.model == r.spec.Model && e.usable() && e.waiting.Len()+r.spec.N <= m.cfg.WaitingMax {
			return false
		}
	}
	return true
}

func (e *engine) busy() error {
	return fmt.Errorf("%w: %d sequences are waiting for %q", ieg.ErrBusy, e.waiting.Len(), e.model)
}

// backlog is the time of the uncomputed known tokens ahead of a new request.
func (m *Machine) backlog(e *engine) time.Duration {
	return sched.Seconds(e.profile.Speed().PrefillSeconds(0, int32(min(e.ahead, math.MaxInt32)), e.info.StepTokens))
}

func (m *Machine) cancel(id ieg.RequestID, reason ieg.StopReason, why string) {
	r := m.reqs[id]
	if r == nil {
		return
	}
	err := ieg.ErrCancelled
	if reason == ieg.StopDeadline {
		err = ieg.ErrDeadline
	}
	if why != "" {
		err = fmt.Errorf("%w: %s", err, why)
	}
	m.end(r, reason, err)
}

// end finishes all sequences of a request with the same reason.
func (m *Machine) end(r *request, reason ieg.StopReason, err error) {
	for _, s := range r.seqs {
		if s.state != seqFinished {
			m.finish(s, reason, err)
		}
	}
}

// finish ends one sequence and, with the last one, its request.
func (m *Machine) finish(s *seq, reason ieg.StopReason, err error) {
	r, e := s.req, s.req.engine
	if s.state == seqWaiting {
		e.waiting.Remove(s.key)
		m.forgetWaits(s)
	}
	running := s.state == seqRunning
	s.state = seqFinished
	delete(e.seqs, s.id)
	e.ahead -= int64(s.gap())
	if running {
		e.running = slices.DeleteFunc(e.running, func(o *seq) bool { return o == s })
		e.drop = append(e.drop, s.id)
		switch {
		case !s.inFlight:
			m.unadmit(e, s)
			m.vacate(s)
		case reason.Success():
			m.interrupt(e)
		default:
			m.release(e)
		}
	}
	m.settle(s, reason)
	m.ready.Finishes = append(m.ready.Finishes, ieg.Finish{Request: r.spec.ID, Choice: s.choice, Reason: reason, Err: err, Usage: r.usage, Times: r.times})
	if r.live--; r.live > 0 {
		return
	}
	switch {
	case reason.Success():
		m.totals.Finished++
	case reason == ieg.StopCancel:
		m.totals.Cancelled++
	default:
		m.totals.Failed++
	}
	m.ready.Finishes = append(m.ready.Finishes, ieg.Finish{Request: r.spec.ID, Choice: ieg.AllChoices, Reason: reason, Err: err, Usage: r.usage, Times: r.times})
	delete(m.reqs, r.spec.ID)
	m.order = slices.DeleteFunc(m.order, func(o *request) bool { return o == r })
	m.bury(r, reason, err)
}

// vacate gives up the sequence's row; its tokens stay there for their prefix.
func (m *Machine) vacate(s *seq) {
	e := s.req.engine
	if s.rest.inside() {
		e.pool.Doubt(s.slot)
	}
	m.letGo(&s.rest)
	if s.slot != ieg.NoSlot {
		e.pool.Release(s.slot, m.now, e.rent)
		s.slot, e.blocked, e.saveBlocked, e.saveWaits = ieg.NoSlot, 0, false, false
	}
}

func (m *Machine) pause(id ieg.RequestID, on bool) {
	if r := m.reqs[id]; r != nil && r.paused != on {
		r.paused = on
		r.engine.blocked = 0
		m.interrupt(r.engine)
	}
}
