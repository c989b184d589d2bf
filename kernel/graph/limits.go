package graph

import "time"

// Limits and defaults of the package.
const (
	// MaxNodes and MaxEdges bound any graph, whatever its configuration says.
	MaxNodes = 1024
	MaxEdges = 8192
	// MaxTools bounds the tool names of one request.
	MaxTools = 512
	// JournalChanges is the number of state changes kept; older ones are
	// dropped and counted.
	JournalChanges = 256

	// DefaultRetries is how often a failed node is tried again.
	DefaultRetries = 3
	// DefaultBlocked is how long a node may wait for a resource.
	DefaultBlocked = 30 * time.Second

	// ReplanError is the relative deviation from the predicted time above
	// which the nodes that have not started are planned again; deviations
	// under ReplanFloor are left alone.
	ReplanError = 0.20
	ReplanFloor = 50 * time.Millisecond

	// ToolResultTokens is the expected length of a tool's or a retrieval's
	// result in tokens, until it is known.
	ToolResultTokens = 256
	// bytesPerToken sizes text on its way along an edge.
	bytesPerToken = 4
)
