package meter

import (
	"slices"

	"ieg"
)

// Snapshot is what was counted since the start: plain data, shared with no one.
type Snapshot struct {
	Now     ieg.Time
	Engines []Engine // in the order in which they were first seen
	Classes [ieg.NumClasses]Class
	// Rejected counts requests that were refused, by reason.
	Rejected [NumReasons]uint64
	// Waiting and Running are live requests. One runs while any of its
	// sequences holds a row.
	Waiting, Running int
}

// Engine is the series of one engine.
type Engine struct {
	ID     ieg.EngineID
	Model  string
	Device string
	Up     bool
	// Slots and Cells are rows of KV and the tokens they hold together.
	Slots, Cells int32
	KVType       string
	Prefixes     bool // prefixes are shared
	// KVToken is the bytes of a token's KV that can leave the device; 0: it
	// can't.
	KVToken int64
	// Waiting and Running are sequences. A sequence that was never scheduled
	// waits at the first engine of its model.
	Waiting, Running int
	// KVTokens are the computed tokens of running sequences.
	KVTokens int64
	// MFU and MBU are moving averages over steps, 0 … 1; 0 if the device's
	// figures are not known.
	MFU, MBU float64

	Deaths, Preemptions                uint64
	Steps, StepsFailed, StepsAborted   uint64
	PromptTokens, CachedTokens, Tokens uint64
	// BroughtTokens are the cached ones that came from below the device.
	BroughtTokens uint64
	// Saves are copies of KV from the device to host memory, Loads those back.
	Saves, Loads Copies
	// Finished counts requests by the reason they ended with.
	Finished [NumStops]uint64

	StepTokens, StepTime                  Histogram
	PromptSize, OutputSize, OutputSizeMax Histogram
	ComputedSize, Choices, MaxTokensAsked Histogram
	Latency                               [ieg.NumClasses]Latency
}

// Copies counts copies of KV.
type Copies struct {
	Bytes   uint64
	Seconds float64
}

// Latency holds the times of one class, in seconds.
type Latency struct {
	TTFT, ITL, TPOT, E2E              Histogram
	Queue, Prefill, Decode, Inference Histogram
}

// Class counts the requests of a class on all engines.
type Class struct {
	Arrived, Ended uint64
	// Met are those that succeeded within the SLO, Cancelled those that the
	// client ended.
	Met, Cancelled uint64
}

// Attainment is met ÷ arrived of the requests that have ended; ok is false
// while there are none.
func (c Class) Attainment() (ratio float64, ok bool) {
	judged := c.Ended - c.Cancelled
	if judged == 0 {
		return 0, false
	}
	return float64(c.Met) / float64(judged), true
}

// Usage is the share of the engine's KV that running sequences hold, 0 … 1.
func (e *Engine) Usage() float64 {
	if e.Cells == 0 {
		return 0
	}
	return min(float64(e.KVTokens)/float64(e.Cells), 1)
}

// NumStops is the number of reasons why a request ends.
const NumStops = int(ieg.StopLimit) + 1

// Reason is why a request was refused.
type Reason uint8

// The reasons.
const (
	Busy Reason = iota
	Draining
	NoModel
	ContextLength
	OtherReason
	NumReasons
)

var reasonNames = [...]string{"busy", "draining", "no_model", "context_length", "other"}

// String is the reason as a label.
func (r Reason) String() string { return reasonNames[r] }

func newEngine(id ieg.EngineID) Engine {
	e := Engine{ID: id,
		StepTokens: newHistogram(StepBounds), StepTime: newHistogram(TokenBounds),
		PromptSize: newHistogram(CountBounds), OutputSize: newHistogram(CountBounds), OutputSizeMax: newHistogram(CountBounds),
		ComputedSize: newHistogram(CountBounds), Choices: newHistogram(ChoiceBounds), MaxTokensAsked: newHistogram(CountBounds)}
	for c := range e.Latency {
		e.Latency[c] = Latency{
			TTFT: newHistogram(TTFTBounds), ITL: newHistogram(TokenBounds), TPOT: newHistogram(TokenBounds), E2E: newHistogram(RequestBounds),
			Queue: newHistogram(RequestBounds), Prefill: newHistogram(RequestBounds), Decode: newHistogram(RequestBounds), Inference: newHistogram(RequestBounds)}
	}
	return e
}

func (e Engine) clone() Engine {
	for _, h := range []*Histogram{&e.StepTokens, &e.StepTime, &e.PromptSize, &e.OutputSize, &e.OutputSizeMax, &e.ComputedSize, &e.Choices, &e.MaxTokensAsked} {
		*h = h.clone()
	}
	for c := range e.Latency {
		l := &e.Latency[c]
		for _, h := range []*Histogram{&l.TTFT, &l.ITL, &l.TPOT, &l.E2E, &l.Queue, &l.Prefill, &l.Decode, &l.Inference} {
			*h = h.clone()
		}
	}
	return e
}

// Snapshot copies the counts as of the last Observe.
func (m *Meter) Snapshot() Snapshot {
	s := Snapshot{Now: m.now, Classes: m.classes, Rejected: m.rejected, Running: m.running, Waiting: len(m.requests) - m.running}
	s.Engines = make([]Engine, 0, len(m.engines))
	for _, e := range m.engines {
		s.Engines = append(s.Engines, e.Engine.clone())
	}
	for i := range s.Engines {
		e := &s.Engines[i]
		if slices.IndexFunc(s.Engines, func(o Engine) bool { return o.Model == e.Model }) == i {
			e.Waiting += m.unplaced[e.Model]
		}
	}
	return s
}
