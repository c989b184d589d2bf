package graph

import (
	"errors"
	"fmt"
	"slices"

	"ieg"
	"ieg/kernel/cost"
)

// Errors of growth.
var (
	// ErrCycle: the edges would close a circle.
	ErrCycle = errors.New("edges close a circle: a graph runs forward only")
	// ErrTool: the request did not offer the tool.
	ErrTool = errors.New("no such tool in the request")
	// ErrGrow: the graph can't take the sub-graph.
	ErrGrow = errors.New("the graph can't grow here")
)

// Sub is a sub-graph to append. The ids in Edges count its own Nodes from 0;
// entries are the nodes that follow the place where it is appended, exits
// those that lead on to the output.
type Sub struct {
	Nodes          []Node
	Edges          []ieg.Edge
	Entries, Exits []int
}

// Toolbox holds the sub-graphs of possible tool calls, built with the request
// and shared by its copies.
type Toolbox struct {
	Tools []string
	// Direct is tool → prefill → decode, Retrieval tool → retrieval → prefill
	// → decode. With several calls at once the chains up to the prefill run
	// side by side and meet in a join.
	Direct, Retrieval Sub
}

// Call is one tool call of a decode that ended in it.
type Call struct {
	Tool string
	// Retrieval: what the tool names must be fetched by a retrieval node.
	Retrieval bool
	// IO bytes and FLOPs of the tool, if known.
	IO    int64
	FLOPs float64
	// ResultTokens is the expected length of the result; 0: the default.
	ResultTokens int32
}

func (b builder) toolbox(tools []string, expect, limit int32) *Toolbox {
	t := &Toolbox{Tools: tools[:min(len(tools), MaxTools)]}
	tail := []Node{
		{Stage: ieg.StagePrefill, Tokens: ToolResultTokens, Degree: 1, Choice: -1},
		{Stage: ieg.StageDecode, Expect: expect, Max: limit, Degree: 1},
	}
	for i := range tail {
		tail[i].Demand = cost.Demand(b.m, tail[i].work())
	}
	result := int64(ToolResultTokens * bytesPerToken)
	chain := func(head ...ieg.Stage) Sub {
		s := Sub{Entries: []int{0}}
		for _, stage := range head {
			s.Nodes = append(s.Nodes, Node{Stage: stage, Degree: 1, Choice: -1, Demand: ieg.Demand{IO: float64(result)}})
		}
		s.Nodes = append(s.Nodes, tail...)
		for i := range len(s.Nodes) - 1 {
			bytes := result
			if s.Nodes[i].Stage == ieg.StagePrefill {
				bytes = s.Nodes[i].Demand.KV
			}
			s.Edges = append(s.Edges, ieg.Edge{From: ieg.NodeID(i), To: ieg.NodeID(i + 1), Bytes: bytes})
		}
		s.Exits = []int{len(s.Nodes) - 1}
		return s
	}
	t.Direct = chain(ieg.StageTool)
	t.Retrieval = chain(ieg.StageTool, ieg.StageRetrieval)
	return t
}

// GrowTools appends what follows a decode that ended in tool calls: the calls'
// chains, a join if there are several, then prefill and decode of the next
// round, which leads to the output. m prices the new nodes; context is the
// number of tokens that the sequence holds. On an error (ErrTool, a Hit, …)
// the graph is as before.
func (g *Graph) GrowTools(decode ieg.NodeID, calls []Call, m *ieg.ModelInfo, context int32, now ieg.Time) ([]ieg.NodeID, error) {
	from := g.Node(decode)
	switch {
	case g.Tools == nil:
		return nil, fmt.Errorf("%w: %v offers no tools", ErrGrow, g.Request)
	case from == nil || from.Stage != ieg.StageDecode || len(calls) == 0:
		return nil, fmt.Errorf("%w: node %d is no decode with tool calls", ErrGrow, decode)
	case from.State != ieg.NodeCompleted && from.State != ieg.NodeRunning:
		return nil, fmt.Errorf("%w: decode %d is %v", ErrGrow, decode, from.State)
	}
	for _, e := range g.Edges {
		if e.From == decode && g.Nodes[e.To].Stage == ieg.StageTool {
			return nil, fmt.Errorf("%w: decode %d has its tool calls already", ErrGrow, decode)
		}
	}
	for _, c := range calls {
		if !slices.Contains(g.Tools.Tools, c.Tool) {
			return nil, fmt.Errorf("%w: %q", ErrTool, c.Tool)
		}
	}
	return g.Grow(decode, g.Tools.round(from, calls, m, context), now)
}

