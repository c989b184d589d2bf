package ieg

import "time"

// NodeType is the kind of work of a node (specification, section 1).
type NodeType uint8

// The node types.
const (
	ComputeNode NodeType = iota // prefill, decode, embed
	MemoryNode                  // KV placement, migration, restore
	IONode                      // retrieval
	ToolNode                    // code, API or MCP call
	ControlNode                 // tokenise, routing, join, branch, output
)

var nodeTypeNames = [...]string{"compute", "memory", "io", "tool", "control"}

// String is the name used in Node Specs.
func (t NodeType) String() string { return nodeTypeNames[t] }

// MarshalText writes the name.
func (t NodeType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Stage is what a node runs.
type Stage uint8

// The stages.
const (
	StageTokenize Stage = iota
	StagePrefill
	StageDecode
	StageEmbed
	StageTool
	StageRetrieval
	StageMigrate
	StageJoin
	StageBranch
	StageOutput
)

var stageNames = [...]string{"tokenize", "prefill", "decode", "embed", "tool", "retrieval", "migrate", "join", "branch", "output"}

// String is the stage's name.
func (s Stage) String() string { return stageNames[s] }

// MarshalText writes the name.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

var stageTypes = [...]NodeType{ControlNode, ComputeNode, ComputeNode, ComputeNode, ToolNode, IONode, MemoryNode, ControlNode, ControlNode, ControlNode}

// Type is the node type of the stage.
func (s Stage) Type() NodeType { return stageTypes[s] }

// NodeState is the state of a node (specification, section 1).
type NodeState uint8

// The states; COMPLETED, TERMINAL and CANCELLED are final (COMPLETED may be
// left in partial re-execution only).
const (
	NodeInit NodeState = iota
	NodeReady
	NodeScheduled
	NodeRunning
	NodeBlocked
	NodePreempted
	NodeCompleted
	NodeFailed
	NodeTerminal
	NodeCancelled
)

var nodeStateNames = [...]string{"INIT", "READY", "SCHEDULED", "RUNNING", "BLOCKED", "PREEMPTED", "COMPLETED", "FAILED", "TERMINAL", "CANCELLED"}

// String is the state's name.
func (s NodeState) String() string { return nodeStateNames[s] }

// MarshalText writes the name.
func (s NodeState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Final tells whether the node will do no more work in this epoch.
func (s NodeState) Final() bool {
	return s == NodeCompleted || s == NodeTerminal || s == NodeCancelled
}

// Demand is σ(v): what a node asks of a device.
type Demand struct {
	FLOPs float64 `json:"flops"` // floating point operations
	// Bytes is memory traffic: weights touched and KV read and written.
	Bytes float64 `json:"bytes_moved"`
	IO    float64 `json:"io_bytes"` // bytes from or to network and disk
	// Memory is the peak per device with weights; KV the whole node's KV.
	Memory int64 `json:"memory_bytes"`
	KV     int64 `json:"kv_bytes"`
}

// EdgeKind tells data from control edges.
type EdgeKind uint8

// The kinds of edges.
const (
	DataEdge EdgeKind = iota
	ControlEdge
)

// Edge leads from one node of a graph to another; Bytes is δ.
type Edge struct {
	From, To NodeID
	Kind     EdgeKind
	Bytes    int64
}

// NodeSpec is the Node Spec of the specification: the interface's form of a
// node, in YAML and on the wire.
type NodeSpec struct {
	ID       string
	Stage    Stage
	Type     NodeType
	Model    string
	Priority string // "high", "medium", "low"
	Compute  struct {
		FLOPs     float64
		Precision string
	}
	Memory struct {
		VRAM       int64 // peak per device, weights included
		KVCache    int64 // whole node
		BytesMoved int64
	}
	IO         struct{ Bytes int64 }
	LatencySLA time.Duration
	Parallel   struct {
		Strategy string // "tensor_parallel", "pipeline", "none"
		Degree   int
	}
	Affinity struct {
		KVLocation string // device id
		Required   bool   // else preferred
	}
}

// ResourceSpec is the Resource Spec of the specification: one device.
type ResourceSpec struct {
	ID, Type, Vendor, Model, Series string

	Compute struct {
		FP16, INT8 float64 // FLOP/s, OP/s
		Precisions []string
	}
	Memory struct {
		VRAM      int64
		Bandwidth float64 // bytes/s
	}
	IO struct {
		Read, Write, Net float64 // bytes/s
	}
	Interconnect struct {
		Type      string
		Bandwidth float64 // bytes/s per direction
	}
	Topology struct {
		Host, NVLinkDomain, Rack, Site string
	}
	Price       float64 // per hour
	Utilization struct {
		Compute, Memory float64 // 0 … 1
	}
}

// Link is the measured connection between two devices.
type Link struct {
	Bandwidth float64 // bytes/s
	Latency   time.Duration
}

// Decision is where a node runs and why, as the placement left it. It is not
// changed once made: graphs and their copies share it.
type Decision struct {
	Device     string        `json:"device"`            // the first, of a group
	Members    []string      `json:"members,omitempty"` // of a device group
	Predicted  time.Duration `json:"predicted_ns"`      // T(v,d)
	Queue      time.Duration `json:"queue_ns"`          // uncached work ahead
	Bottleneck string        `json:"bottleneck,omitempty"`
	Terms      []CostTerm    `json:"terms,omitempty"`
	Candidates []string      `json:"candidates,omitempty"`
	// Violated says which bound the plan is expected to miss, and by how much.
	Violated string `json:"violated,omitempty"`
}
