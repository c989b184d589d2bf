package sim

import (
	"fmt"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/kernel"
)

// Config is all there is to a run.
type Config struct {
	// Seed drives the faults. The work is made with its own seed.
	Seed     uint64
	Kernel   kernel.Config
	Engines  []Engine
	Requests []Request
	Faults   Faults
	Tiers    Tiers
	// Check proves the machine's invariants after each fact.
	Check bool
	// Verify compares each text with the engine's own.
	Verify bool
	// Unloads take engines away.
	Unloads []Unload
	// DrainAfter sends Drain at that time; 0: never.
	DrainAfter time.Duration
	// Before and Observe see each fact like those of kernel/run; may be nil.
	Before  func(now ieg.Time, ev kernel.Event, m *kernel.Machine)
	Observe func(now ieg.Time, ev kernel.Event, r *kernel.Ready)
}

// Engine is one model on one device. Engines on the same device share its
// cores: one step at a time.
type Engine struct {
	Device string
	Spec   engine.LoadSpec // of the synthetic engine
	// StepTokens lowers the engine's own bound; 0: its own.
	StepTokens int32
	// Tile is the chunk size that the engine says is cheapest; 0: any.
	Tile int32
	// LoadTime is from the start of an incarnation to its readiness, Latency
	// from the end of a step to its report and from a batch to its start.
	LoadTime, Latency time.Duration
}

// Request is one call with what its client does.
type Request struct {
	At   time.Duration // arrival
	Spec *ieg.Request
	// CancelAfter cancels after that many tokens of all choices, CancelAt that
	// long after the arrival; 0: not.
	CancelAfter int
	CancelAt    time.Duration
	// PauseAfter pauses the reader after that many tokens for PauseFor.
	PauseAfter int
	PauseFor   time.Duration
}

// Unload takes an engine (1 is the first) away, with Force at once.
type Unload struct {
	At     time.Duration
	Engine ieg.EngineID
	Force  bool
}

// Faults are probabilities per step, drawn from the run's seed.
type Faults struct {
	Fail float64 // the step fails
	Slow float64 // the step takes SlowBy times as long
	Hang float64 // the engine never answers
	Die  float64 // the process dies during the step or one of its repeats
	// SlowBy is the factor of a slow step.
	SlowBy float64
	// Most bounds the faults of a run, slow steps aside.
	Most int
	// FinalAfter: the supervisor of the first engine gives up at its n-th
	// death; 0: never.
	FinalAfter int
}

func (c *Config) validate() error {
	if len(c.Engines) == 0 {
		return fmt.Errorf("sim: there is no engine")
	}
	for i, r := range c.Requests {
		if r.Spec == nil || r.At < 0 {
			return fmt.Errorf("sim: request %d has no specification or arrives before the start", i)
		}
	}
	return nil
}
