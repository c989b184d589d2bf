package sim

import (
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"ieg"
	"ieg/kernel"
)

// World is one simulation.
type World struct {
	cfg     Config
	m       *kernel.Machine
	rng     *rand.Rand
	now     ieg.Time
	agenda  agenda
	nextID  uint64
	engines map[ieg.EngineID]*child
	clients map[ieg.RequestID]*client
	pager   *pager // nil: nothing lies below the devices
	order   []*client

	facts, instant, faults int
	factsMax               int
	report                 Report
	err                    error
}

// entry is something that will happen.
type entry struct {
	at ieg.Time
	id uint64 // breaks ties in the order of planning
	do func()
}

// agenda is a heap of entries.
type agenda []entry

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].id < a[j].id
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(entry)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = entry{}
	*a = old[:len(old)-1]
	return e
}

// New prepares a run.
func New(cfg Config) (*World, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	m, err := kernel.New(cfg.Kernel)
	if err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, m: m, rng: rand.New(rand.NewPCG(cfg.Seed, 0x5bd1e995)),
		engines: map[ieg.EngineID]*child{}, clients: map[ieg.RequestID]*client{}}
	if cfg.Tiers.Pages > 0 {
		w.pager = newPager(w)
	}
	tokens := 0
	for i := range cfg.Requests {
		r := &cfg.Requests[i]
		tokens += r.Spec.N * (len(r.Spec.Prompt) + int(r.Spec.MaxTokens))
		w.after(r.At, func() { w.arrive(r) })
	}
	w.factsMax = EventsBase + EventsPerToken*(tokens+len(cfg.Requests))
	for _, u := range cfg.Unloads {
		w.after(u.At, func() { w.apply(kernel.UnloadEngine{Engine: u.Engine, Force: u.Force}) })
	}
	if cfg.DrainAfter > 0 {
		w.after(cfg.DrainAfter, func() { w.apply(kernel.Drain{}) })
	}
	return w, nil
}

// after plans f for a time from now on.
func (w *World) after(d time.Duration, f func()) {
	w.nextID++
	heap.Push(&w.agenda, entry{w.now.Add(max(d, 0)), w.nextID, f})
}

// Run runs to the end of all work and reports. The error is the first rule
// that was broken.
func (w *World) Run() (*Report, error) {
	started := time.Now()
	w.boot()
	for w.err == nil {
		due := w.m.Deadline()
		if len(w.agenda) == 0 && due == ieg.Never {
			break
		}
		if len(w.agenda) == 0 || due <= w.agenda[0].at {
			w.advance(max(due, w.now))
			w.apply(kernel.Tick{})
			continue
		}
		e := heap.Pop(&w.agenda).(entry)
		w.advance(e.at)
		e.do()
	}
	if w.err == nil {
		w.settle()
	}
	w.report.finish(w, time.Since(started))
	return &w.report, w.err
}

func (w *World) advance(to ieg.Time) {
	if to > w.now {
		w.now, w.instant = to, 0
	}
}

// fail keeps the first broken rule.
func (w *World) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %s: %s", time.Duration(w.now), fmt.Sprintf(format, args...))
	}
}

// boot brings up devices and engines.
func (w *World) boot() {
	if w.pager != nil {
		w.pager.start()
	}
	seen := map[string]bool{}
	for i := range w.cfg.Engines {
		e := &w.cfg.Engines[i]
		if !seen[e.Device] {
			seen[e.Device] = true
			w.apply(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: e.Device, Type: "CPU"}, Free: 1 << 40})
		}
		id := ieg.EngineID(i + 1)
		w.engines[id] = &child{w: w, cfg: e, id: id}
		w.apply(kernel.LoadEngine{Engine: id, Model: e.Spec.Name, Device: e.Device, Need: 1 << 20})
	}
}