// round instantiates the templates for a set of calls.
func (t *Toolbox) round(from *Node, calls []Call, m *ieg.ModelInfo, context int32) Sub {
	var s Sub
	var ends []ieg.NodeID
	tokens := int32(0)
	for _, c := range calls {
		head := &t.Direct
		if c.Retrieval {
			head = &t.Retrieval
		}
		base := len(s.Nodes)
		s.Entries = append(s.Entries, base)
		for i := 0; head.Nodes[i].Stage != ieg.StagePrefill; i++ {
			n := head.Nodes[i]
			n.Name = c.Tool
			if c.IO > 0 && i == 0 {
				n.Demand.IO = float64(c.IO)
			}
			if i == 0 {
				n.Demand.FLOPs = c.FLOPs
			}
			if i > 0 {
				s.Edges = append(s.Edges, ieg.Edge{From: ieg.NodeID(base + i - 1), To: ieg.NodeID(base + i), Bytes: head.Edges[i-1].Bytes})
			}
			s.Nodes = append(s.Nodes, n)
		}
		ends = append(ends, ieg.NodeID(len(s.Nodes)-1))
		if c.ResultTokens <= 0 {
			c.ResultTokens = ToolResultTokens
		}
		tokens += c.ResultTokens
	}
	s.next(from, ends, t, m, context, tokens)
	return s
}

// next adds the join (for several ends), the prefill of the results and the
// decode of the next round.
func (s *Sub) next(from *Node, ends []ieg.NodeID, t *Toolbox, m *ieg.ModelInfo, context, tokens int32) {
	tail := t.Direct.Nodes[len(t.Direct.Nodes)-2:]
	prefill, decode := tail[0], tail[1]
	prefill.Tokens, prefill.Past = tokens, context
	decode.Past = context + tokens
	for _, n := range []*Node{&prefill, &decode} {
		n.Round, n.Choice = from.Round+1, from.Choice
		n.Demand = cost.Demand(m, n.Work())
	}
	bytes := int64(tokens) * bytesPerToken
	if len(ends) > 1 {
		join := ieg.NodeID(len(s.Nodes))
		s.Nodes = append(s.Nodes, Node{Stage: ieg.StageJoin, Degree: 1, Choice: from.Choice})
		for _, e := range ends {
			s.Edges = append(s.Edges, ieg.Edge{From: e, To: join, Bytes: bytes / int64(len(ends))})
		}
		ends = []ieg.NodeID{join}
	}
	p := ieg.NodeID(len(s.Nodes))
	s.Nodes = append(s.Nodes, prefill, decode)
	s.Edges = append(s.Edges, ieg.Edge{From: ends[0], To: p, Bytes: bytes},
		ieg.Edge{From: p, To: p + 1, Bytes: cost.KVBytes(m, decode.Past)})
	s.Exits = []int{int(p + 1)}
}

