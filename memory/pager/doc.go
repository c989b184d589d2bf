// Package pager moves KV blocks between the arena (tier host) and a store
// (tier nvme), and knows what the store holds.
//
//	Move ──▶ stores ──▶ one writer ──▶ tier.Store.Put, in batches
//	     └─▶ fetches ─▶ Workers ─────▶ tier.Store.Get
//	                                   └──▶ Done, once for each move
//	Find ──▶ the index of names (memory/kv), in memory
//
// A fetch never waits behind stores, and nothing here waits for the store in
// Move or, but for the tokens of a few blocks, in Find.
//
// Proof: the digest of a block is checked before it is written, so that what
// broke in memory is not preserved, and after it was read. What is wrong is
// gone: dropped from store and index, counted, logged.
//
// Health: a store that can't be used is closed and opened again, with growing
// pauses, until it works; meanwhile moves end with an error and Find finds
// nothing. A full one refuses stores for a while; fetches go on.
package pager
