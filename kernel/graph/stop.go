package graph

import (
	"time"

	"ieg"
)

// Admit marks the first admission, from which the timeout runs.
func (g *Graph) Admit(now ieg.Time) {
	if g.Admitted == 0 {
		g.Admitted = now
	}
}

// End is the instant at which running nodes must stop: the request's deadline
// or the timeout, whichever comes first.
func (g *Graph) End() ieg.Time {
	end := g.Deadline
	if g.Limits.Timeout > 0 && g.Admitted != 0 {
		end = min(end, g.Admitted.Add(g.Limits.Timeout))
	}
	return end
}

// SetTokens reports a node's own tokens and how many of the tokens it needed
// were cached.
func (g *Graph) SetTokens(id ieg.NodeID, tokens, cached int32) {
	g.Nodes[id].Tokens, g.Nodes[id].Cached = tokens, cached
}

// Charge adds device time to a node: the wall time of its share of a step,
// times the devices that ran it.
func (g *Graph) Charge(id ieg.NodeID, seconds float64) {
	n := &g.Nodes[id]
	n.Busy += time.Duration(seconds * 1e9 * float64(max(n.Degree, 1)))
}

// Check compares what the graph used with its limits; the Hit is zero while
// none is reached. Growth has its own check in Grow.
func (g *Graph) Check(now ieg.Time) Hit {
	if g.Stopped.Limit != NoLimit {
		return g.Stopped
	}
	if now >= g.Deadline {
		return Hit{LimitDeadline, int64(now.Sub(g.Admitted)), int64(g.Deadline.Sub(g.Admitted))}
	}
	l := &g.Limits
	if *l == (Limits{}) {
		return Hit{}
	}
	u := g.Usage()
	switch {
	case l.Timeout > 0 && g.Admitted != 0 && now.Sub(g.Admitted) >= l.Timeout:
		return Hit{LimitTimeout, int64(now.Sub(g.Admitted)), int64(l.Timeout)}
	case l.MaxTokens > 0 && u.Tokens >= l.MaxTokens:
		return Hit{LimitTokens, u.Tokens, l.MaxTokens}
	case l.MaxKV > 0 && u.KV > l.MaxKV:
		return Hit{LimitKV, u.KV, l.MaxKV}
	case l.MaxCompute > 0 && u.Compute >= l.MaxCompute:
		return Hit{LimitCompute, int64(u.Compute), int64(l.MaxCompute)}
	}
	return l.structural(&u)
}

// Stop ends the graph at a limit: nodes that no device holds are cancelled;
// those that a device holds may finish until End if the limits are graceful,
// and are cancelled else or once End has passed. Output nodes stay, to return
// the partial result with the reason. The nodes cancelled while a device held
// them are appended to dst: the caller stops their work. Stop may be called
// again, at End.
func (g *Graph) Stop(dst []ieg.NodeID, hit Hit, now ieg.Time) []ieg.NodeID {
	if g.Stopped.Limit == NoLimit {
		g.Stopped = hit
	}
	atOnce := now >= g.End() || !(g.Limits.Graceful || g.Limits == (Limits{}))
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.State.Final() || n.Stage == ieg.StageOutput {
			continue
		}
		held := n.Active()
		if held && !atOnce {
			continue
		}
		g.Transition(n.ID, ieg.NodeCancelled, LimitReached, now)
		n.Note = g.Stopped.Error()
		if held {
			dst = append(dst, n.ID)
		}
	}
	g.settle(now)
	return dst
}
