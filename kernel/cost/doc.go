// Package cost prices work: what a node demands (FLOPs, bytes moved, IO
// bytes, memory), how long a device takes for it and why, and with which
// weights the seconds of a decision are added.
//
// It owns
//   - the semantic model: σ of prefill, decode, embed, tool and retrieval from
//     model metadata, and KV bytes by kind of attention (demand.go);
//   - T(v,d) = max(C/Cap_C, B/Cap_B, IO/Cap_IO) with its bottleneck, from
//     data-sheet capacities × fitted efficiencies (capacity.go);
//   - what was measured: the step profile of an engine (profile.go), the
//     look-up table of off-line profiling (table.go), the telemetry correction
//     on top of both (predict.go);
//   - the weights α β γ λ by class, and the rules that adapt them (weights.go,
//     adapt.go).
//
// It does not choose a device (kernel/place), does not know a graph
// (kernel/graph), keeps no clock and decides nothing. Memory is a constraint,
// never a time.
//
// The package is pure: same inputs, same answer. Its values are plain data
// with exported fields, so that they can be recorded and compared.
package cost
