package sim

import (
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/synth"
	"ieg/kernel"
)

// child is one supervised engine: the semantics of a process that runs
// batches, in virtual time (see ieg.Batch).
type child struct {
	w      *World
	cfg    *Engine
	id     ieg.EngineID
	epoch  ieg.Epoch
	deaths int
	runner engine.Runner
	info   ieg.EngineInfo
	closed bool

	busy            bool
	batch           ieg.Batch
	repeat          int32
	took            time.Duration
	halted, aborted bool
	failing, hung   bool
	plan            uint64 // what was planned before a death or abort is void
	empty           int    // steps in a row without work
	tokens          []int32
	spare           []*ieg.StepDone
}

// start begins an incarnation.
func (c *child) start() {
	spec := c.cfg.Spec
	if c.w.pager != nil {
		spec.Arena = c.w.pager.arena
	}
	r, err := synth.New(spec)
	if err != nil {
		c.w.fail("engine %d: %v", c.id, err)
		return
	}
	c.epoch++
	c.runner, c.info = r, r.Info()
	c.info.ID, c.info.Epoch, c.info.Device = c.id, c.epoch, c.cfg.Device
	c.info.Tile = c.cfg.Tile
	if c.cfg.StepTokens > 0 {
		c.info.StepTokens = c.cfg.StepTokens
		c.info.UBatch = min(c.info.UBatch, c.info.StepTokens)
		c.info.Tile = min(c.info.Tile, c.info.StepTokens)
	}
	c.tokens = make([]int32, c.info.Slots)
	c.later(c.cfg.LoadTime, func() { c.w.apply(kernel.EngineReady{Info: c.info}) })
}

// later plans f unless the child dies or aborts before.
func (c *child) later(d time.Duration, f func()) {
	plan := c.plan
	c.w.after(d, func() {
		if c.plan == plan {
			f()
		}
	})
}

// stop ends the engine for good.
func (c *child) stop() {
	c.plan++
	epoch := c.epoch
	c.busy, c.closed = false, true
	c.w.after(c.cfg.Latency, func() {
		c.w.apply(kernel.EngineLost{Engine: c.id, Epoch: epoch, Reason: "unloaded", Final: true})
	})
}

// die ends the incarnation; the supervisor starts the next one or gives up.
func (c *child) die(reason string) {
	c.plan++
	c.busy = false
	c.deaths++
	f := &c.w.cfg.Faults
	final := f.FinalAfter > 0 && c.id == 1 && c.deaths >= f.FinalAfter
	c.w.report.Deaths++
	c.w.apply(kernel.EngineLost{Engine: c.id, Epoch: c.epoch, Reason: reason, Final: final})
	if !final && !c.closed {
		c.start()
	}
}

func (c *child) kill(epoch ieg.Epoch, reason string) {
	if epoch == c.epoch {
		c.later(KillTime, func() { c.die("killed: " + reason) })
	}
}

func (c *child) halt(epoch ieg.Epoch, step ieg.StepID) {
	if epoch == c.epoch && step > c.batch.Step {
		c.w.fail("step %d of engine %d is halted before it was sent", step, c.id)
	}
	if c.busy && epoch == c.epoch && step == c.batch.Step {
		c.halted = true
	}
}

func (c *child) abort(epoch ieg.Epoch, step ieg.StepID) {
	if !c.busy || c.hung || c.aborted || epoch != c.epoch || step != c.batch.Step {
		return
	}
	c.aborted = true
	c.later(AbortTime, func() {
		if c.busy && c.batch.Step == step {
			c.plan++
			c.end(ieg.StepAborted, "")
		}
	})
}

// submit takes a batch like a child's socket: what it points to is copied.
func (c *child) submit(b *ieg.Batch) {
	switch {
	case b.Epoch != c.epoch || c.closed:
		return // of an incarnation that is gone: its loss is on its way
	case c.busy:
		c.w.fail("engine %d is given step %d while step %d is in flight", c.id, b.Step, c.batch.Step)
		return
	case b.Grant > 0 && slices.ContainsFunc(b.Work, func(w ieg.Work) bool { return !w.Sample }):
		c.w.fail("step %d grants %d repeats of work that does not sample", b.Step, b.Grant)
		return
	}
	tokens := int32(0)
	for _, w := range b.Work {
		tokens += w.N
	}
	if tokens > c.info.StepTokens {
		c.w.fail("step %d has %d tokens, engine %d takes %d", b.Step, tokens, c.id, c.info.StepTokens)
		return
	}
	if c.empty++; len(b.Work) > 0 {
		c.empty = 0
	} else if saves := slices.ContainsFunc(b.Ops, func(op ieg.KVOp) bool { return op.Kind == ieg.KVSave }); saves {
		c.empty = 0
	} else if c.empty > EmptySteps {
		c.w.fail("engine %d was given %d steps in a row without work", c.id, c.empty)
		return
	}
	c.batch = *b
	c.batch.Drop, c.batch.Ops, c.batch.Work = slices.Clone(b.Drop), slices.Clone(b.Ops), slices.Clone(b.Work)
	c.batch.New = slices.Clone(b.New)
	for i := range c.batch.New {
		c.batch.New[i].Tokens = slices.Clone(c.batch.New[i].Tokens)
	}
	c.busy, c.repeat, c.halted, c.aborted, c.failing, c.hung = true, 0, false, false, false, false
	c.w.report.Steps++
	c.later(c.cfg.Latency, c.begin)
}

