package sample

// Limits and thresholds of a draw.
const (
	// floor is the natural-log probability, relative to the likeliest token,
	// below which a token is not considered.
	floor = -24
	// highSpan is how far below the likeliest token, in natural-log units,
	// weights are computed one by one, for the first highMost tokens; all
	// others take theirs from a table with tailSteps entries per unit, each
	// right within 0.4 %.
	highSpan  = 8
	highMost  = 1024
	tailSteps = 128
	// heapMost is the largest top_k that is selected with a heap in one scan;
	// a larger one is selected by partition.
	heapMost = 1024
	// blockTokens is the span of the partial sums that shorten the walk to
	// the drawn token.
	blockTokens = 1024
	// MaxLogprobs is the most alternatives of Logprobs.
	MaxLogprobs = 64
)
