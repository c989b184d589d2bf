// Package sched decides what advances in an engine's next step: the order of
// waiting requests and how many tokens of known text each step computes, at
// the speed that kernel/cost has fitted to the engine. It is pure.
//
// There is one rule and no phases: a sequence has known and computed tokens,
// and a step closes the gap within a token budget. A prompt, a chunk of it,
// a decode, a prefix hit and the return after a preemption are cases of it.
//
// It does not know where KV lies (memory/kv), what a graph is (kernel/graph)
// or which device runs a node (kernel/place).
package sched
