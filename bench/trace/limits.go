package trace

// Limits of a trace.
const (
	// LineMax bounds a line in bytes, RecordsMax the lines.
	LineMax    = 1 << 20
	RecordsMax = 2_000_000
	// TokensMax bounds a prompt or an output in tokens.
	TokensMax = 4 << 20
	// HashTokens is the number of tokens that a hash id stands for.
	HashTokens = 512
)
