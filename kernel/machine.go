package kernel

import (
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/kernel/graph"
	"ieg/memory/kv"
)

// Machine is the decision core. It is not safe for concurrent use: one
// goroutine applies events and carries out each Ready before the next.
type Machine struct {
	cfg      Config
	now      ieg.Time
	draining bool

	devices []*device
	engines []*engine // in the order of loading
	reqs    map[ieg.RequestID]*request
	order   []*request // live requests in order of arrival

	nextSeq  ieg.SeqID
	nextStep ieg.StepID

	totals  ieg.Totals
	kv      tiers
	history history
	placing placing
	ready   Ready
}

// New returns a machine without devices and engines.
func New(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m := &Machine{cfg: cfg, reqs: map[ieg.RequestID]*request{},
		kv: tiers{why: "there is none", read: ReadRate, write: WriteRate, expiry: ieg.Never}}
	if cfg.KV.Events {
		m.kv.events = kv.NewEvents()
	}
	return m, nil
}

// Apply takes in a fact at time now, which never goes back. The decisions are
// in the Ready that follows.
func (m *Machine) Apply(now ieg.Time, ev Event) {
	if now < m.now {
		panic(fmt.Sprintf("kernel: time goes back from %d to %d", m.now, now))
	}
	m.now = now
	m.ready.reset()
	if v := m.kv.events; v != nil {
		v.List = v.List[:0]
		defer func() { m.ready.KV = v.List }()
	}
	switch ev := ev.(type) {
	case Arrived:
		m.arrive(ev.Request)
	case Cancel:
		m.cancel(ev.Request, ev.Reason, ev.Err)
	case Pause:
		m.pause(ev.Request, true)
	case Resume:
		m.pause(ev.Request, false)
	case Delivered:
		m.delivered(ev.Request, ev.Span)
	case DeviceUp:
		m.deviceUp(ev)
	case LoadEngine:
		m.load(ev)
	case UnloadEngine:
		m.unload(ev)
	case EngineReady:
		m.engineReady(ev.Info)
	case EngineLost:
		m.engineLost(ev)
	case EngineStalled:
		m.stalled(ev)
	case StepDone:
		m.stepDone(ev.Done)
	case Drain:
		m.draining = true
	case HostUp:
		m.hostUp(ev)
	case NVMeUp:
		m.nvmeUp()
	case NVMeDown:
		m.nvmeDown(ev.Reason)
	case MoveDone:
		m.moveDone(&ev.Done)
	case KVControl:
		m.control(ev)
	case Tick:
		m.tick()
	default:
		panic(fmt.Sprintf("kernel: unknown event %T", ev))
	}
	m.schedule()
	m.pump()
}

// Ready is what to do now; valid until the next Apply.
func (m *Machine) Ready() *Ready { return &m.ready }

// Idle tells that no request is live.
func (m *Machine) Idle() bool { return len(m.reqs) == 0 }

// Deadline is when a Tick is due: a step that hangs or a request that is
// late; ieg.Never if nothing is awaited.
func (m *Machine) Deadline() ieg.Time {
	d := ieg.Never
	for _, e := range m.engines {
		if e.flight.active {
			d = min(d, e.flight.limit, e.flight.abortAt)
		}
	}
	for _, r := range m.order {
		d = min(d, r.until)
	}
	for _, s := range m.kv.fetchers {
		d = min(d, s.fetch.until)
	}
	return min(d, m.kv.expiry)
}

func (m *Machine) tick() {
	m.expire()
	for _, s := range slices.Clone(m.kv.fetchers) {
		m.awaitsFetch(s)
	}
	for _, e := range m.engines {
		f := &e.flight
		if f.active && m.now >= f.limit {
			m.kill(e, fmt.Sprintf("step %d made no progress for %s (predicted %s)", f.step,
				m.now.Sub(f.started).Round(time.Millisecond), f.predicted.Round(time.Millisecond)))
		} else if f.active && m.now >= f.abortAt {
			f.abortAt = ieg.Never
			if e.mayAbort() {
				m.abort(e)
			}
		}
	}
	for i := 0; i < len(m.order); i++ {
		if r := m.order[i]; m.now >= r.until {
			m.late(r)
			i--
		}
	}
}

// late ends a request whose deadline, or whose graph's timeout, has passed.
func (m *Machine) late(r *request) {
	hit := r.graph.Check(m.now)
	r.graph.Stop(nil, hit, m.now)
	if m.now >= r.spec.Deadline {
		m.end(r, ieg.StopDeadline, ieg.ErrDeadline)
		return
	}
	m.end(r, ieg.StopLimit, hit)
}

// exhausted ends a request whose graph has used up a limit: running out of
// tokens is an end by length, anything else is told as the limit it is.
func (m *Machine) exhausted(r *request, hit graph.Hit) {
	r.graph.Stop(nil, hit, m.now)
	if hit.Limit == graph.LimitTokens {
		m.end(r, ieg.StopLength, nil)
		return
	}
	m.end(r, ieg.StopLimit, hit)
}

func (m *Machine) engine(id ieg.EngineID) *engine {
	for _, e := range m.engines {
		if e.id == id {
			return e
		}
	}
	return nil
}
