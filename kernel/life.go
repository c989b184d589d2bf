package kernel

import (
	"ieg"
	"ieg/kernel/graph"
)

// The graph of a request follows what its sequences do. The N sequences share
// the prefill node; each has its own decode node. A sequence that must compute
// its KV again after its engine was lost re-executes the prefill (epoch + 1).

// bear makes the request's graph and places its nodes.
func (m *Machine) bear(r *request, known *engine) error {
	expect := int32(known.expect[r.spec.Class])
	r.graph = graph.Build(r.spec, &known.info.Model, &m.cfg.Graph, expect, m.now)
	r.until = r.graph.End()
	m.foresee(r, known)
	if err := m.place(r, &known.info.Model); err != nil {
		return err
	}
	m.plan(r)
	return nil
}

// foresee tells the prefill what the engine has of its prompt already, so that
// it is priced for the rest. What is there when it runs counts in the end.
func (m *Machine) foresee(r *request, e *engine) {
	p := r.graph.Find(ieg.StagePrefill, -1)
	if p == nil || e.pool == nil || !e.info.Prefixes {
		return
	}
	match := e.pool.Match(r.spec.Prompt, r.spec.Tenant)
	r.graph.SetTokens(p.ID, p.Tokens, max(match.N, match.PendingN))
}

// node is the graph's node that the sequence is working on.
func (s *seq) node() *graph.Node {
	g := s.req.graph
	for i := range g.Nodes {
		switch n := &g.Nodes[i]; n.Stage {
		case ieg.StageEmbed:
			return n
		case ieg.StagePrefill:
			if n.State != ieg.NodeCompleted {
				return n
			}
		case ieg.StageDecode:
			if n.Choice == int16(s.choice) {
				return n
			}
		}
	}
	return nil
}

// entered follows the first admission.
func (m *Machine) entered(s *seq) {
	r := s.req
	if r.graph.Admitted == 0 {
		r.graph.Admit(m.now)
		r.until = r.graph.End()
	}
}

// started follows work that was given to a sequence.
func (m *Machine) started(s *seq) {
	if s.begun {
		return
	}
	s.begun = true
	if n := s.node(); n.State == ieg.NodeScheduled {
		s.req.graph.Run(n.ID, m.now)
	}
}

// sampled follows a token: the first one completes the prefill.
func (m *Machine) sampled(s *seq) {
	if s.decoding {
		return
	}
	r := s.req
	if n := s.node(); n.Stage == ieg.StagePrefill {
		r.graph.SetTokens(n.ID, n.Tokens, s.cached)
		m.flush(s, n)
		r.graph.Complete(n.ID, m.now)
		m.plan(r)
	}
	if n := s.node(); n.State == ieg.NodeScheduled {
		r.graph.Run(n.ID, m.now)
	}
	s.decoding = true
}

// flush charges the device time that the sequence took to a node.
func (m *Machine) flush(s *seq, n *graph.Node) {
	s.req.graph.Charge(n.ID, s.busy.Seconds())
	s.busy = 0
}

// overLimit tells which limit of a growing graph the sequence has reached.
func (m *Machine) overLimit(s *seq) graph.Hit {
	g := s.req.graph
	if g.Limits == (graph.Limits{}) {
		return graph.Hit{}
	}
	n := s.node()
	g.SetTokens(n.ID, s.generated(), n.Cached)
	m.flush(s, n)
	return g.Check(m.now)
}

// settle completes the node of a sequence that ended well. The others are
// dealt with when the request is buried.
func (m *Machine) settle(s *seq, reason ieg.StopReason) {
	n := s.node()
	if n == nil || !n.Active() {
		return
	}
	m.flush(s, n)
	if n.Stage == ieg.StageDecode {
		s.req.graph.SetTokens(n.ID, s.generated(), n.Cached)
	}
	if !reason.Success() || n.State != ieg.NodeRunning || n.Stage == ieg.StagePrefill {
		return
	}
	s.req.graph.Complete(n.ID, m.now)
	e, c := s.req.engine, s.req.spec.Class
	if n.Stage == ieg.StageDecode && reason != ieg.StopLength {
		if e.expect[c] == 0 {
			e.expect[c] = float64(s.generated())
		}
		e.expect[c] += 0.1 * (float64(s.generated()) - e.expect[c])
	}
}

// relive puts the sequence's node back to where it is placed anew.
func (m *Machine) relive(s *seq, preempted bool) {
	s.begun, s.decoding = false, false
	g := s.req.graph
	for i := range g.Nodes {
		n := &g.Nodes[i]
		mine := n.Stage == ieg.StagePrefill || n.Stage == ieg.StageEmbed || n.Stage == ieg.StageDecode && n.Choice == int16(s.choice)
		if !mine || n.State != ieg.NodeRunning || n.Stage == ieg.StagePrefill && s.accompanied() {
			continue
		}
		m.flush(s, n)
		if preempted {
			g.Preempt(n.ID, m.now)
			g.Requeue(n.ID, false, m.now)
		} else if g.Fail(n.ID, "engine lost", true, m.now) && n.Stage == ieg.StageDecode {
			m.recompute(s.req, n.ID)
		}
	}
	m.plan(s.req)
}

// accompanied tells whether another sequence of the request is computing the
// prompt too.
func (s *seq) accompanied() bool {
	for _, o := range s.req.seqs {
		if o != s && o.state == seqRunning && o.begun && !o.decoding {
			return true
		}
	}
	return false
}

// recompute sends a completed prefill, whose KV is gone, back to be run again
// for a decode that failed.
func (m *Machine) recompute(r *request, decode ieg.NodeID) {
	for i := range r.graph.Nodes {
		if p := &r.graph.Nodes[i]; p.Stage == ieg.StagePrefill && p.State == ieg.NodeCompleted {
			var set [8]ieg.NodeID
			r.graph.Reexecute(set[:0], decode, []ieg.NodeID{p.ID}, m.now)
			return
		}
	}
}

// bury ends the graph of a request and keeps its story. The output node of a
// success waits for the door to report the delivery.
func (m *Machine) bury(r *request, reason ieg.StopReason, err error) {
	g := r.graph
	note := reason.String()
	if err != nil {
		note = err.Error()
	}
	if reason == ieg.StopError {
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.State == ieg.NodeRunning || n.State == ieg.NodeScheduled {
				g.Fail(n.ID, note, false, m.now)
			}
		}
	}
	switch {
	case reason == ieg.StopLimit: // the output node returns the partial result
		for i := range g.Nodes {
			if n := &g.Nodes[i]; !n.State.Final() && n.Stage != ieg.StageOutput {
				g.CancelNode(n.ID, note, m.now)
			}
		}
	case !reason.Success():
		g.Cancel(note, m.now)
	}
	m.history.add(tale{
		ID: r.spec.ID, Name: r.spec.Name, Model: r.spec.Model, Class: r.spec.Class,
		Finish: reason.String(), Err: errText(err), Times: r.times, Usage: r.usage, ITLMax: r.itlMax, Graph: g, Tiers: r.tiers, Notes: r.notes,
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// delivered ends the output node: the door wrote the client's last byte.
func (m *Machine) delivered(id ieg.RequestID, span ieg.Span) {
	t := m.history.find(id, "")
	if t == nil {
		return
	}
	if n := t.Graph.Find(ieg.StageOutput, -1); n != nil && n.State == ieg.NodeReady {
		// What was written while tokens were still drawn belongs to the decode:
		// the node runs from when it was ready.
		span.Start = max(span.Start, n.Since)
		span.End = max(span.End, span.Start)
		t.Graph.Pass(n.ID, "host", span)
	}
}
