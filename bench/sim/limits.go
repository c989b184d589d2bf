package sim

import "time"

// Limits of a simulation.
const (
	// InstantEvents is the most facts at one instant of virtual time: more is
	// a loop that does not advance.
	InstantEvents = 100_000
	// EmptySteps is the most steps in a row of one engine without work.
	EmptySteps = 64
	// EventsPerToken and EventsBase bound the facts of a run by the tokens it
	// can compute at most: more is a livelock.
	EventsPerToken = 8
	EventsBase     = 20_000
	// KillTime is from a kill to the notice of the death, AbortTime from an
	// abort to the end of its step.
	KillTime  = 5 * time.Millisecond
	AbortTime = 2 * time.Millisecond
	// RequestsMax bounds the requests of a command line run.
	RequestsMax = 1_000_000
)
