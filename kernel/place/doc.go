// Package place decides which device, or group of devices, runs each node of
// a graph.
//
// It works in two stages. Node level: filter (capability, execution path,
// memory of what is not yet resident, required affinity, one site), score
// c = α·L + β·Q + γ·M, keep the best K per node. Graph level: a joint search
// over those — greedy, then local search — that minimises
//
//	Σ c(v,P(v)) + λ·Σ D(edges)     and α × critical path for a class with an
//	                               end-to-end bound
//
// within a budget of evaluated placements, since pure code has no clock. It is
// greedy first; then branch and bound along the forest of the heaviest edges,
// whose exact subtree costs are the lower bounds, so that most graphs end with
// a proof; then, where the budget ran out before, local search. The lists are
// widened on the way by what is best near a node's neighbours.
// Latency bounds come first: the plan with the least violation wins, then the
// cheapest; a violation is marked, or refused where the class says so. Memory,
// capability and required affinity are never violated.
//
// It owns the Pool (devices, loads, measured links, reservations), the
// Planner and the explanation of every decision. It does not know queues
// inside a device (kernel/sched), does not run or reserve anything outside
// its own books, and never looks at a vendor: only at capability, execution
// path and profile.
//
// The life of a reservation, in seconds of uncached work and bytes:
//
//	Assume ─► ASSUMED ── Confirm ─► (counted by the device's own report)
//	             └────── Forget ──► gone
//
// The package is pure. A Planner is reused and allocates nothing in the
// steady state; a Plan is valid until its Planner plans again.
package place
