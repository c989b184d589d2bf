package gbnf

// Limits of a grammar and of its matching.
const (
	// MaxBytes bounds a grammar's text.
	MaxBytes = 1 << 20
	// maxNodes bounds the compiled grammar: a node is a character class, a
	// reference or an end (12 bytes). Repetitions count expanded.
	maxNodes = 400_000
	// maxRepeat is the largest count in {m,n}.
	maxRepeat = 20_000
	// maxNesting is the deepest nesting of parentheses.
	maxNesting = 100
	// maxStacks bounds the positions of one State; a grammar that needs more
	// is too ambiguous.
	maxStacks = 1024
	// maxVisits bounds the positions looked at for one character.
	maxVisits = 1 << 16
	// maskVisits bounds the positions looked at for one Allowed (about 50 ns
	// each); JSON grammars need some thousands to some hundred thousands.
	maskVisits = 2 << 20
	// maxFrames is the number of return chains after which those no longer
	// reachable are dropped.
	maxFrames = 1 << 14
	// maxLive is the number of reachable return chains that a State may have.
	maxLive = 1 << 16
)
