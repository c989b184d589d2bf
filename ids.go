package ieg

import (
	"strconv"
	"time"
)

// Time is an instant on the node's monotonic clock, in nanoseconds since the
// runtime started. Pure code gets it as an argument and never reads a clock.
type Time int64

// Sub returns the span from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Never is later than every instant: "no deadline".
const Never = Time(1<<63 - 1)

type (
	// RequestID numbers a request on this host; counters, never reused.
	RequestID uint64
	// SeqID numbers a sequence on this host; counters, never reused.
	SeqID uint64
	// StepID numbers a step of one engine; counters, never reused.
	StepID uint64
	// EngineID numbers an engine (model × device). It outlives the engine's
	// process: an incarnation is told apart by its Epoch.
	EngineID uint32
	// Epoch counts the incarnations of an engine; facts that carry an older
	// epoch than the engine's are dropped.
	Epoch uint32
	// Slot is one row of KV inside an engine: a llama.cpp sequence id.
	Slot int32
	// Token is a token id of a model's vocabulary.
	Token int32
	// NodeID names a node inside its graph.
	NodeID int32
)

// NoSlot marks a sequence that holds no row of KV.
const NoSlot = Slot(-1)

// String prints the request's number as it is shown to people.
func (id RequestID) String() string { return "r" + strconv.FormatUint(uint64(id), 10) }

// Class is the service class of a request. Lower is more urgent.
type Class uint8

// The classes of the specification, section 2.
const (
	P0 Class = iota // real-time chat: TTFT < 200 ms, ITL < 20 ms; may preempt
	P1              // interactive agent: end to end < 5 s; limited preemption
	P2              // batch: throughput; may be preempted
	NumClasses
)

// String returns "P0", "P1" or "P2".
func (c Class) String() string { return "P" + strconv.Itoa(int(c)) }
