package bench

import "time"

// Limits of a run.
const (
	// Rounds of a comparison, ours and theirs in turn; the median counts.
	Rounds = 3
	// GroupTimeout bounds the measuring of one group, with as many times more
	// as there are rounds in the large form.
	GroupTimeout = 30 * time.Minute
	// ReadyTimeout bounds the start of a server.
	ReadyTimeout = 90 * time.Second
	// boundShare is how near a row that misses its bound must come to what bounds
	// it.
	boundShare = 0.9
	// kvTokenBytes is the size of a token's KV of the benchmark's model.
	kvTokenBytes = 23040
	// arenaPageBytes is the size of an arena's page, storeBytes that of the
	// NVMe tier.
	arenaPageBytes = 256 << 10
	storeBytes     = 16 << 30

	// sessionLineMax bounds a line of recorded sessions, in bytes;
	// sessionTokensMax the tokens of a prompt, and what is counted in it.
	sessionLineMax   = 64 << 20
	sessionTokensMax = 1 << 22
)