// Grow appends a sub-graph after a node and leads its exits to the graph's
// output nodes. It returns the new ids. A graph that was stopped does not
// grow; a limit that growth would exceed is returned as a Hit; edges that
// close a circle are ErrCycle. On an error the graph is as before.
func (g *Graph) Grow(after ieg.NodeID, s Sub, now ieg.Time) ([]ieg.NodeID, error) {
	if err := g.mayGrow(after, &s); err != nil {
		return nil, err
	}
	base := ieg.NodeID(len(g.Nodes))
	nodes, edges := g.Nodes, g.Edges
	ids := make([]ieg.NodeID, len(s.Nodes))
	for i, n := range s.Nodes {
		ids[i] = base + ieg.NodeID(i)
		n.ID, n.State, n.Guard, n.Since = ids[i], ieg.NodeInit, NoGuard, now
		nodes = append(nodes, n)
	}
	for _, e := range s.Edges {
		e.From, e.To = e.From+base, e.To+base
		edges = append(edges, e)
	}
	for _, i := range s.Entries {
		edges = append(edges, ieg.Edge{From: after, To: ids[i], Bytes: int64(s.Nodes[i].Demand.IO)})
	}
	for _, i := range s.Exits {
		for j := range g.Nodes {
			if n := &g.Nodes[j]; n.Stage == ieg.StageOutput && ahead(n) {
				edges = append(edges, ieg.Edge{From: ids[i], To: n.ID, Bytes: int64(s.Nodes[i].Expect) * bytesPerToken})
			}
		}
	}
	if err := g.check(nodes, edges); err != nil {
		return nil, err
	}
	g.Nodes, g.Edges = nodes, edges
	g.settle(now)
	return ids, nil
}

func (g *Graph) mayGrow(after ieg.NodeID, s *Sub) error {
	switch {
	case g.Stopped.Limit != NoLimit:
		return g.Stopped
	case g.Node(after) == nil:
		return fmt.Errorf("%w: no node %d", ErrGrow, after)
	case len(s.Nodes) == 0 || len(s.Entries) == 0:
		return fmt.Errorf("%w: the sub-graph has no entry", ErrGrow)
	case len(g.Nodes)+len(s.Nodes) > MaxNodes || len(g.Edges)+len(s.Edges) > MaxEdges:
		return fmt.Errorf("%w: more than %d nodes or %d edges", ErrGrow, MaxNodes, MaxEdges)
	}
	in := func(id ieg.NodeID) bool { return id >= 0 && int(id) < len(s.Nodes) }
	for _, e := range s.Edges {
		if !in(e.From) || !in(e.To) {
			return fmt.Errorf("%w: edge %d → %d leaves the sub-graph", ErrGrow, e.From, e.To)
		}
	}
	for _, i := range slices.Concat(s.Entries, s.Exits) {
		if i < 0 || i >= len(s.Nodes) {
			return fmt.Errorf("%w: entry or exit %d is no node of the sub-graph", ErrGrow, i)
		}
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.Stage == ieg.StageOutput && !ahead(n) && len(s.Exits) > 0 {
			return fmt.Errorf("%w: the output is %v already", ErrGrow, n.State)
		}
	}
	return nil
}

// ahead tells whether an output can still wait for more.
func ahead(n *Node) bool { return n.State == ieg.NodeInit || n.State == ieg.NodeReady }

// check refuses circles and counts the graph as it would be.
func (g *Graph) check(nodes []Node, edges []ieg.Edge) error {
	var buf [64]ieg.NodeID
	if _, ok := order(buf[:0], len(nodes), edges); !ok {
		return ErrCycle
	}
	grown := *g
	grown.Nodes, grown.Edges = nodes, edges
	u := grown.Usage()
	if hit := g.Limits.structural(&u); hit.Limit != NoLimit {
		return hit
	}
	return nil
}

// Connect adds an edge between two nodes of which the later has not started.
func (g *Graph) Connect(e ieg.Edge) error {
	from, to := g.Node(e.From), g.Node(e.To)
	switch {
	case from == nil || to == nil:
		return fmt.Errorf("%w: edge %d → %d has no such ends", ErrGrow, e.From, e.To)
	case to.State != ieg.NodeInit:
		return fmt.Errorf("%w: node %d is %v already", ErrGrow, e.To, to.State)
	case len(g.Edges) >= MaxEdges:
		return fmt.Errorf("%w: more than %d edges", ErrGrow, MaxEdges)
	}
	edges := append(slices.Clip(g.Edges), e)
	if err := g.check(g.Nodes, edges); err != nil {
		return err
	}
	g.Edges = edges
	return nil
}
