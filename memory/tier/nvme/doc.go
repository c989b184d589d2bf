// Package nvme keeps KV blocks in a folder: their bytes in append-only extent
// files, what is known of them in a Badger index beside these. It is the
// tier.Store of the NVMe tier.
//
//	lock       held by the one store that is open
//	schema     what wrote the folder; another schema is moved to old-N, and
//	           the log says so
//	opening    attempts to open the index that did not return
//	ballast    space given up when the disk is full, so that deletes go on
//	index/     Badger: b<hash> a block, t<hash> its tokens,
//	           x<file><offset> the block at a place, f<file> a file's record
//	extents/   <file>.kv: blocks one after the other, each on a 4 KiB border
//	old-N/     what another schema left, removed in the background
//
// A batch of blocks is written, then synced, then named by one transaction
// that also moves the end of the files it went to. So what the index names is
// whole; bytes beyond a file's recorded end belong to nobody and are cut off
// when the folder is opened.
//
// Extent files only grow, until they are removed. Space of deleted blocks comes
// back when a file holds no more live ones, or fewer than half: those are
// copied to the head first. A reader opens the file by name; when that is gone
// it asks the index again, and when it is open the bytes stay.
//
// Before a batch is named, its files must still be what their names lead to:
// what is written to a removed file is gone once it is closed. A file that
// vanished is forgotten with its blocks, and the batch goes to another.
//
// Store.mu guards the head, the extent table and transactions. Get, Block and
// Each don't take it.
package nvme
