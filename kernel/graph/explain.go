package graph

import (
	"fmt"
	"time"

	"ieg"
)

// Explain tells the story of each node, in topological order.
func (g *Graph) Explain(now ieg.Time) []ieg.NodeExplain {
	out := make([]ieg.NodeExplain, 0, len(g.Nodes))
	for _, id := range g.Order(make([]ieg.NodeID, 0, len(g.Nodes))) {
		n := &g.Nodes[id]
		x := ieg.NodeExplain{
			ID: id, Label: n.Label(), Stage: n.Stage, State: n.State, Reason: n.reason(),
			After: g.Before(nil, id), Demand: n.Demand,
			Start: n.Start, End: n.End, Actual: n.actual(now),
			Tokens: n.Tokens, Cached: n.Cached, Attempts: n.Attempts(),
		}
		if d := n.Decision; d != nil {
			x.Device, x.Predicted, x.Bottleneck = d.Device, d.Predicted, d.Bottleneck
			x.Terms, x.Candidates = d.Terms, d.Candidates
			if len(d.Members) > 1 {
				x.Device = fmt.Sprint(d.Members)
			}
			if d.Violated != "" {
				x.Reason += "; expected to miss " + d.Violated
			}
		}
		out = append(out, x)
	}
	return out
}

func (n *Node) reason() string {
	if n.Note == "" {
		return n.Guard.String()
	}
	return n.Guard.String() + ": " + n.Note
}

// actual is the time from the node's first run to its end, or to now.
func (n *Node) actual(now ieg.Time) (d time.Duration) {
	switch {
	case !n.Ran:
		return 0
	case n.State.Final():
		return n.End.Sub(n.Start)
	}
	return now.Sub(n.Start)
}

// History prints the journal, one change a line, times relative to the first.
func (g *Graph) History() []string {
	lines := make([]string, 0, len(g.Journal)+1)
	if g.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("… %d earlier changes not kept", g.Dropped))
	}
	for _, c := range g.Journal {
		epoch := ""
		if c.Epoch > 0 {
			epoch = fmt.Sprintf(" (epoch %d)", c.Epoch)
		}
		lines = append(lines, fmt.Sprintf("%12v  %s  %v → %v  %v%s",
			c.At.Sub(g.Journal[0].At), g.Nodes[c.Node].Label(), c.From, c.To, c.Guard, epoch))
	}
	return lines
}

// LimitsText lists the limits in force with what was used of them.
func (g *Graph) LimitsText() []string {
	if g.Limits == (Limits{}) {
		return nil
	}
	u, l := g.Usage(), &g.Limits
	all := []Hit{
		{LimitDepth, int64(u.Depth), int64(l.MaxDepth)},
		{LimitNodes, int64(u.Nodes), int64(l.MaxNodes)},
		{LimitToolCalls, int64(u.ToolCalls), int64(l.MaxToolCalls)},
		{LimitRounds, int64(u.Rounds), int64(l.MaxAgentRounds)},
		{LimitTokens, u.Tokens, l.MaxTokens},
		{LimitKV, u.KV, l.MaxKV},
		{LimitCompute, int64(u.Compute), int64(l.MaxCompute)},
	}
	var lines []string
	for _, h := range all {
		if h.Max > 0 {
			lines = append(lines, h.Error())
		}
	}
	if g.Stopped.Limit != NoLimit {
		lines = append(lines, "stopped by "+g.Stopped.Error())
	}
	return lines
}
