package graph

import (
	"errors"
	"fmt"

	"ieg"
)

// ErrSpec: a Node Spec or an edge of a user graph can't be used.
var ErrSpec = errors.New("user graph")

// SpecEdge joins two Node Specs by their ids.
type SpecEdge struct {
	From, To string
	Kind     ieg.EdgeKind
	Bytes    int64
}

// FromSpecs builds a user's graph from Node Specs. Its limits are those of
// cfg from the start.
func FromSpecs(id ieg.RequestID, class ieg.Class, specs []ieg.NodeSpec, edges []SpecEdge, cfg *Config, deadline, now ieg.Time) (*Graph, error) {
	if len(specs) > MaxNodes || len(edges) > MaxEdges {
		return nil, fmt.Errorf("%w: more than %d nodes or %d edges", ErrSpec, MaxNodes, MaxEdges)
	}
	g := &Graph{Request: id, Class: class, Limits: cfg.Limits, Retries: uint8(cfg.MaxRetries), Blocked: cfg.Blocked, Deadline: deadline}
	byID := make(map[string]ieg.NodeID, len(specs))
	for i := range specs {
		s := &specs[i]
		if _, twice := byID[s.ID]; twice || s.ID == "" {
			return nil, fmt.Errorf("%w: node %d: id %q is empty or used twice", ErrSpec, i, s.ID)
		}
		byID[s.ID] = ieg.NodeID(i)
		g.Nodes = append(g.Nodes, fromSpec(ieg.NodeID(i), s))
		if g.Model == "" {
			g.Model, g.Precision = s.Model, s.Compute.Precision
		}
	}
	for _, e := range edges {
		from, okFrom := byID[e.From]
		to, okTo := byID[e.To]
		if !okFrom || !okTo {
			return nil, fmt.Errorf("%w: edge %q → %q names no node", ErrSpec, e.From, e.To)
		}
		g.Edges = append(g.Edges, ieg.Edge{From: from, To: to, Kind: e.Kind, Bytes: e.Bytes})
	}
	if _, ok := order(nil, len(g.Nodes), g.Edges); !ok {
		return nil, fmt.Errorf("%w: %w", ErrSpec, ErrCycle)
	}
	g.countRounds()
	if err := g.check(g.Nodes, g.Edges); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	g.settle(now)
	return g, nil
}

func fromSpec(id ieg.NodeID, s *ieg.NodeSpec) Node {
	return Node{
		ID: id, Stage: s.Stage, Name: s.ID, Spec: s, Choice: -1, Degree: int16(max(s.Parallel.Degree, 1)),
		Demand: ieg.Demand{
			FLOPs: s.Compute.FLOPs, Bytes: float64(s.Memory.BytesMoved), IO: float64(s.IO.Bytes),
			Memory: s.Memory.VRAM, KV: s.Memory.KVCache,
		},
	}
}

// countRounds numbers the generations: a prefill or decode is one round after
// the last decode before it.
func (g *Graph) countRounds() {
	after := make([]uint8, len(g.Nodes)) // decodes on the way to the node
	for _, id := range g.Order(nil) {
		n := &g.Nodes[id]
		switch n.Stage {
		case ieg.StagePrefill, ieg.StageDecode:
			n.Round = after[id] + 1
		}
		passed := after[id]
		if n.Stage == ieg.StageDecode {
			passed++
		}
		for _, e := range g.Edges {
			if e.From == id {
				after[e.To] = max(after[e.To], passed)
			}
		}
	}
}

// Spec is the node's Node Spec: the user's own, or the one that the builder's
// numbers make.
func (g *Graph) Spec(id ieg.NodeID) ieg.NodeSpec {
	n := &g.Nodes[id]
	if n.Spec != nil {
		return *n.Spec
	}
	s := ieg.NodeSpec{
		ID: fmt.Sprintf("%v/%d-%s", g.Request, n.ID, n.Label()), Stage: n.Stage, Type: n.Stage.Type(),
		Model: g.Model, Priority: Priority(n.Stage.Type()),
	}
	s.Compute.FLOPs, s.Compute.Precision = n.Demand.FLOPs, g.Precision
	s.Memory.VRAM, s.Memory.KVCache, s.Memory.BytesMoved = n.Demand.Memory, n.Demand.KV, int64(n.Demand.Bytes)
	s.IO.Bytes = int64(n.Demand.IO)
	s.Parallel.Strategy, s.Parallel.Degree = "none", int(n.Degree)
	if n.Degree > 1 {
		s.Parallel.Strategy = "tensor_parallel"
	}
	if n.Decision != nil && n.Stage == ieg.StageDecode {
		s.Affinity.KVLocation = n.Decision.Device
	}
	return s
}

// Priority is the priority of a node type: compute and memory high, io and
// tool medium, control low.
func Priority(t ieg.NodeType) string {
	switch t {
	case ieg.ComputeNode, ieg.MemoryNode:
		return "high"
	case ieg.IONode, ieg.ToolNode:
		return "medium"
	}
	return "low"
}
