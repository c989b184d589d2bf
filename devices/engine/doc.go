// Package engine runs models in child processes of the node.
//
// It owns the seam of a loaded model (Runner, Loader), the wire protocol
// between node and child, the child's step loop (Serve, Main) and the
// supervision of one child (Child). It does not decide what runs, does not
// judge whether a child makes progress (the kernel does, and calls Kill), and
// knows no backend: those are the packages below it.
//
// # Two planes
//
// A child inherits two Unix stream sockets. The step plane (descriptor 3)
// carries loading, batches, reports, halt, abort and close; the control plane
// (descriptor 4) carries tokenising, which therefore never waits for a step.
// Each frame is a little-endian uint32 length, one byte of type and a body;
// see frame.go for the list.
//
// # Arena
//
// A node may share one file of pages with all its children (descriptor 5).
// KV passes through it, never through the planes: a batch names the pages
// (KVSave, KVLoad), the child copies, and the report tells the digest. A
// child that can't map the file works without. Place is a block's bytes
// there, CheckCopy what every engine refuses before it copies.
//
// # Order
//
// A child reports in this order: Loading*, then Up, then Done for each repeat
// of each batch, then Down. All notes of one Child come from one goroutine at
// a time and never overlap; nothing of an incarnation follows its Down.
package engine
