package meter

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/cost"
)

// Config says what is measured against.
type Config struct {
	// SLO holds the bounds of each class.
	SLO [ieg.NumClasses]SLO
}

// SLO bounds the times of a request; 0 is no bound. An embedding has no first
// token: its end-to-end time stands for TTFT.
type SLO struct {
	TTFT, TPOT, E2E time.Duration
}

// DefaultConfig has the bounds of the specification: P0 TTFT < 200 ms and
// TPOT < 20 ms, P1 end to end < 5 s, P2 to succeed.
func DefaultConfig() Config {
	var c Config
	c.SLO[ieg.P0] = SLO{TTFT: p0TTFT, TPOT: p0TPOT}
	c.SLO[ieg.P1] = SLO{E2E: p1E2E}
	return c
}

// Validate refuses negative bounds.
func (c Config) Validate() error {
	for i, s := range c.SLO {
		if s.TTFT < 0 || s.TPOT < 0 || s.E2E < 0 {
			return fmt.Errorf("meter: the SLO of %s has a negative bound; 0 is none", ieg.Class(i))
		}
	}
	return nil
}

// Meter folds events. It is not safe for concurrent use.
type Meter struct {
	cfg      Config
	now      ieg.Time
	engines  []*engine
	devices  map[string]ieg.ResourceSpec
	requests map[ieg.RequestID]*request
	seqs     map[ieg.SeqID]*seq
	classes  [ieg.NumClasses]Class
	rejected [NumReasons]uint64
	running  int            // requests with a running sequence
	unplaced map[string]int // model → sequences that were never scheduled
}

// engine is a series with what is needed to keep it.
type engine struct {
	Engine
	info      ieg.EngineInfo
	peak      ieg.ResourceSpec
	unloading bool
	gone      bool // unloaded for good
	running   []*seq
	copies    copies
}

// request is a live request.
type request struct {
	spec    *ieg.Request
	engine  *engine  // nil until scheduled
	running int      // its sequences that hold a row
	from    ieg.Time // the door had it; without a door, it arrived
	first   ieg.Time
	seqs    []*seq
}

// seq is a live sequence.
type seq struct {
	id        ieg.SeqID
	req       *request
	engine    *engine // nil until scheduled
	scheduled bool    // its first work was sent
	fresh     bool    // its row's content is told by its next work
	row       int     // index in engine.running, -1 if it doesn't run
	computed  int32
	tokens    int32
	last      ieg.Time
}

// New returns a meter that has seen nothing.
func New(cfg Config) *Meter {
	return &Meter{cfg: cfg, devices: map[string]ieg.ResourceSpec{},
		requests: map[ieg.RequestID]*request{}, seqs: map[ieg.SeqID]*seq{}, unplaced: map[string]int{}}
}

// Observe takes in one event and what the machine made of it. It keeps neither
// (of a request, the description, which is immutable).
func (m *Meter) Observe(now ieg.Time, ev kernel.Event, r *kernel.Ready) {
	m.now = now
	switch ev := ev.(type) {
	case kernel.Arrived:
		m.arrived(ev.Request)
	case kernel.DeviceUp:
		m.devices[ev.Spec.ID] = ev.Spec
		for _, e := range m.engines {
			if e.Device == ev.Spec.ID {
				e.peak = ev.Spec
			}
		}
	case kernel.LoadEngine:
		if e := m.engine(ev.Engine, true); e != nil {
			e.Model, e.Device, e.unloading, e.gone = ev.Model, ev.Device, false, false
			e.peak = m.devices[ev.Device]
		}
	case kernel.EngineReady:
		m.ready(ev.Info)
	case kernel.EngineLost:
		m.lost(ev)
	case kernel.StepDone:
		m.stepDone(ev.Done)
	}
	for _, a := range r.Admits {
		m.bind(a)
	}
	for _, e := range r.Emits {
		m.emitted(e)
	}
	for i := range r.Finishes {
		m.finished(&r.Finishes[i])
	}
	for _, id := range r.Unloads {
		if e := m.engine(id, false); e != nil {
			e.unloading = true
		}
	}
	for _, b := range r.Batches {
		m.sent(b)
	}
}

