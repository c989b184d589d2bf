package kv

import "time"

// Limits and weights of the ledger below the device.
const (
	// KidsTried is the number of children, newest first, that are compared
	// with a text.
	KidsTried = 64
	// HalfLife is the time after which a use weighs half.
	HalfLife = 10 * time.Minute
	// SampleAll is the largest number of blocks of which each is weighed for
	// eviction; of more, SampleSize are, and at most SampleTries.
	SampleAll, SampleSize, SampleTries = 256, 32, 256
	// RootsNamed bounds the roots whose models are known for events.
	RootsNamed = 4096
)
