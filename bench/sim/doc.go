// Package sim is a second kernel/run: a heap, a clock and a loop around the
// same kernel.Machine, with virtual time and synthetic engines in this process.
// What it simulates is the policy that is shipped.
//
// It owns the virtual clock, the engines' incarnations and their faults, the
// clients and what they check: every request ends exactly once, the tokens of
// a choice come in order and are those of the engine's text, nothing is held
// when nobody is left. It decides nothing: batches, order and admission are
// the machine's.
//
// A run is a function of its Config: equal configurations give equal runs, so
// a failing seed is the whole bug report.
package sim
