package graph

import (
	"slices"
	"strconv"
	"time"

	"ieg"
)

// Node is one stage of a request. Its fields are read by anyone and changed
// by the methods of Graph only.
type Node struct {
	ID      ieg.NodeID
	Stage   ieg.Stage
	State   ieg.NodeState
	Guard   Guard // that led to State
	Epoch   uint8 // completed executions whose output was lost
	Retries uint8 // failed attempts that were tried again
	Round   uint8 // agent round; 1 is the first generation, 0 outside
	Ran     bool  // was in RUNNING at least once
	Choice  int16 // which of the request's N sequences; -1: all
	Degree  int16 // devices that run it together

	// Past tokens are known before the node starts and counted elsewhere in
	// this graph; Tokens are its own: prompt tokens beyond Past, or tokens
	// generated so far. Cached of them were not computed. Expect is the
	// expected output of a decode, Max its bound.
	Past, Tokens, Cached int32
	Expect, Max          int32

	Since      ieg.Time      // entered State
	Start, End ieg.Time      // first RUNNING, last final state; zero before
	Busy       time.Duration // device time charged

	Demand   ieg.Demand
	Name     string        // tool name, or id of a user's Node Spec
	Note     string        // detail of a failure or cancellation
	Decision *ieg.Decision // shared, never changed; nil while unplaced
	Spec     *ieg.NodeSpec // of a user graph; shared, never changed
}

// Label names the node for people: "prefill", "decode[1]", "tool:search".
func (n *Node) Label() string {
	switch {
	case n.Spec != nil:
		return n.Name
	case n.Name != "":
		return n.Stage.String() + ":" + n.Name
	case n.Round > 1:
		return n.Stage.String() + "#" + strconv.Itoa(int(n.Round))
	case n.Choice > 0:
		return n.Stage.String() + "[" + strconv.Itoa(int(n.Choice)) + "]"
	}
	return n.Stage.String()
}

// Attempts counts executions begun: retries and re-executions included,
// resumptions after a preemption or a move not.
func (n *Node) Attempts() int {
	if !n.Ran {
		return 0
	}
	return 1 + int(n.Retries) + int(n.Epoch)
}

// Active tells whether a device is bound to the node.
func (n *Node) Active() bool {
	return n.State == ieg.NodeScheduled || n.State == ieg.NodeRunning || n.State == ieg.NodeBlocked
}

// Change is one entry of the journal.
type Change struct {
	At       ieg.Time
	Node     ieg.NodeID
	From, To ieg.NodeState
	Guard    Guard
	Epoch    uint8
}

// Graph is the execution graph of one request.
type Graph struct {
	Request   ieg.RequestID
	Model     string
	Precision string
	Class     ieg.Class

	Nodes []Node     // by id
	Edges []ieg.Edge // in order of insertion
	// Tools holds the templates of possible tool calls; nil for a plain chat.
	Tools *Toolbox

	// Limits are zero (off) for a graph that can't grow.
	Limits  Limits
	Retries uint8         // max_retries
	Blocked time.Duration // longest wait in BLOCKED

	// Admitted is the first admission, from which the timeout runs; zero
	// before. Deadline is the request's own, ieg.Never if none.
	Admitted, Deadline ieg.Time
	// KV is the memory that the graph's sequences hold, as last reported.
	KV int64
	// Stopped is the limit that ended the graph, with its numbers.
	Stopped Hit

	Journal []Change
	Dropped int // changes no longer in the journal
}

// Node returns a node for reading, nil if there is none.
func (g *Graph) Node(id ieg.NodeID) *Node {
	if id < 0 || int(id) >= len(g.Nodes) {
		return nil
	}
	return &g.Nodes[id]
}

// Find returns the first node of a stage and choice (-1: any) in the newest
// round, nil if there is none.
func (g *Graph) Find(stage ieg.Stage, choice int16) *Node {
	var best *Node
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Stage == stage && (choice < 0 || n.Choice == choice) && (best == nil || n.Round > best.Round) {
			best = n
		}
	}
	return best
}

// Before appends the predecessors of a node to dst.
func (g *Graph) Before(dst []ieg.NodeID, id ieg.NodeID) []ieg.NodeID {
	for i := range g.Edges {
		if g.Edges[i].To == id {
			dst = append(dst, g.Edges[i].From)
		}
	}
	return dst
}

// After appends the successors of a node to dst.
func (g *Graph) After(dst []ieg.NodeID, id ieg.NodeID) []ieg.NodeID {
	for i := range g.Edges {
		if g.Edges[i].From == id {
			dst = append(dst, g.Edges[i].To)
		}
	}
	return dst
}

// Order appends the nodes in topological order, lower ids first among equals.
func (g *Graph) Order(dst []ieg.NodeID) []ieg.NodeID {
	out, ok := order(dst, len(g.Nodes), g.Edges)
	if !ok {
		panic("graph: " + g.Request.String() + " has a cycle, which every way of adding edges refuses")
	}
	return out
}

// order is Kahn's algorithm; ok is false when a cycle remains.
func order(dst []ieg.NodeID, nodes int, edges []ieg.Edge) (out []ieg.NodeID, ok bool) {
	var buf [64]int16
	waits := buf[:0]
	if nodes > len(buf) {
		waits = make([]int16, 0, nodes)
	}
	waits = waits[:nodes]
	clear(waits)
	for i := range edges {
		waits[edges[i].To]++
	}
	first := len(dst)
	for range nodes {
		// The lowest id without open predecessors; graphs are small.
		next := slices.Index(waits, 0)
		if next < 0 {
			return dst[:first], false
		}
		waits[next] = -1
		dst = append(dst, ieg.NodeID(next))
		for i := range edges {
			if int(edges[i].From) == next {
				waits[edges[i].To]--
			}
		}
	}
	return dst, true
}

// Ready appends the nodes that could be placed and run now: in READY with all
// inputs there. (A node that waits for the re-execution of its input is in
// READY without being listed.)
func (g *Graph) Ready(dst []ieg.NodeID) []ieg.NodeID {
	for i := range g.Nodes {
		if n := &g.Nodes[i]; n.State == ieg.NodeReady && g.satisfied(n) == inputsDone {
			dst = append(dst, n.ID)
		}
	}
	return dst
}

// Done tells whether every node is final.
func (g *Graph) Done() bool {
	for i := range g.Nodes {
		if !g.Nodes[i].State.Final() {
			return false
		}
	}
	return true
}

// Clone is a deep copy; only what never changes (decisions, Node Specs, tool
// templates) is shared.
func (g *Graph) Clone() *Graph {
	c := *g
	c.Nodes = slices.Clone(g.Nodes)
	c.Edges = slices.Clone(g.Edges)
	c.Journal = slices.Clone(g.Journal)
	return &c
}
