// Package kernel is the decision core of a node: a pure state machine. Facts
// go in through Machine.Apply, decisions come out as one Ready; it does no
// I/O, reads no clock, starts nothing, logs nothing. The same machine runs
// under kernel/run on a host and under bench/sim with a virtual clock.
//
// It owns requests and their graphs, the sequences of each request, the
// queues, and the ledger of each engine's KV (memory/kv). It does not own
// engines' processes, sockets, text or time.
//
// Order promised: facts about one engine arrive in the order in which they
// happened; a StepDone of an older epoch is ignored. Decisions of one Apply
// belong together and are carried out in the order of Ready's fields.
//
// A sequence is in one of these states:
//
//	           admitted to a slot            stopped, cancelled
//	waiting ───────────────────────▶ running ───────────────────▶ finished
//	   ▲                               │
//	   └───────────────────────────────┘
//	     preempted (recompute), or the engine was lost
//
// A waiting sequence may await a prefix: another sequence is computing tokens
// that it shares, and it is admitted when they are there.
package kernel
