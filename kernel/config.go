package kernel

import (
	"fmt"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
	"ieg/kernel/sched"
)

// Config holds the choices of a machine.
type Config struct {
	// WaitingMax bounds the waiting sequences of an engine; a request that
	// would exceed it is refused with ErrBusy.
	WaitingMax int
	// Pace shares a step between running streams and prompts.
	Pace sched.Pace
	// Preemption, preemption_config of the specification.
	Preemption Preemption
	// GrantSteps is the most repeats an engine may run alone; 0 asks after
	// each step.
	GrantSteps int32
	// Prior is the speed of an engine that was never measured.
	Prior cost.Speed
	// Graph says how graphs are built and limited.
	Graph graph.Config
	// KV says how KV is kept below the device.
	KV KVConfig
}

// Preemption says when a running request gives way.
type Preemption struct {
	Enabled bool
	// MinPriorityGap is the least difference in class.
	MinPriorityGap int
	// MaxPerRequest bounds how often one sequence gives way to a more urgent
	// class. Giving way for lack of cells, or while paused, does not count.
	MaxPerRequest int
}

// DefaultConfig is the specification's.
func DefaultConfig() Config {
	return Config{
		WaitingMax: WaitingMax,
		Pace:       sched.DefaultPace(),
		Preemption: Preemption{Enabled: true, MinPriorityGap: 1, MaxPerRequest: 3},
		GrantSteps: GrantSteps,
		Prior:      cost.Speed{Base: 0.018, Seq: 0.002, Prefill: 0.005},
		Graph:      graph.DefaultConfig(),
		KV:         KVConfig{HostCodec: ieg.CompressAuto, CopyShare: 0.04, Moves: 4},
	}
}

// Validate refuses what can't work.
func (c Config) Validate() error {
	switch {
	case c.WaitingMax < 1:
		return fmt.Errorf("kernel: WaitingMax is %d, at least 1 is needed", c.WaitingMax)
	case c.Pace.PrefillShare < 0 || c.Pace.PrefillShare > 0.95:
		return fmt.Errorf("kernel: PrefillShare is %g, not in 0 … 0.95", c.Pace.PrefillShare)
	case c.Pace.PrefillShareMin < 0 || c.Pace.PrefillShareMin > 0.95:
		return fmt.Errorf("kernel: PrefillShareMin is %g, not in 0 … 0.95", c.Pace.PrefillShareMin)
	case c.Preemption.Enabled && c.Preemption.MinPriorityGap < 1:
		return fmt.Errorf("kernel: MinPriorityGap is %d, at least 1 is needed: equals would take turns in preempting each other", c.Preemption.MinPriorityGap)
	case c.Preemption.MaxPerRequest < 0:
		return fmt.Errorf("kernel: MaxPerRequest is %d, not 0 or more", c.Preemption.MaxPerRequest)
	case c.GrantSteps < 0 || c.GrantSteps > 1024:
		return fmt.Errorf("kernel: GrantSteps is %d, not in 0 … 1024", c.GrantSteps)
	case c.KV.CopyShare < 0 || c.KV.CopyShare > 0.5:
		return fmt.Errorf("kernel: CopyShare is %g, not in 0 … 0.5", c.KV.CopyShare)
	case c.KV.Moves < 1 || c.KV.Moves > 64:
		return fmt.Errorf("kernel: %d moves in flight, not 1 … 64", c.KV.Moves)
	case c.Prior.Base <= 0 || c.Prior.Prefill <= 0:
		return fmt.Errorf("kernel: the prior speed must be positive")
	}
	return c.Graph.Validate()
}
