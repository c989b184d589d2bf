package graph

import (
	"slices"
	"time"

	"ieg"
)

// Fail ends the attempt of a scheduled, running or blocked node. With
// retryable and a retry left it is READY again and Fail returns true; else it
// is TERMINAL, and what depends on it is cancelled.
func (g *Graph) Fail(id ieg.NodeID, note string, retryable bool, now ieg.Time) bool {
	g.Transition(id, ieg.NodeFailed, ExecutionError, now)
	return g.afterFailure(id, note, retryable, now)
}

func (g *Graph) afterFailure(id ieg.NodeID, note string, retryable bool, now ieg.Time) bool {
	n := &g.Nodes[id]
	n.Note = note
	switch {
	case retryable && n.Retries < g.Retries:
		n.Decision = nil
		g.Transition(id, ieg.NodeReady, RetryLeft, now)
		return true
	case n.Retries >= g.Retries:
		g.Transition(id, ieg.NodeTerminal, RetriesSpent, now)
	default:
		g.Transition(id, ieg.NodeTerminal, NotRetryable, now)
	}
	g.settle(now)
	return false
}

// Unschedule takes back a node that has not started: its host refused it, its
// device was lost, or it is planned again. It is no retry.
func (g *Graph) Unschedule(id ieg.NodeID, why Guard, now ieg.Time) {
	g.Transition(id, ieg.NodeReady, why, now)
}

// Deviates tells whether a node has left its plan: it took, or has run, more
// than ReplanError and ReplanFloor longer than predicted, or ended as much
// earlier.
func (g *Graph) Deviates(id ieg.NodeID, now ieg.Time) bool {
	n := &g.Nodes[id]
	if n.Decision == nil || n.Decision.Predicted == 0 || !n.Ran {
		return false
	}
	end, ended := now, n.State == ieg.NodeCompleted
	if ended {
		end = n.End
	}
	off := end.Sub(n.Start) - n.Decision.Predicted
	if off < 0 && ended {
		off = -off
	}
	return off > ReplanFloor && off > time.Duration(float64(n.Decision.Predicted)*ReplanError)
}

// Replan takes back every node that is scheduled but has not started, because
// reality left the plan, and appends them to dst.
func (g *Graph) Replan(dst []ieg.NodeID, now ieg.Time) []ieg.NodeID {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.State == ieg.NodeScheduled {
			g.Transition(n.ID, ieg.NodeReady, Replanned, now)
			dst = append(dst, n.ID)
		}
	}
	return dst
}

// Partial appends, in id order, what must run again after node failed lost
// the outputs of the completed nodes in lost: the failed node, those of its
// descendants that are not final, and of lost the nodes that any of these
// still needs. Finished nodes with their outputs are reused.
func (g *Graph) Partial(dst []ieg.NodeID, failed ieg.NodeID, lost []ieg.NodeID) []ieg.NodeID {
	again := make([]bool, len(g.Nodes))
	again[failed] = true
	for grown := true; grown; { // descendants
		grown = false
		for _, e := range g.Edges {
			if again[e.From] && !again[e.To] && !g.Nodes[e.To].State.Final() {
				again[e.To], grown = true, true
			}
		}
	}
	for grown := true; grown; { // lost inputs, and theirs
		grown = false
		for _, e := range g.Edges {
			if again[e.To] && !again[e.From] && g.Nodes[e.From].State == ieg.NodeCompleted && slices.Contains(lost, e.From) {
				again[e.From], grown = true, true
			}
		}
	}
	for i, yes := range again {
		if yes {
			dst = append(dst, ieg.NodeID(i))
		}
	}
	return dst
}

// Reexecute sends the completed nodes of a partial re-execution back to READY
// (epoch + 1); the failed node must have been dealt with by Fail. It returns
// the set, as Partial.
func (g *Graph) Reexecute(dst []ieg.NodeID, failed ieg.NodeID, lost []ieg.NodeID, now ieg.Time) []ieg.NodeID {
	first := len(dst)
	dst = g.Partial(dst, failed, lost)
	for _, id := range dst[first:] {
		switch n := &g.Nodes[id]; n.State {
		case ieg.NodeCompleted:
			g.Transition(id, ieg.NodeReady, OutputLost, now)
			n.Decision = nil
		case ieg.NodeScheduled:
			g.Transition(id, ieg.NodeReady, Replanned, now)
		}
	}
	return dst
}

// Expire fails the nodes that were BLOCKED for too long and appends them to
// dst; those with a retry left are READY again.
func (g *Graph) Expire(dst []ieg.NodeID, now ieg.Time) []ieg.NodeID {
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.State == ieg.NodeBlocked && now.Sub(n.Since) >= g.Blocked {
			g.Transition(n.ID, ieg.NodeFailed, BlockedTimeout, now)
			g.afterFailure(n.ID, "waited too long for a resource", true, now)
			dst = append(dst, n.ID)
		}
	}
	return dst
}

// Next is the next instant at which Expire or Check has something to do.
func (g *Graph) Next() ieg.Time {
	at := ieg.Never
	if !g.Done() {
		at = g.End()
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.State == ieg.NodeBlocked {
			at = min(at, n.Since.Add(g.Blocked))
		}
	}
	return at
}
