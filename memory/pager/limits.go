package pager

import "time"

const (
	// defaultWorkers reads at once; defaultDepth bounds the moves asked for
	// and not done.
	defaultWorkers = 4
	defaultDepth   = 256
	maxWorkers     = 64
	// batchBytes bounds what is written at once, a larger block aside.
	batchBytes = 64 << 20
	// findChildren is how many children of the last full block Find compares,
	// findTime the time after which it asks for no further one.
	findChildren = 8
	findTime     = 20 * time.Millisecond
	// findNames is how many blocks Find names before it looks them up.
	findNames = 16
	// retryMin and retryMax are the pauses between attempts to open a store,
	// and to write to a full one.
	retryMin = time.Second
	retryMax = time.Minute
	// probeEvery is how often a full disk is looked at for room.
	probeEvery = 5 * time.Second
	// ownRoom is how far below the reserve the store itself may bring the free
	// disk, by its index and by copying: if less is free, others took it.
	ownRoom = 16 << 20
	// padBytes is what a store may take beyond a block's bytes.
	padBytes = 8 << 10
	// sweepMin and sweepMax bound the pause between searches for what is too
	// old; sweepLook is how many blocks one looks at without letting others in.
	sweepMin  = time.Second
	sweepMax  = 10 * time.Minute
	sweepLook = 4096
	// evictBatch is how many blocks are chosen without letting others in.
	evictBatch = 64
	// deleteBatch bounds one Delete.
	deleteBatch = 1024
	// shortage and dearth are the parts of the daily budget beyond which the
	// end of texts, and blocks of little heat, are not written; littleHeat is
	// the number of recent uses of what comes before a block that is little.
	shortage   = 0.5
	dearth     = 0.75
	littleHeat = 2.0
	// smooth is the weight of a new measurement of speed.
	smooth = 0.2
	// maxRoots bounds what is known about roots.
	maxRoots = 1 << 16
	// treeNodes bounds what Tree sums below one row.
	treeNodes = 4096
	// maxTree bounds the rows of Tree.
	maxTree = 1000
)