// apply feeds the machine one fact and carries out what it decides.
func (w *World) apply(ev kernel.Event) {
	if w.err != nil {
		return
	}
	w.facts++
	if w.instant++; w.instant > InstantEvents {
		w.fail("%d facts at one instant, the last %T", w.instant, ev)
		return
	}
	if w.facts > w.factsMax {
		w.fail("livelock: %d facts for work that needs at most %d", w.facts, w.factsMax)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			w.fail("%T: panic: %v\n%s", ev, p, debug.Stack())
		}
	}()
	if w.cfg.Before != nil {
		w.cfg.Before(w.now, ev, w.m)
	}
	w.m.Apply(w.now, ev)
	r := w.m.Ready()
	if w.cfg.Check {
		if err := w.m.Check(); err != nil {
			w.fail("after %T: %v", ev, err)
			return
		}
	}
	w.carryOut(r)
	if w.cfg.Observe != nil {
		w.cfg.Observe(w.now, ev, r)
	}
}

// carryOut does what the machine decided, in the order of Ready's fields. What
// answers, answers through the agenda: nothing here applies facts.
func (w *World) carryOut(r *kernel.Ready) {
	for _, a := range r.Admits {
		w.clients[a.Request].admit(a)
	}
	for _, e := range r.Emits {
		if c := w.clients[e.Request]; c == nil {
			w.fail("a result for request %d, which is unknown", e.Request)
		} else {
			c.emit(e)
		}
	}
	for _, f := range r.Finishes {
		if c := w.clients[f.Request]; c == nil {
			w.fail("the end of request %d, which is unknown", f.Request)
		} else {
			c.finish(f)
		}
	}
	for _, s := range r.Aborts {
		w.engines[s.Engine].abort(s.Epoch, s.Step)
	}
	for _, s := range r.Halts {
		w.engines[s.Engine].halt(s.Epoch, s.Step)
	}
	for _, k := range r.Kills {
		w.report.Kills++
		w.engines[k.Engine].kill(k.Epoch, k.Reason)
	}
	for _, id := range r.Loads {
		w.engines[id].start()
	}
	for _, id := range r.Unloads {
		w.engines[id].stop()
	}
	for _, f := range r.Refusals {
		if !errors.Is(f.Err, ieg.ErrNoModel) { // unloaded twice, or after its end
			w.fail("engine %d was refused: %v", f.Engine, f.Err)
		}
	}
	for _, v := range r.Moves {
		w.pager.move(v)
	}
	for _, b := range r.Batches {
		w.engines[b.Engine].submit(b)
	}
	w.oneStepPerDevice()
}

// oneStepPerDevice: engines that share a device never compute at once.
func (w *World) oneStepPerDevice() {
	busy := map[string]ieg.EngineID{}
	for i := range w.cfg.Engines {
		c := w.engines[ieg.EngineID(i+1)]
		if c == nil || !c.busy {
			continue
		}
		if o := busy[c.cfg.Device]; o != 0 {
			w.fail("engines %d and %d compute on %s at once", o, c.id, c.cfg.Device)
		}
		busy[c.cfg.Device] = c.id
	}
}

// settle checks the world when nothing is left to happen.
func (w *World) settle() {
	if err := w.m.Check(); err != nil {
		w.fail("at rest: %v", err)
	}
	for _, c := range w.order {
		c.settle()
	}
	if !w.m.Idle() {
		w.fail("nothing happens any more, but requests are live: %s", w.live())
	}
	st := w.m.Status()
	if st.KV.Leases != [3]int{} || st.KV.Moves+st.KV.Queued != 0 || !w.m.Flushed() {
		w.fail("at rest leases %v are held, %d moves go and %d wait, all saved: %t", st.KV.Leases, st.KV.Moves, st.KV.Queued, w.m.Flushed())
	}
	w.report.KV = st.KV.Counts
	for _, e := range st.Engines {
		if e.Running+e.Waiting+e.SlotsUsed != 0 || e.CellsUsed != 0 {
			w.fail("at rest engine %d has %d running, %d waiting, %d rows and %d cells in use", e.Info.ID, e.Running, e.Waiting, e.SlotsUsed, e.CellsUsed)
		}
	}
}

func (w *World) live() error {
	var errs []error
	for _, r := range w.m.Status().Requests {
		errs = append(errs, fmt.Errorf("%s %s %s: %d of prompt, %d generated", r.ID, r.Class, r.State, r.Prompt, r.Generated))
	}
	return errors.Join(errs...)
}
