package kernel

import (
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// device is a set of cores and a memory; at most one step is in flight on it.
type device struct {
	spec ieg.ResourceSpec
	free int64
}

// flight is the step that an engine is running.
type flight struct {
	active    bool
	step      ieg.StepID
	started   ieg.Time
	limit     ieg.Time
	predicted time.Duration
	grant     int32
	halted    bool
	aborted   bool
	load      cost.Step
	work      []flying
}

// flying is the part of one sequence in a flight.
type flying struct {
	seq *seq
	n   int32
}

// engine is a model on a device, through all its incarnations.
type engine struct {
	id     ieg.EngineID
	model  string
	device string
	need   int64
	state  ieg.EngineState
	reason string
	final  bool
	info   ieg.EngineInfo

	pool    *kv.Pool
	profile cost.Profile
	waiting sched.Queue
	running []*seq // in the order of their keys
	seqs    map[ieg.SeqID]*seq

	batch  ieg.Batch
	flight flight
	drop   []ieg.SeqID
	served time.Duration // device time, for taking turns
	steps  int64
	young  int // steps of this incarnation
	failed int // failed steps in a row
	last   ieg.Time
	// rent is what a cell of idle KV has cost so far, in seconds, if it was
	// there from the start of this incarnation (unified layout).
	rent    float64
	closing bool
	tried   bool // in this schedule
	// expect is the learnt number of output tokens per class, 0 if none.
	expect [ieg.NumClasses]float64
}

// promptMax is the longest prompt that leaves room for one token.
func (e *engine) promptMax(k ieg.Kind) int32 {
	if k == ieg.Embed {
		return min(e.info.SlotTokens, e.info.StepTokens)
	}
	return min(e.info.SlotTokens, e.info.Cells) - 1
}

// hasWork tells whether a step could do something.
func (e *engine) hasWork() bool {
	if e.waiting.Len() > 0 {
		return true
	}
	for _, s := range e.running {
		if s.ready() {
			return true
		}
	}
	return false
}

// top is the most urgent key with work.
func (e *engine) top() sched.Key {
	best := sched.Key{Class: ieg.NumClasses}
	if e.waiting.Len() > 0 {
		best = e.waiting.At(0)
	}
	for _, s := range e.running {
		if s.ready() && s.key.Compare(best) < 0 {
			return s.key
		}
	}
	return best
}

func (m *Machine) deviceUp(ev DeviceUp) {
	for _, d := range m.devices {
		if d.spec.ID == ev.Spec.ID {
			d.spec, d.free = ev.Spec, ev.Free
			return
		}
	}
	m.devices = append(m.devices, &device{spec: ev.Spec, free: ev.Free})
}

func (m *Machine) refuse(id ieg.EngineID, err error) {
	m.ready.Refusals = append(m.ready.Refusals, Refusal{Engine: id, Err: err})
}

// load admits an engine by memory: what is loaded is charged to its device.
func (m *Machine) load(ev LoadEngine) {
	if m.engine(ev.Engine) != nil {
		panic(fmt.Sprintf("kernel: engine %d is loaded twice", ev.Engine))
	}
	i := slices.IndexFunc(m.devices, func(d *device) bool { return d.spec.ID == ev.Device })
	if i < 0 {
		m.refuse(ev.Engine, fmt.Errorf("%w: there is no device %q; see ieg devices", ieg.ErrUnsupported, ev.Device))
		return
	}
	left := m.devices[i].free
	for _, e := range m.engines {
		if e.device == ev.Device {
			left -= e.need
		}
		if e.model == ev.Model && e.device == ev.Device && !e.final {
			m.refuse(ev.Engine, fmt.Errorf("%w: %q is already loaded on %s", ieg.ErrUnsupported, ev.Model, ev.Device))
			return
		}
	}
	if ev.Need > left {
		m.refuse(ev.Engine, fmt.Errorf("%w: %q needs %d MB on %s, %d MB are free; unload a model or give it less context",
			ieg.ErrOutOfMemory, ev.Model, ev.Need/1e6, ev.Device, max(left, 0)/1e6))
		return
	}
	m.engines = append(m.engines, &engine{
		id: ev.Engine, model: ev.Model, device: ev.Device, need: ev.Need,
		state: ieg.EngineLoading, seqs: map[ieg.SeqID]*seq{},
	})
	m.engines[len(m.engines)-1].profile.Prior(m.cfg.Prior)
	m.ready.Loads = append(m.ready.Loads, ev.Engine)
}

func (m *Machine) unload(ev UnloadEngine) {
	e := m.engine(ev.Engine)
	if e == nil {
		m.refuse(ev.Engine, fmt.Errorf("%w: engine %d", ieg.ErrNoModel, ev.Engine))
		return
	}
	e.state, e.closing = ieg.EngineClosing, true
	if ev.Force {
		m.failAll(e, fmt.Errorf("%w: %q was unloaded", ieg.ErrNoModel, e.model))
	}
}

// failAll ends every request of an engine.
func (m *Machine) failAll(e *engine, err error) {
	for _, r := range slices.Clone(m.order) {
		if r.engine == e {
			m.end(r, ieg.StopError, err)
		}
	}
}

func (m *Machine) engineReady(info ieg.EngineInfo) {
	e := m.engine(info.ID)
	if e == nil || e.closing {
		return
	}
	if e.state == ieg.EngineUp {
		panic(fmt.Sprintf("kernel: engine %d is ready twice without being lost", info.ID))
	}
	e.state, e.reason, e.info, e.young, e.failed = ieg.EngineUp, "", info, 0, 0
	e.pool, e.rent = kv.NewPool(info), 0
	if sum := info.WeightBytes + info.KVBytes + info.ComputeBytes; sum > 0 {
		e.need = sum
	}
	for i := 0; i < e.waiting.Len(); i++ {
		s := e.seqs[e.waiting.At(i).Seq]
		if most := e.promptMax(s.req.spec.Kind); int32(len(s.tokens)) > most {
			m.end(s.req, ieg.StopError, fmt.Errorf("%w: the prompt has %d tokens, %q takes %d", ieg.ErrContextLength, len(s.tokens), e.model, most))
			i = -1
		}
	}
}

// engineLost takes back what the incarnation held: its sequences wait again
// with all their known tokens, or fail if they saw too many deaths.
func (m *Machine) engineLost(ev EngineLost) {
	e := m.engine(ev.Engine)
	if e == nil || e.state == ieg.EngineUp && ev.Epoch != e.info.Epoch {
		return
	}
	if e.closing {
		m.failAll(e, fmt.Errorf("%w: %q was unloaded", ieg.ErrNoModel, e.model))
		m.engines = slices.DeleteFunc(m.engines, func(o *engine) bool { return o == e })
		return
	}
	if e.state == ieg.EngineUp {
		m.totals.EngineDeaths++
	}
	e.state, e.reason, e.final = ieg.EngineDown, ev.Reason, ev.Final
	e.flight = flight{work: e.flight.work[:0]}
	e.drop = e.drop[:0]
	hit := slices.Clone(e.running)
	e.running = e.running[:0]
	for _, s := range hit {
		s.slot, s.inFlight = ieg.NoSlot, false
		m.requeue(s, false)
	}
	e.pool = nil
	m.mourn(hit, ev.Reason)
	if ev.Final {
		m.failAll(e, fmt.Errorf("%w: %q could not be loaded: %s", ieg.ErrEngineLost, e.model, ev.Reason))
	}
}

// mourn counts a death once per request and fails those that saw too many.
func (m *Machine) mourn(hit []*seq, reason string) {
	seen := map[*request]bool{}
	for _, s := range hit {
		r := s.req
		if seen[r] {
			continue
		}
		seen[r] = true
		if r.deaths++; r.deaths >= DeathsMax {
			m.end(r, ieg.StopError, fmt.Errorf("%w %d times while it ran this request: %s", ieg.ErrEngineLost, r.deaths, reason))
		}
	}
}

// requeue makes a sequence that holds no row wait again, all to compute.
func (m *Machine) requeue(s *seq, preempted bool) {
	s.state, s.computed, s.await = seqWaiting, 0, ieg.NoSlot
	s.req.engine.waiting.Push(s.key)
	m.relive(s, preempted)
}

// interrupt ends a grant: the engine has something new to consider. An engine
// on the same device that waits for its turn counts too.
func (m *Machine) interrupt(e *engine) {
	for _, o := range m.engines {
		if o.device == e.device && o.flight.active && o.flight.grant > 0 && !o.flight.halted && !o.flight.aborted {
			o.flight.halted = true
			m.ready.Halts = append(m.ready.Halts, StepRef{o.id, o.info.Epoch, o.flight.step})
		}
	}
}

// abort ends a step early when a cancelled sequence would keep it running.
func (m *Machine) abort(e *engine, reason ieg.StopReason) {
	f := &e.flight
	if f.aborted {
		return
	}
	if end := f.started.Add(f.predicted); !reason.Success() && end.Sub(m.now) > AbortAfter {
		f.aborted = true
		m.ready.Aborts = append(m.ready.Aborts, StepRef{e.id, e.info.Epoch, f.step})
		return
	}
	m.interrupt(e)
}
