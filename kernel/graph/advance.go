package graph

import "ieg"

type inputs uint8

const (
	inputsOpen    inputs = iota // some are not there yet
	inputsDone                  // the node may run
	inputsDead                  // one will never come
	inputsSkipped               // a branch was not taken
)

// satisfied judges the inputs of a node. A join needs all that were not
// skipped by a branch; an output delivers what there is once nothing more
// comes, provided something completed or a limit stopped the graph; every
// other node needs all its predecessors completed.
func (g *Graph) satisfied(n *Node) inputs {
	var open, done, skipped, dead int
	for i := range g.Edges {
		if g.Edges[i].To != n.ID {
			continue
		}
		switch p := &g.Nodes[g.Edges[i].From]; {
		case p.State == ieg.NodeCompleted:
			done++
		case p.State == ieg.NodeCancelled && p.Guard == BranchNotTaken:
			skipped++
		case p.State.Final():
			dead++
		default:
			open++
		}
	}
	stopped := g.Stopped.Limit != NoLimit
	if stopped && n.Stage == ieg.StageOutput && g.working() {
		return inputsOpen // what still runs may add to the partial result
	}
	partial := stopped || done > 0
	switch {
	case n.Stage == ieg.StageOutput && open > 0:
		return inputsOpen
	case n.Stage == ieg.StageOutput && dead > 0 && partial:
		return inputsDone
	case dead > 0:
		return inputsDead
	case n.Stage != ieg.StageJoin && n.Stage != ieg.StageOutput && skipped > 0:
		return inputsSkipped
	case open > 0:
		return inputsOpen
	case done == 0 && skipped > 0:
		return inputsSkipped
	}
	return inputsDone
}

// working tells whether a node other than an output is not final.
func (g *Graph) working() bool {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Stage != ieg.StageOutput && !n.State.Final() {
			return true
		}
	}
	return false
}

// settle draws the consequences of a change: nodes whose inputs are complete
// become READY, nodes whose inputs will never come are CANCELLED.
func (g *Graph) settle(now ieg.Time) {
	for changed := true; changed; {
		changed = false
		for i := range g.Nodes {
			n := &g.Nodes[i]
			if n.State != ieg.NodeInit && n.State != ieg.NodeReady {
				continue
			}
			switch g.satisfied(n) {
			case inputsDone:
				if n.State == ieg.NodeInit {
					g.Transition(n.ID, ieg.NodeReady, PredecessorsCompleted, now)
					changed = true
				}
			case inputsDead:
				g.Transition(n.ID, ieg.NodeCancelled, PredecessorFailed, now)
				changed = true
			case inputsSkipped:
				g.Transition(n.ID, ieg.NodeCancelled, BranchNotTaken, now)
				changed = true
			}
		}
	}
}

// Schedule binds a ready node to the device of a decision.
func (g *Graph) Schedule(id ieg.NodeID, d *ieg.Decision, now ieg.Time) {
	g.Transition(id, ieg.NodeScheduled, DeviceAssigned, now)
	g.Nodes[id].Decision = d
}

// Run starts a scheduled node.
func (g *Graph) Run(id ieg.NodeID, now ieg.Time) {
	g.Transition(id, ieg.NodeRunning, DeviceReady, now)
}

// Complete ends a running node with success and readies its successors.
func (g *Graph) Complete(id ieg.NodeID, now ieg.Time) {
	g.Transition(id, ieg.NodeCompleted, Finished, now)
	g.settle(now)
}

// Pass takes a ready node through its whole life on the host, for work that
// somebody else did and timed: tokenising and output at the door.
func (g *Graph) Pass(id ieg.NodeID, device string, span ieg.Span) {
	g.Schedule(id, &ieg.Decision{Device: device, Predicted: span.Duration()}, span.Start)
	g.Run(id, span.Start)
	g.Complete(id, span.End)
}

// Block marks a running node as waiting for KV in motion; Unblock ends that.
func (g *Graph) Block(id ieg.NodeID, now ieg.Time) {
	g.Transition(id, ieg.NodeBlocked, WaitingForResource, now)
}

// Unblock lets a blocked node go on, in the same attempt, with the decision
// it has or, after a move, a new one (nil: unchanged).
func (g *Graph) Unblock(id ieg.NodeID, moved *ieg.Decision, now ieg.Time) {
	g.Transition(id, ieg.NodeRunning, ResourceAvailable, now)
	if moved != nil {
		g.Nodes[id].Decision = moved
	}
}

// Preempt takes a running or blocked node off its device; Requeue makes it
// ready again once its KV is saved, or dropped to be recomputed.
func (g *Graph) Preempt(id ieg.NodeID, now ieg.Time) {
	g.Transition(id, ieg.NodePreempted, PreemptionTriggered, now)
}

// Requeue ends a preemption.
func (g *Graph) Requeue(id ieg.NodeID, kvSaved bool, now ieg.Time) {
	guard := KVDropped
	if kvSaved {
		guard = KVSaved
	}
	g.Transition(id, ieg.NodeReady, guard, now)
}

// Take completes a running branch node: of its successors only those in taken
// go on, the others and what hangs on them alone are not run.
func (g *Graph) Take(branch ieg.NodeID, taken []ieg.NodeID, now ieg.Time) {
	chosen := func(id ieg.NodeID) bool {
		for _, t := range taken {
			if t == id {
				return true
			}
		}
		return false
	}
	for i := range g.Edges {
		to := g.Edges[i].To
		if g.Edges[i].From == branch && !chosen(to) && !g.Nodes[to].State.Final() {
			g.Transition(to, ieg.NodeCancelled, BranchNotTaken, now)
		}
	}
	g.Complete(branch, now)
}

// CancelNode gives up one node and what depends on it.
func (g *Graph) CancelNode(id ieg.NodeID, note string, now ieg.Time) {
	g.Transition(id, ieg.NodeCancelled, Cancelled, now)
	g.Nodes[id].Note = note
	g.settle(now)
}

// Cancel gives up every node that is not final.
func (g *Graph) Cancel(note string, now ieg.Time) {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; !n.State.Final() {
			g.Transition(n.ID, ieg.NodeCancelled, Cancelled, now)
			n.Note = note
		}
	}
}
