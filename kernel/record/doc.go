// Package record is the flight recorder of the kernel: it keeps the last
// minutes of what a machine took in, in segments, each of which can be run
// again by itself and must give the same decisions.
//
// A segment begins with a snapshot of the machine (kernel.Snapshot) and goes
// on with one entry per event: the time, the event, and a digest of what the
// machine wanted done (kernel.Digest). On disk and in memory it is the same
// bytes:
//
//	"IEGREC6\n"                     8 bytes
//	length | CRC-32C | payload      4 + 4 + length bytes, big endian, repeated
//
// The first byte of a payload is its kind: header (JSON), snapshot, event,
// report of a step, end. Snapshots and events other than reports are one
// encoding/gob stream across the frames of a segment; reports are varints of
// what decisions depend on: no text, no logprobs, no vectors. Token ids are in
// both: they are user content, see Redact.
//
// Order and cost: Before and Observe are called by the loop, around each
// event. They copy what they need and never block: encoding and writing happen
// in one goroutine behind a bounded queue. When it is full the segment ends
// there, and a new one begins with a new snapshot as soon as there is room;
// what was recorded before the gap stays replayable. A segment is cut when it
// is old or large; the oldest are deleted.
//
// It does not own the machine, and nothing decides by what it does.
package record