// engine finds a series; with add it begins one.
func (m *Meter) engine(id ieg.EngineID, add bool) *engine {
	for _, e := range m.engines {
		if e.ID == id {
			return e
		}
	}
	if add && len(m.engines) == MaxEngines {
		if i := slices.IndexFunc(m.engines, func(e *engine) bool { return e.gone }); i >= 0 {
			m.engines = slices.Delete(m.engines, i, i+1)
		}
	}
	if !add || len(m.engines) == MaxEngines {
		return nil
	}
	e := &engine{Engine: newEngine(id)}
	m.engines = append(m.engines, e)
	return e
}

func (m *Meter) ready(info ieg.EngineInfo) {
	e := m.engine(info.ID, true)
	if e == nil {
		return
	}
	e.info, e.Up = info, true
	e.Model, e.Slots, e.Cells = info.Model.Name, info.Slots, info.Cells
	e.KVType, e.Prefixes, e.KVToken = info.KVType, info.Prefixes, info.KVToken
	e.copies = copies{}
	if info.Device != "" {
		e.Device = info.Device
	}
	e.peak = m.devices[e.Device]
}

// lost takes the rows from all sequences of the engine.
func (m *Meter) lost(ev kernel.EngineLost) {
	e := m.engine(ev.Engine, false)
	if e == nil || e.Up && ev.Epoch != e.info.Epoch && !ev.Final {
		return // an older incarnation, whose loss is known
	}
	if e.Up && !e.unloading {
		e.Deaths++
	}
	e.Up, e.gone = false, e.unloading && ev.Final
	for len(e.running) > 0 {
		m.stop(e.running[len(e.running)-1])
	}
}

func (m *Meter) arrived(spec *ieg.Request) {
	m.classes[spec.Class].Arrived++
	r := &request{spec: spec, from: spec.Received}
	if r.from == 0 {
		r.from = m.now
	}
	m.requests[spec.ID] = r
}

func (m *Meter) bind(a kernel.Admit) {
	r := m.requests[a.Request]
	if r == nil {
		return
	}
	s := &seq{id: a.Seq, req: r, row: -1}
	r.seqs = append(r.seqs, s)
	m.seqs[a.Seq] = s
	m.unplaced[r.spec.Model]++
}

// sent follows a batch: who gives its row up, who gets one, what is computed.
func (m *Meter) sent(b *ieg.Batch) {
	e := m.engine(b.Engine, true)
	if e == nil {
		return
	}
	for _, id := range b.Drop {
		if s := m.seqs[id]; s != nil && s.row >= 0 {
			e.Preemptions++
			m.stop(s)
		}
	}
	for i := range b.New {
		if s := m.seqs[b.New[i].Seq]; s != nil {
			m.start(e, s)
		}
	}
	e.copies.sent(b)
	for i := range b.Work {
		w := &b.Work[i]
		s := m.seqs[w.Seq]
		if s == nil {
			continue
		}
		brought, sure := int32(0), true
		if s.fresh {
			s.fresh = false
			e.KVTokens += int64(w.Start - s.computed)
			s.computed = w.Start
			brought, sure = e.copies.take(w.Slot)
			brought = min(brought, w.Start)
		}
		switch {
		case s.scheduled:
		case !sure:
			e.copies.await(s, w, brought)
		default:
			e.scheduled(s, w.Start, brought)
		}
	}
}

// scheduled counts a sequence's prompt when its first work is sent, of which
// cached tokens need none; brought of these came from below the device.
func (e *engine) scheduled(s *seq, cached, brought int32) {
	s.scheduled = true
	prompt := len(s.req.spec.Prompt)
	e.PromptTokens += uint64(prompt)
	e.CachedTokens += uint64(cached)
	e.BroughtTokens += uint64(brought)
	e.ComputedSize.add(float64(prompt - int(cached)))
}

