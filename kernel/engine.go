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
	// turn is the device time that the engine which ran last had been given
	// when it was chosen: where an engine that was idle joins the others.
	turn time.Duration
}

// flight is the step that an engine is running.
type flight struct {
	active    bool
	step      ieg.StepID
	started   ieg.Time
	limit     ieg.Time // later than this it hangs
	abortAt   ieg.Time // later than this it is held up by a cancelled sequence
	predicted time.Duration
	grant     int32
	halted    bool
	aborted   bool
	over      bool // its last report is being taken in
	load      cost.Step
	work      []flying
	copies    []flown
	beside    bool    // it has streams, which wait for its copies
	copying   float64 // seconds that they are expected to take
}

// flying is the part of one sequence in a flight.
type flying struct {
	seq *seq
	n   int32
}

// class is the most urgent class in the flight.
func (f *flight) class() ieg.Class {
	class := ieg.NumClasses - 1
	for _, w := range f.work {
		if w.seq != nil {
			class = min(class, w.seq.key.Class)
		}
	}
	return class
}

// engine is a model on a device, through all its incarnations.
type engine struct {
	id     ieg.EngineID
	model  string
	device string
	dev    *device
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
	prompts []*seq // scratch of chunks

	batch  ieg.Batch
	flight flight
	drop   []ieg.SeqID
	served time.Duration // device time, charged by class, for taking turns
	passes sched.Passes  // of classes that wait for a row
	steps  int64
	young  int // steps of this incarnation
	failed int // failed steps in a row
	aborts int // aborted steps in a row
	last   ieg.Time
	ahead  int64 // uncomputed known tokens of all sequences
	doomed bool  // it is being killed: no step until it is ready again
	idle   bool  // it had no work when it was last looked at
	// due is the device time that running streams are owed for the chunks
	// that were computed without them; tiled: the step in flight is such a
	// chunk.
	due   time.Duration
	tiled bool
	solo  bool // its last step was an embedding that fits beside no decode
	// Of the batch being made: room is the seconds of copies for which it has
	// room beside its streams, without those that go down in the background;
	// carried tells that some go up; clear is the row that somebody waits for,
	// to be saved before others.
	room    float64
	carried bool
	clear   ieg.Slot
	fetcher ieg.SeqID // whose turn has come and who fetches
	awaits  int       // sequences that await a prefix, as of the last admission
	owed    int32     // uncomputed known tokens of the running ones, while admitting
	// blocked did not fit, and nothing was given up since.
	blocked ieg.SeqID
	// rent is what a cell of idle KV has cost so far, in seconds, if it was
	// there from the start of this incarnation (unified layout).
	rent    float64
	closing bool
	tried   bool // in this schedule
	// saving is the block that is being copied down piece by piece; credit the
	// seconds of copies that the steps so far leave room for; saveBlocked tells
	// that the arena had no room, saveWaits that it will have when the NVMe tier
	// has more of it.
	saving             *saving
	credit             float64
	saveBlocked        bool
	saveWaits          bool
	saveRate, loadRate rate
	keeps              [][]*kv.Known // per row, see keep
	// expect is the learnt number of output tokens per class, 0 if none.
	expect [ieg.NumClasses]float64
}

// promptMax is the longest prompt that leaves room for one token.
func (e *engine) promptMax(k ieg.Kind) int32 {
	if k == ieg.Embed {
		return min(e.rowMax(), e.info.StepTokens)
	}
	return e.rowMax() - 1
}

// rowMax is the most tokens that one sequence can have in KV.
func (e *engine) rowMax() int32 { return min(e.info.SlotTokens, e.info.Cells) }

