package place

import (
	"errors"
	"fmt"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
)

// Errors of planning.
var (
	// ErrNoFit: no device can take a node, whatever the wait.
	ErrNoFit = errors.New("no device fits")
	// ErrMiss: every placement misses a bound and the class refuses that.
	ErrMiss = errors.New("no placement keeps the latency bound")
	// ErrProblem: the problem itself is malformed.
	ErrProblem = errors.New("placement problem")
)

// Source is data outside the plan that a node needs: KV on a device, the
// output of a node that ran, the documents of a retrieval.
type Source struct {
	Device string
	Bytes  int64
}

// Node is one node to place.
type Node struct {
	Label            string
	Stage            ieg.Stage
	Model, Precision string
	Demand           ieg.Demand
	// Work is the same in tokens, for devices whose engine speed is measured.
	Work cost.Work
	// Weights is the part of Demand.Memory that is the model's weights, per
	// device: counted once for all nodes of the model on it, and not at all
	// where resident.
	Weights int64
	// Seq > 0 names the sequence whose KV the node holds; nodes of one
	// sequence on one device hold it once.
	Seq int32
	// Degree > 1 asks for a group; Sync is the traffic inside it.
	Degree   int
	Strategy string
	Sync     cost.Sync
	Sources  []Source
	// Required names the device that must run the node or be in its group.
	Required string
	// SLA bounds queue + transfer + T; 0: none.
	SLA time.Duration
}

// Problem is what to place and by which measure.
type Problem struct {
	Nodes []Node
	// Edges connect Nodes by their index, From < To not required.
	Edges   []ieg.Edge
	Weights cost.Weights
	// Bound is the end-to-end bound of the class: with one, the critical path
	// counts too. 0: none.
	Bound time.Duration
	// Site fixes the site of the request; "" lets the planner choose one.
	Site string
	// Refuse returns ErrMiss instead of a plan that misses a bound.
	Refuse bool
	// TopK and Budget default to the package's limits.
	TopK, Budget int
}

func (pr *Problem) validate() error {
	if len(pr.Nodes) > MaxNodes || len(pr.Edges) > MaxEdges {
		return fmt.Errorf("%w: %d nodes of %d, %d edges of %d", ErrProblem, len(pr.Nodes), MaxNodes, len(pr.Edges), MaxEdges)
	}
	for i := range pr.Nodes {
		if n := &pr.Nodes[i]; n.Degree > MaxDegree {
			return fmt.Errorf("%w: %s asks for %d devices of at most %d", ErrProblem, n.Label, n.Degree, MaxDegree)
		}
	}
	for _, e := range pr.Edges {
		if e.From < 0 || int(e.From) >= len(pr.Nodes) || e.To < 0 || int(e.To) >= len(pr.Nodes) || e.From == e.To {
			return fmt.Errorf("%w: edge %d → %d", ErrProblem, e.From, e.To)
		}
	}
	return nil
}

// Reset empties the problem for reuse; capacities are kept.
func (pr *Problem) Reset() {
	nodes, edges := pr.Nodes[:0], pr.Edges[:0]
	*pr = Problem{Nodes: nodes, Edges: edges}
}

// FromSpec makes a node of a Node Spec. weights is what of its vram is the
// model's weights.
func FromSpec(s *ieg.NodeSpec, weights int64) Node {
	n := Node{
		Label: s.ID, Stage: s.Stage, Model: s.Model, Precision: s.Compute.Precision,
		Demand: ieg.Demand{
			FLOPs: s.Compute.FLOPs, Bytes: float64(s.Memory.BytesMoved), IO: float64(s.IO.Bytes),
			Memory: s.Memory.VRAM, KV: s.Memory.KVCache,
		},
		Weights: weights, Degree: s.Parallel.Degree, Strategy: s.Parallel.Strategy, SLA: s.LatencySLA,
	}
	switch {
	case s.Affinity.Required:
		n.Required = s.Affinity.KVLocation
	case s.Affinity.KVLocation != "":
		n.Sources = []Source{{s.Affinity.KVLocation, s.Memory.KVCache}}
	}
	return n
}

// FromGraph fills the problem with the nodes of a graph that are to be placed
// (not started, no control nodes: those run where the graph is owned), with
// the weights and bounds of its class. What already has a device becomes a
// source. ids maps the problem's nodes to the graph's.
func (pr *Problem) FromGraph(g *graph.Graph, m *ieg.ModelInfo, w cost.Weights, ids []ieg.NodeID) []ieg.NodeID {
	pr.Reset()
	slo := cost.SLOOf(g.Class)
	pr.Weights, pr.Bound = w, slo.E2E
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Stage.Type() == ieg.ControlNode || n.Active() || n.State.Final() {
			continue
		}
		ids = append(ids, n.ID)
		pr.Nodes = append(pr.Nodes, fromNode(g, n, m, slo))
	}
	for _, e := range g.Edges {
		from, to := at(ids, e.From), at(ids, e.To)
		switch {
		case to < 0:
		case from >= 0:
			pr.Edges = append(pr.Edges, ieg.Edge{From: ieg.NodeID(from), To: ieg.NodeID(to), Kind: e.Kind, Bytes: e.Bytes})
		case g.Nodes[e.From].Decision != nil && g.Nodes[e.From].Stage.Type() != ieg.ControlNode:
			v := &pr.Nodes[to]
			v.Sources = append(v.Sources, Source{g.Nodes[e.From].Decision.Device, e.Bytes})
		}
	}
	return ids
}

func at(ids []ieg.NodeID, id ieg.NodeID) int {
	for i, have := range ids {
		if have == id {
			return i
		}
	}
	return -1
}

func fromNode(g *graph.Graph, n *graph.Node, m *ieg.ModelInfo, slo cost.SLO) Node {
	if n.Spec != nil {
		weights := int64(0)
		if m != nil {
			weights = min(m.WeightBytes/int64(max(n.Degree, 1)), n.Demand.Memory)
		}
		return FromSpec(n.Spec, weights)
	}
	v := Node{
		Label: n.Label(), Stage: n.Stage, Work: n.Work(), Degree: int(n.Degree),
		Seq: int32(n.Choice) + 1,
	}
	v.Demand = n.Demand
	if n.Stage.Type() == ieg.ComputeNode {
		v.Model, v.Precision = g.Model, g.Precision
		v.Demand = cost.Demand(m, v.Work)
		v.Weights = m.WeightBytes / int64(max(n.Degree, 1))
		v.Sync = cost.SyncOf(m, v.Work, cost.TensorParallel)
	}
	if n.Stage == ieg.StagePrefill && slo.TTFT > 0 {
		v.SLA = slo.TTFT
	}
	return v
}
