// Package meter folds the kernel's events and effects into metrics: TTFT, ITL,
// TPOT, end-to-end, queue, prefill and decode times, goodput and SLO
// attainment per class, token counters, preemptions, rejections, step sizes,
// prefix-cache hits, KV and device utilisation, engine deaths.
//
// It is pure and owned by whoever feeds it: Observe is called once per Apply,
// in order, with the Ready that followed; Snapshot copies. It decides nothing,
// and publishes nothing (package api/metrics renders snapshots). Observing a
// token allocates nothing.
//
// # Definitions
//
// A series belongs to an engine; a request belongs to the engine that first
// was sent one of its sequences. Instants are those of Observe.
//
//	TTFT     door received → first token of any choice
//	ITL      each gap between two tokens of a sequence
//	TPOT     (last − first token) ÷ (tokens of a choice − 1), one value a request
//	E2E      received → last token
//	queue    arrived → first scheduled
//	prefill  first scheduled → first token; decode: first → last token;
//	inference: first scheduled → last token
//
// E2E, TPOT, prefill, decode and inference times are of requests that ended in
// success. Prompt tokens, prefix queries and hits (in tokens) are counted when
// a sequence is scheduled for the first time; a sequence that is scheduled
// again after a preemption or an engine's death is not counted twice.
//
// A request met its SLO when it succeeded within every bound of its class.
// Attainment is met ÷ arrived, over the requests that have ended, without
// those that the client cancelled; rejected, failed and late ones have not met
// it. Goodput is the rate of those that have.
//
// A preemption is seen as a batch that drops a sequence which has not ended.
// KV usage is the computed tokens of running sequences over the engine's
// cells. MFU and MBU compare each step's 2·active parameters·tokens, and its
// weights touched plus KV read and written, with the device's data sheet.
package meter