// begin starts the step or a repeat, and decides how it will go.
func (c *child) begin() {
	w, f := c.w, &c.w.cfg.Faults
	c.took = c.cost()
	if f.Slow > 0 && w.rng.Float64() < f.Slow {
		c.took = time.Duration(float64(c.took) * f.SlowBy)
	}
	x := 2.0
	if w.faults < f.Most {
		x = w.rng.Float64()
	}
	switch {
	case x < f.Hang:
		w.faults++
		c.hung = true // nothing is planned: only a kill ends it
		return
	case x < f.Hang+f.Die:
		w.faults++
		c.later(time.Duration(w.rng.Int64N(int64(c.took)+1)), func() { c.die("it died") })
		return
	case x < f.Hang+f.Die+f.Fail:
		w.faults++
		c.failing = true
	}
	c.later(c.took, func() {
		if c.failing {
			c.end(ieg.StepFailed, "injected")
		} else {
			c.end(ieg.StepOK, "")
		}
	})
}

// end runs what the step did and reports it.
func (c *child) end(out ieg.Outcome, why string) {
	d := c.newDone()
	b := c.batch
	if out != ieg.StepOK {
		b.Work = nil
	}
	if out == ieg.StepOK || c.repeat == 0 {
		if c.w.pager != nil {
			c.w.pager.flip(&b)
		}
		c.runner.Step(&b, d)
		c.count(&b)
	}
	if spoiled(d) {
		out, why = ieg.StepFailed, d.Err
	} else if d.Outcome != ieg.StepOK {
		c.w.fail("engine %d refuses step %d: %s", c.id, c.batch.Step, d.Err)
		return
	}
	d.Engine, d.Epoch, d.Step, d.Repeat, d.Took = c.id, c.epoch, c.batch.Step, c.repeat, c.took
	d.Outcome, d.Err = out, why
	if out != ieg.StepOK {
		d.Results = d.Results[:0]
	}
	d.Last = c.repeat == c.batch.Grant || c.halted || c.aborted || out != ieg.StepOK
	for i := range d.Results {
		d.Last = d.Last || d.Results[i].Stop != ieg.NotStopped
	}
	c.w.report.observe(c, d)
	c.busy = !d.Last
	epoch := c.epoch
	c.w.after(c.cfg.Latency, func() {
		c.w.apply(kernel.StepDone{Done: d})
		if epoch == c.epoch {
			c.spare = append(c.spare, d)
		}
	})
	if d.Last {
		return
	}
	c.repeat++
	c.batch.Drop, c.batch.New, c.batch.Ops = nil, nil, nil
	for i := range c.batch.Work {
		w := &c.batch.Work[i]
		w.Start, w.N = w.Start+w.N, 1
	}
	c.begin()
}

func (c *child) newDone() *ieg.StepDone {
	k := len(c.spare)
	if k == 0 {
		return &ieg.StepDone{}
	}
	d := c.spare[k-1]
	c.spare = c.spare[:k-1]
	*d = ieg.StepDone{Results: d.Results[:0], Copies: d.Copies[:0]}
	return d
}

// spoiled tells that a block which was loaded is not what it should be.
func spoiled(d *ieg.StepDone) bool {
	return slices.ContainsFunc(d.Copies, func(c ieg.CopyDone) bool { return c.Bad > 0 })
}

// count follows how many tokens each slot holds.
func (c *child) count(b *ieg.Batch) {
	for _, op := range b.Ops {
		if op.Kind != ieg.KVSave {
			c.tokens[op.To] = op.Start + op.N
		}
	}
	for _, w := range b.Work {
		c.tokens[w.Slot] = w.Start + w.N
	}
}

// cost is the virtual time of the batch, by the synthetic engine's own terms.
func (c *child) cost() time.Duration {
	var prefill, decode, read, held int64
	for _, n := range c.tokens {
		held += int64(n)
	}
	for _, w := range c.batch.Work {
		if w.N == 1 && w.Sample {
			decode++
		} else {
			prefill += int64(w.N)
		}
		read += int64(w.N)
		if c.info.Layout == ieg.Unified {
			read += held
		} else {
			read += int64(w.Start)
		}
	}
	p := c.cfg.Spec.Synth
	if p == nil {
		return time.Microsecond
	}
	copied := int64(0)
	for _, op := range c.batch.Ops {
		if op.Kind == ieg.KVSave || op.Kind == ieg.KVLoad {
			copied += int64(op.N) * c.info.KVToken
		}
	}
	step := p.StepNS
	if len(c.batch.Work) == 0 {
		step = 0
	}
	return max(time.Duration(step+p.PrefillNS*prefill+p.DecodeNS*decode+p.KiloCellNS*read/1000+p.CopyNS*copied/1024), 1)
}

func (c *child) String() string {
	return fmt.Sprintf("engine %d (%s on %s)", c.id, c.cfg.Spec.Name, c.cfg.Device)
}
