package nvme

import "time"

const (
	// BatchBytes is the most bytes that one fdatasync and one transaction
	// cover, one larger block aside.
	BatchBytes = 64 << 20
	// batchBlocks is the most blocks of one transaction: with their tokens
	// they stay below the index's bound of 15 % of memTableBytes.
	batchBlocks = 256
	// BlockBytes is the most bytes of a block.
	BlockBytes = 1 << 30
	// FileBytes is the default size of an extent file, minFileBytes the least.
	FileBytes    = 256 << 20
	minFileBytes = 64 << 10
	// filesOfSize is how many extent files a size budget is divided into.
	filesOfSize = 16

	// ReserveBytes is the most free disk that is kept by default, and
	// reserveShare the share of the disk above which less is kept.
	ReserveBytes = 1 << 30
	reserveShare = 50 // 1/50 = 2 %
	// MinReserve is the least: what the index writes through mappings before
	// the free space is looked at again.
	MinReserve = 64 << 20
	// ballastBytes is given up when the disk is so full that deletes fail;
	// deleteRoom is what a delete wants free.
	ballastBytes = 32 << 20
	deleteRoom   = 16 << 20

	// alignBytes is where blocks begin in a file: on pages of their own, so that
	// one can be read past the page cache, and dropped from it.
	alignBytes = 4096
	// vectors is the most parts of one system call (IOV_MAX).
	vectors = 1024

	// moveBytes is what reclaiming copies before it lets writers in.
	moveBytes = 8 << 20
	// moveRate bounds copying, in bytes a second, while there is no hurry.
	moveRate = 128 << 20
	// copyBytes is the buffer of a copy.
	copyBytes = 1 << 20
	// waitMost bounds one wait of the reclaimer.
	waitMost = 10 * time.Second

	// openAttempts is how many times opening the index may kill the process
	// before the index is set aside.
	openAttempts = 3
	// rewrites is how often a batch is written whose file vanishes each time.
	rewrites = 4
	// lookups bounds how often a read follows a block that moves.
	lookups = 8
	// sealedReads is the most encrypted blocks that are read at a time: each
	// needs a buffer.
	sealedReads = 4
	// eachBlocks is how many blocks are decoded between two looks at the
	// context.
	eachBlocks = 1024

	// Memory of the index.
	memTableBytes   = 4 << 20
	memTables       = 2
	blockCacheBytes = 8 << 20 // with a key only
	indexCacheBytes = 16 << 20
	valueLogBytes   = 1 << 20
	tableBytes      = 2 << 20
)
