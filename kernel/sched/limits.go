package sched

import "time"

// Limits of a step.
const (
	// ChunkTokensMin is the least prefill a step carries beside decodes:
	// smaller chunks waste the pass over the weights.
	ChunkTokensMin = 16
	// GapMax bounds a step that holds up running streams, whatever the pace.
	GapMax = 600 * time.Millisecond
)
