package enginetest

import "time"

const (
	// stepWait is the longest that a single step, load or restart may take
	// before a test fails.
	stepWait = 60 * time.Second
	// outputTokens is how many tokens the tests generate.
	outputTokens = 24
	// tailTokens is the part of a row behind its last full block: a piece and
	// the beginning of another.
	tailTokens = 70
	// arenaBytes is the size of the suite's arena, which is touched as far as
	// it is used; arenaPage is no power of two, so that pieces straddle pages.
	arenaBytes = 8192 * arenaPage
	arenaPage  = 12 << 10
)
