// Package ieg is the vocabulary of the inference execution graph: the plain
// types that every other package speaks. It holds data, their text forms and
// their sentinel errors; it decides nothing, starts nothing and imports the
// standard library only.
//
// The words are the field's (see docs/words.md): a host runs one node runtime;
// a request is a graph of nodes; a node runs a stage; an engine runs steps; a
// step computes a batch; a sequence is one token stream with one row of KV in
// an engine.
//
// Units: tokens are counted in int32, bytes in int64, FLOPs and rates in
// float64 (per second), instants in Time, spans in time.Duration.
package ieg