// hasWork tells whether a step could do something.
func (e *engine) hasWork() bool {
	if e.waiting.Len() > 0 {
		return true
	}
	for _, s := range e.running {
		if s.ready() || s.brings() {
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
		if (s.ready() || s.brings()) && s.key.Compare(best) < 0 {
			return s.key
		}
	}
	return best
}

func (m *Machine) deviceUp(ev DeviceUp) {
	for _, d := range m.devices {
		if d.spec.ID == ev.Spec.ID {
			d.spec, d.free = ev.Spec, ev.Free
			m.placing.pool = nil // made anew from the devices
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
	m.engines = slices.DeleteFunc(m.engines, func(e *engine) bool {
		return e.state == ieg.EngineDown && e.final && e.model == ev.Model && e.device == ev.Device
	})
	left := m.devices[i].free
	for _, e := range m.engines {
		if e.device == ev.Device && (e.pool != nil || !e.final) {
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
		id: ev.Engine, model: ev.Model, device: ev.Device, dev: m.devices[i], need: ev.Need,
		state: ieg.EngineLoading, seqs: map[ieg.SeqID]*seq{}, idle: true, saveRate: SaveRate, loadRate: LoadRate,
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
	if e.state == ieg.EngineDown && e.final {
		m.forget(e)
		m.ready.Unloads = append(m.ready.Unloads, e.id)
		return
	}
	e.state, e.closing = ieg.EngineClosing, true
	if ev.Force {
		m.failAll(e, fmt.Errorf("%w: %q was unloaded", ieg.ErrNoModel, e.model))
	}
}

// forget takes an engine without an incarnation out of the list.
func (m *Machine) forget(e *engine) {
	m.engines = slices.DeleteFunc(m.engines, func(o *engine) bool { return o == e })
}

// failAll ends every request of an engine.
func (m *Machine) failAll(e *engine, err error) {
	for _, r := range slices.Clone(m.order) {
		if r.engine == e {
			m.end(r, ieg.StopError, err)
		}
	}
}

// engineReady takes in an incarnation. One that is to be unloaded still
// finishes what waits for it.
func (m *Machine) engineReady(info ieg.EngineInfo) {
	e := m.engine(info.ID)
	if e == nil || e.final {
		return
	}
	if e.pool != nil {
		panic(fmt.Sprintf("kernel: engine %d is ready twice without being lost", info.ID))
	}
	if !e.closing {
		e.state = ieg.EngineUp
	}
	e.reason, e.info, e.pool = "", info, kv.NewPool(info)
	e.pool.Tell(m.kv.events)
	e.keeps = make([][]*kv.Known, info.Slots)
	e.young, e.failed, e.aborts, e.rent, e.blocked, e.doomed = 0, 0, 0, 0, 0, false
	if sum := info.WeightBytes + info.KVBytes + info.ComputeBytes; sum > 0 {
		e.need = sum
	}
	for _, r := range slices.Clone(m.order) {
		if r.engine == e {
			m.fit(r)
		}
	}
	for i := range e.waiting.Len() {
		m.want(e, e.seqs[e.waiting.At(i).Seq])
	}
}

// fit ends a waiting request whose prompt the new incarnation can't take, and
// sequences that have outgrown it.
func (m *Machine) fit(r *request) {
	e := r.engine
	if most := e.promptMax(r.spec.Kind); int32(len(r.spec.Prompt)) > most {
		m.end(r, ieg.StopError, fmt.Errorf("%w: the prompt has %d tokens, %q takes %d", ieg.ErrContextLength, len(r.spec.Prompt), e.model, most))
		return
	}
	for _, s := range r.seqs {
		if s.state == seqWaiting && int32(len(s.tokens)) > e.rowMax() {
			m.finish(s, ieg.StopLength, nil)
		}
	}
}

// engineLost takes back what the incarnation held: its sequences wait again
// with all their known tokens, or fail if they saw too many deaths.
func (m *Machine) engineLost(ev EngineLost) {
	e := m.engine(ev.Engine)
	if e == nil || e.pool != nil && ev.Epoch != e.info.Epoch && !ev.Final {
		return // an older incarnation, whose loss is known
	}
	if e.pool != nil && !e.final {
		m.totals.EngineDeaths++
	}
	e.reason, e.doomed = ev.Reason, false
	if !e.closing {
		e.state = ieg.EngineDown
	}
	m.dropCopies(e)
	if e.pool != nil {
		e.pool.Gone()
	}
	e.flight = flight{work: e.flight.work[:0]}
	e.drop = e.drop[:0]
	e.pool = nil
	hit := slices.Clone(e.running)
	e.running = e.running[:0]
	for _, s := range hit {
		m.letGo(&s.rest)
		s.slot, s.inFlight = ieg.NoSlot, false
		m.requeue(s, false)
	}
	m.mourn(hit, ev.Reason)
	if !ev.Final {
		return
	}
	e.final = true
	if e.closing {
		m.failAll(e, fmt.Errorf("%w: %q was unloaded", ieg.ErrNoModel, e.model))
		m.forget(e)
		return
	}
	m.failAll(e, fmt.Errorf("%w: %q could not be loaded: %s", ieg.ErrEngineLost, e.model, ev.Reason))
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
	e := s.req.engine
	e.ahead += int64(s.computed)
	s.state, s.computed, s.await = seqWaiting, 0, ieg.NoSlot
	e.waiting.Push(s.key)
	s.fetch.tried = min(s.fetch.tried, FetchesMax-1)
	m.want(e, s)
	m.relive(s, preempted)
}

// interrupt ends a grant: the engine has something new to consider. An engine
// on the same device that waits for its turn counts too.
func (m *Machine) interrupt(e *engine) {
	for _, o := range m.engines {
		f := &o.flight
		if o.device == e.device && f.active && f.grant > 0 && !f.halted && !f.aborted && !f.over {
			f.halted = true
			m.ready.Halts = append(m.ready.Halts, StepRef{o.id, o.info.Epoch, f.step})
		}
	}
}

// release ends a step early when a sequence that was given up would keep it
// running: at once if that is foreseen, else when it turns out so.
func (m *Machine) release(e *engine) {
	f := &e.flight
	if f.aborted || f.over {
		return
	}
	if f.started.Add(f.predicted).Sub(m.now) > AbortAfter && e.mayAbort() {
		m.abort(e)
		return
	}
	f.abortAt = min(f.abortAt, m.now.Add(AbortAfter))
	m.interrupt(e)
}

func (m *Machine) abort(e *engine) {
	e.flight.aborted, e.flight.abortAt = true, ieg.Never
	m.ready.Aborts = append(m.ready.Aborts, StepRef{e.id, e.info.Epoch, e.flight.step})
}

// mayAbort tells whether a step may be aborted: others that are in it lose
// their work a few times in a row only.
func (e *engine) mayAbort() bool {
	if e.aborts < AbortsMax {
		return true
	}
	for i := range e.flight.work {
		if e.flight.work[i].seq.state != seqFinished {
			return false
		}
	}
	return true
}
