package graph

import (
	"ieg"
	"ieg/kernel/cost"
)

// chat is the storage of the graph that nearly all requests have, so that it
// is made by one allocation.
type chat struct {
	graph   Graph
	nodes   [4]Node
	edges   [3]ieg.Edge
	journal [16]Change
}

// Build makes the first graph of a request on a model: tokenise (timed by the
// door, COMPLETED at once) → prefill → decode × N → output, or → embed →
// output. expect is E[output tokens] of a decode, 0 if nothing was learnt; it
// is cut to the request's bound. Demands and δ are filled in. A request that
// offers tools gets the templates of their calls and the limits of cfg.
func Build(req *ieg.Request, m *ieg.ModelInfo, cfg *Config, expect int32, now ieg.Time) *Graph {
	c := &chat{}
	g := &c.graph
	*g = Graph{
		Request: req.ID, Model: req.Model, Precision: Precision(m), Class: req.Class,
		Nodes: c.nodes[:0], Edges: c.edges[:0], Journal: c.journal[:0],
		Retries: uint8(cfg.MaxRetries), Blocked: cfg.Blocked, Deadline: req.Deadline,
	}
	if len(req.Tools) > 0 {
		g.Limits = cfg.Limits
	}
	b := builder{g, m}
	prompt := int32(len(req.Prompt))
	door := b.node(Node{Stage: ieg.StageTokenize, Tokens: prompt, Choice: -1})
	if req.Kind == ieg.Embed {
		embed := b.node(Node{Stage: ieg.StageEmbed, Tokens: prompt})
		output := b.node(Node{Stage: ieg.StageOutput, Choice: -1})
		b.edge(door, embed, ieg.DataEdge, int64(prompt)*bytesPerToken)
		b.edge(embed, output, ieg.DataEdge, int64(m.DModel)*4)
	} else {
		b.generation(door, req, expect)
	}
	g.settle(req.Tokenize.Start)
	g.Pass(door, "host", req.Tokenize)
	return g
}

// builder adds nodes with their demands.
type builder struct {
	g *Graph
	m *ieg.ModelInfo
}

func (b builder) generation(door ieg.NodeID, req *ieg.Request, expect int32) {
	prompt, choices := int32(len(req.Prompt)), max(req.N, 1)
	if expect <= 0 || expect > req.MaxTokens {
		expect = req.MaxTokens
	}
	prefill := b.node(Node{Stage: ieg.StagePrefill, Round: 1, Tokens: prompt, Choice: -1})
	b.edge(door, prefill, ieg.DataEdge, int64(prompt)*bytesPerToken)
	kv := cost.KVBytes(b.m, prompt)
	first := prefill + 1
	for i := range choices {
		id := b.node(Node{Stage: ieg.StageDecode, Round: 1, Past: prompt, Expect: expect, Max: req.MaxTokens, Choice: int16(i)})
		b.edge(prefill, id, ieg.DataEdge, kv)
	}
	output := b.node(Node{Stage: ieg.StageOutput, Choice: -1})
	for i := range choices {
		b.edge(first+ieg.NodeID(i), output, ieg.DataEdge, int64(expect)*bytesPerToken)
	}
	if len(req.Tools) > 0 {
		b.g.Tools = b.toolbox(req.Tools, expect, req.MaxTokens)
	}
}

// node appends n with the next id and the demand of its stage.
func (b builder) node(n Node) ieg.NodeID {
	n.ID = ieg.NodeID(len(b.g.Nodes))
	n.Degree = max(n.Degree, 1)
	n.Demand = cost.Demand(b.m, n.work())
	b.g.Nodes = append(b.g.Nodes, n)
	return n.ID
}

func (b builder) edge(from, to ieg.NodeID, kind ieg.EdgeKind, bytes int64) {
	b.g.Edges = append(b.g.Edges, ieg.Edge{From: from, To: to, Kind: kind, Bytes: bytes})
}

// work is the node in the terms of the cost model.
func (n *Node) work() cost.Work {
	w := cost.Work{Stage: n.Stage, Tokens: n.Tokens, Past: n.Past, Batch: 1, Degree: int32(n.Degree)}
	switch n.Stage {
	case ieg.StageDecode:
		w.Tokens = max(n.Expect, n.Tokens)
	case ieg.StageTool, ieg.StageRetrieval:
		w.IO = int64(n.Demand.IO)
		w.FLOPs = n.Demand.FLOPs
	}
	return w
}

// Work is what the node asks, for a cost query: of a prefill what is not
// cached, of a decode what is still expected.
func (n *Node) Work() cost.Work {
	w := n.work()
	if n.Stage == ieg.StagePrefill || n.Stage == ieg.StageEmbed {
		cached := min(n.Cached, w.Tokens)
		w.Past += cached
		w.Tokens -= cached
	}
	return w
}

// Precision is the precision that a model's weights are kept in, as devices
// and Node Specs name it.
func Precision(m *ieg.ModelInfo) string {
	if m == nil {
		return ""
	}
	switch m.Quant {
	case "", "F16", "f16":
		return "fp16"
	case "BF16", "bf16":
		return "bf16"
	case "F32", "f32":
		return "fp32"
	case "Q8_0", "q8_0", "int8":
		return "int8"
	}
	return m.Quant
}
