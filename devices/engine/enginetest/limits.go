package enginetest

import "time"

const (
	// stepWait is the longest that a single step, load or restart may take
	// before a test fails.
	stepWait = 60 * time.Second
	// outputTokens is how many tokens the tests generate.
	outputTokens = 24
)
