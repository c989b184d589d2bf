package place

import (
	"time"

	"ieg"
)

// Limits and defaults of the package.
const (
	// TopK is the default number of devices or groups kept per node.
	TopK = 4
	// Budget is the default number of placements evaluated per plan. One
	// evaluation scores one node on one candidate in the context of the rest.
	Budget = 200
	// MaxCandidates bounds a node's list once it has been widened by the
	// devices near its neighbours.
	MaxCandidates = 12
	// MaxNodes and MaxEdges bound one problem.
	MaxNodes = 1024
	MaxEdges = 8192
	// MaxDegree bounds a device group.
	MaxDegree = 64
	// MaxSubsets bounds the groups of one host or domain that are all looked
	// at, MaxGroups those of a node before only the fastest are.
	MaxSubsets = 128
	MaxGroups  = 256
	// widen is how many of the best options in view of a node's neighbours are
	// put on its list each time.
	widen = 4
	// FewOptions is the most options of a node for which the lists are widened
	// pair by pair; beyond, the many options near the top serve as well.
	FewOptions = 256
	// RescueBudget bounds the search for any plan where greedy found no room.
	RescueBudget = 4000
	// MaxDevices bounds a pool.
	MaxDevices = 1 << 16
	// MaxReservations bounds the books of a pool.
	MaxReservations = 1 << 16
)

// DefaultLadder is what links are taken for until they are measured:
// bandwidth decides, so 1.34 GB of KV take 4.5 ms, 54 ms, 27 ms and 107 ms.
var DefaultLadder = Ladder{
	Domain: ieg.Link{Bandwidth: 300e9, Latency: 2 * time.Microsecond},   // NVLink, a direction
	Host:   ieg.Link{Bandwidth: 25e9, Latency: 5 * time.Microsecond},    // PCIe 4 × 16
	Rack:   ieg.Link{Bandwidth: 50e9, Latency: 10 * time.Microsecond},   // RDMA, 400 Gb/s
	Racks:  ieg.Link{Bandwidth: 12.5e9, Latency: 50 * time.Microsecond}, // 100 Gb/s
	Sites:  ieg.Link{Bandwidth: 1.25e9, Latency: 20 * time.Millisecond}, // 10 Gb/s
}
