// Package events publishes which KV blocks the node's tiers got and lost, over
// ZMQ in vLLM's form, so that routers that know vLLM's workers know this one.
//
// A Publisher is an observer of the kernel's loop. It copies what the loop
// tells into a bounded queue and returns; a goroutine encodes and hands on to
// each subscriber's own bounded queue. Nothing that a subscriber does or fails
// to do reaches the loop, nor another subscriber: what doesn't fit is dropped
// and counted, and its number in the stream is missing.
//
// A message has three frames: the topic "kv@ADDRESS@MODEL", where ADDRESS is
// that of the node's API; a number, 8 bytes big-endian, one more with each
// message of the node, whatever the topic; and the payload in msgpack,
// [seconds since 1970, events, 0]. Events are maps (as in vLLM since June 2026) or, for
// older consumers, arrays. A block's hash is the last 8 bytes of its name as a
// big-endian unsigned integer, which is how vLLM shortens its own by default
// and what every consumer takes. Media are GPU (an engine's cells, whatever the
// device is), CPU (the arena) and STORAGE (the data folder). A block has 256
// tokens, or fewer at the end of a text; a tenant's salt is in the hash, so that
// there are no extra keys.
//
// The first message of a node begins with AllBlocksCleared: what a consumer
// knows from an earlier life of the node is void. Blocks in the data folder are
// told again when they are found. It stands there once and not for each model,
// since there are consumers that then forget all models of the node.
//
// With a replay port, a REQ or DEALER socket that sends the number of the first
// message that it wants gets those that are still kept, then one whose number
// is −1.
//
// Events hold token ids: they are the users' texts. Nothing is encrypted and
// nobody is asked for a password; an address without a host is the loopback's.
package events
