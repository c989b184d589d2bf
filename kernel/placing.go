package kernel

import (
	"fmt"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
	"ieg/kernel/place"
	"ieg/kernel/sched"
)

// placing is the machine's working memory for placement. It holds nothing
// that is not made anew from the engines before each plan.
type placing struct {
	pool    *place.Pool
	planner place.Planner
	problem place.Problem
	ids     []ieg.NodeID
}

// usable tells whether new requests may go to the engine; one that loads or
// comes back will serve them later.
func (e *engine) usable() bool { return !e.closing && !e.final }

// known is a usable engine of the model, one that has loaded it if there is
// one; nil if the model is on no device.
func (m *Machine) known(model string) *engine {
	var found *engine
	for _, e := range m.engines {
		if e.model == model && e.usable() && (found == nil || found.pool == nil && e.pool != nil) {
			found = e
		}
	}
	return found
}

// place plans the graph of a request over the devices that have an engine for
// its model and returns the engine of its first compute node. The decisions
// wait in the request until their nodes are ready.
func (m *Machine) place(r *request, info *ieg.ModelInfo) error {
	p := &m.placing
	if err := m.refresh(r.spec.Model); err != nil {
		return err
	}
	goal := cost.GoalOf(r.spec.Class)
	p.ids = p.problem.FromGraph(r.graph, info, cost.WeightsOf(goal), p.ids[:0])
	for i := range p.problem.Nodes {
		p.problem.Nodes[i].Precision = "" // an engine that loaded the model is the path
	}
	plan, err := p.planner.Plan(p.pool, &p.problem)
	if err != nil {
		return fmt.Errorf("%w for %q: %w", ieg.ErrOutOfMemory, r.spec.Model, err)
	}
	r.decisions = r.decisions[:0]
	for v, id := range p.ids {
		r.decisions = append(r.decisions, decision{id, p.planner.Decide(v)})
	}
	device := p.pool.Devices[plan.Choices[0].Devices[0]].Spec.ID
	for _, e := range m.engines {
		if e.model == r.spec.Model && e.device == device && e.usable() {
			r.engine = e
			return nil
		}
	}
	return fmt.Errorf("%w: %q is on no engine of %s", ieg.ErrNoModel, r.spec.Model, device)
}

// decision is a placed node's.
type decision struct {
	Node ieg.NodeID
	*ieg.Decision
}

// refresh brings the pool to what the engines are now. KV can't move between
// engines of this host, so a graph split over two of them must not look cheap:
// links are given next to no bandwidth.
func (m *Machine) refresh(model string) error {
	p := &m.placing
	if p.pool == nil || len(p.pool.Devices) != len(m.devices) {
		specs := make([]place.Device, len(m.devices))
		for i, d := range m.devices {
			specs[i] = place.Device{Spec: d.spec}
		}
		pool, err := place.NewPool(specs)
		if err != nil {
			return err
		}
		for i := range specs {
			for j := range specs {
				if i != j {
					pool.SetLink(i, j, ieg.Link{Bandwidth: 1})
				}
			}
		}
		p.pool = pool
	}
	for i, d := range m.devices {
		m.report(p.pool, i, d, model)
	}
	return nil
}

// report tells the pool of one device: what is free, what is ahead, and
// whether the model is there.
func (m *Machine) report(pool *place.Pool, i int, d *device, model string) {
	load, free, hosted := 0.0, d.free, false
	for _, e := range m.engines {
		if e.device != d.spec.ID {
			continue
		}
		load += m.backlog(e).Seconds()
		free += e.info.KVBytes - e.need
		if e.model == model && e.usable() {
			hosted = true
			pool.SetHosted(i, place.Hosted{Model: model, Resident: e.info.Model.WeightBytes,
				Speed: e.profile.Speed(), Chunk: e.info.StepTokens})
		}
	}
	if !hosted {
		pool.DropHosted(i, model)
	}
	pool.Report(i, load, max(free, 0))
}

// plan schedules every node that is ready for a device.
func (m *Machine) plan(r *request) {
	var buf [8]ieg.NodeID
	for _, id := range r.graph.Ready(buf[:0]) {
		if n := r.graph.Node(id); n.Stage.Type() == ieg.ComputeNode {
			r.graph.Schedule(id, m.decide(r, n), m.now)
		}
	}
}

// decide is the decision that the placement made for a node, or, for one that
// runs again or was appended later, the same engine's with today's figures.
func (m *Machine) decide(r *request, n *graph.Node) *ieg.Decision {
	for i, d := range r.decisions {
		if d.Node == n.ID {
			r.decisions = append(r.decisions[:i], r.decisions[i+1:]...)
			return d.Decision
		}
	}
	e := r.engine
	est, _ := e.profile.Speed().Estimate(n.Work(), e.info.StepTokens)
	d := &ieg.Decision{Device: e.device, Predicted: sched.Seconds(est.Seconds), Bottleneck: est.Bottleneck.String(), Queue: m.backlog(e)}
	d.Terms = []ieg.CostTerm{
		{Name: "L", Seconds: d.Predicted.Seconds(), Note: "on the engine that holds the request"},
		{Name: "Q", Seconds: d.Queue.Seconds(), Note: "uncached work ahead"},
	}
	return d
}
