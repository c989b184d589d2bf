package devices

import "time"

const (
	// fileBytes bounds what is read of one file of /proc or /sys.
	fileBytes = 4 << 20
	// maxNodes bounds the NUMA nodes looked at.
	maxNodes = 256
	// measureTime bounds Measure, its three parts together.
	measureTime = 90 * time.Millisecond
	// measureBytes is the memory that Measure reads through; it should be
	// larger than the caches.
	measureBytes = 64 << 20
	// lockedWanted is the locked memory, in bytes, below which pinning KV is
	// not worth while.
	lockedWanted = 64 << 20
	// memoryWanted is the available memory, in bytes, below which not even a
	// small model runs.
	memoryWanted = 512 << 20
	// unlimited is any control-group memory limit above it, in bytes: the old
	// control groups write "none" as a huge number.
	unlimited = 1 << 60
)