// start gives a row of e to a sequence.
func (m *Meter) start(e *engine, s *seq) {
	m.stop(s)
	r := s.req
	if s.engine == nil {
		m.unplaced[r.spec.Model]--
	} else {
		s.engine.Waiting--
	}
	if r.engine == nil {
		r.engine = e
	}
	s.engine, s.fresh, s.computed = e, true, 0
	s.row = len(e.running)
	e.running = append(e.running, s)
	e.Running++
	if r.running++; r.running == 1 {
		m.running++
	}
}

// stop takes the row from a sequence that has one; it waits at its engine.
func (m *Meter) stop(s *seq) {
	if s.row < 0 {
		return
	}
	e, r := s.engine, s.req
	last := e.running[len(e.running)-1]
	e.running[s.row], last.row = last, s.row
	e.running = e.running[:len(e.running)-1]
	s.row = -1
	e.Running--
	e.Waiting++
	e.KVTokens -= int64(s.computed)
	s.computed = 0
	if r.running--; r.running == 0 {
		m.running--
	}
}

// forget ends a sequence.
func (m *Meter) forget(s *seq) {
	m.stop(s)
	if s.engine == nil {
		m.unplaced[s.req.spec.Model]--
	} else {
		s.engine.Waiting--
	}
	delete(m.seqs, s.id)
}

func (m *Meter) stepDone(d *ieg.StepDone) {
	e := m.engine(d.Engine, false)
	if e == nil || !e.Up || d.Epoch != e.info.Epoch {
		return
	}
	e.copied(d)
	switch d.Outcome {
	case ieg.StepFailed:
		e.StepsFailed++
		return
	case ieg.StepAborted:
		e.StepsAborted++
		return
	}
	e.Steps++
	tokens, moved := 0, 0.0
	for i := range d.Results {
		res := &d.Results[i]
		tokens += int(res.Computed)
		s := m.seqs[res.Seq]
		if s == nil || s.row < 0 || s.engine != e {
			continue
		}
		s.computed += res.Computed
		e.KVTokens += int64(res.Computed)
		moved += float64(cost.KVBytes(&e.info.Model, s.computed))
	}
	e.StepTokens.add(float64(tokens))
	e.StepTime.span(d.Took)
	e.utilise(tokens, moved, d.Took)
}

// utilise moves the averages of MFU and MBU by one step.
func (e *engine) utilise(tokens int, moved float64, took time.Duration) {
	sec := took.Seconds()
	if sec <= 0 {
		return
	}
	if e.peak.Compute.FP16 > 0 {
		now := 2 * float64(e.info.Model.ActiveParams) * float64(tokens) / sec / e.peak.Compute.FP16
		e.MFU = average(e.MFU, min(now, 1))
	}
	if e.peak.Memory.Bandwidth > 0 {
		moved += cost.WeightsTouched(&e.info.Model, float64(tokens))
		e.MBU = average(e.MBU, min(moved/sec/e.peak.Memory.Bandwidth, 1))
	}
}

// average moves an average, which the first value begins.
func average(old, v float64) float64 {
	if old == 0 {
		return v
	}
	return old + utilWeight*(v-old)
}

func (m *Meter) emitted(em kernel.Emit) {
	if !em.Result.Sampled {
		return
	}
	s := m.seqs[em.Result.Seq]
	if s == nil || s.engine == nil {
		return
	}
	r := s.req
	lat := &s.engine.Latency[r.spec.Class]
	s.engine.Tokens++
	s.tokens++
	if r.first == 0 {
		r.first = m.now
		lat.TTFT.span(m.now.Sub(r.from))
	}
	if s.last != 0 {
		lat.ITL.span(m.now.Sub(s.last))
	}
	s.last = m.now
}

// reasonOf sorts a refusal.
func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, ieg.ErrBusy):
		return Busy
	case errors.Is(err, ieg.ErrDraining):
		return Draining
	case errors.Is(err, ieg.ErrNoModel):
		return NoModel
	case errors.Is(err, ieg.ErrContextLength):
		return ContextLength
	}
	return OtherReason
}
