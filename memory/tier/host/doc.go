// Package host is the memory of the host tier: the arena, pages of fixed size
// in memory that the node shares with its engines (cgo/mem). It knows bytes;
// which page holds what is the affair of memory/kv.
//
// The node makes the arena with New and hands File to each child, with Bytes
// and PageBytes; the child maps it with Open. Nobody unmaps it. The arena's
// methods may be called from any goroutine; who reads and writes a page at a
// time is settled by pins, not here.
//
// It also is what packs and proves a block's bytes (memory/codec), so that
// engines need to know one thing.
package host
