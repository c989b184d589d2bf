// Package graph holds the execution graph of one request: nodes with their
// stage, state and demand σ, edges with δ, growth at run time, the limits of
// a graph, and the node state machine.
//
// It owns
//   - building: a chat becomes tokenise → prefill → decode × N → output, an
//     embedding tokenise → embed → output, with the sub-graphs of possible
//     tool calls built beforehand (build.go, grow.go, user.go);
//   - the table of arrows between node states, with guards (transition.go):
//     no other arrow exists, and taking one panics;
//   - what follows from an arrow: successors become ready, descendants of a
//     dead node are cancelled (advance.go), nodes are retried, re-planned and
//     partially re-executed (recover.go);
//   - limits, their counting rules and the graceful stop (limit.go, stop.go);
//   - the journal and the explanation (explain.go).
//
// It does not choose devices, does not run anything, keeps no clock and knows
// no other request. A Graph is plain data with exported fields and no cycles:
// it can be encoded by gob or json and cloned.
//
//	           ┌────────────────── CANCELLED ◄── every state that is not final
//	INIT ─► READY ─► SCHEDULED ─► RUNNING ─► COMPLETED
//	          ▲ ▲       │  │       ▲ │ │         │
//	          │ └───────┘  │       │ │ └► FAILED ─► TERMINAL
//	          │  re-plan   │  BLOCKED│     ▲ │
//	          │            └─────────┼─────┘ │ retry
//	          ├─ PREEMPTED ◄─────────┘       │
//	          └──────────────────────────────┴── output lost: epoch + 1
package graph
