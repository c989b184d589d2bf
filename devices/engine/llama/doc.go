// Package llama is the built-in engine: llama.cpp inside the engine's own
// process. It loads the libraries and a GGUF model, chooses how the KV is laid
// out by measurement, and runs steps: one forward pass over a batch, then
// sampling, grammar, detokenising and stop strings for the rows that ask.
//
// It owns the C side (model, context, threadpool), the length of the KV in
// every slot, and the sampler and text state of every sequence. It does not
// decide what runs: that is the batch's. It does not speak to other processes:
// package engine does. It writes nothing but its measurements, in StateDir, and
// the pages of the arena that a Save names.
//
// Step is called from one goroutine. Tokenize and Detokenize read the
// vocabulary only and run beside a step; Abort raises a flag that the library
// polls between operations.
//
// The pure parts are packages of their own: sample (drawing tokens), text
// (from bytes of tokens to text that may be shown), gbnf (grammars), gguf
// (reading a model file's header). tinygguf writes tiny models for tests.
//
// DESIGN.md holds the reasons and the measurements.
package llama
