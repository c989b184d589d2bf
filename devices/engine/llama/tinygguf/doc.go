// Package tinygguf writes tiny random models of the llama architecture, with a
// byte-level vocabulary and a ChatML template, so that the mechanics of an
// engine can be tested in milliseconds where no real model is at hand. The
// text they make is noise; it is the same for the same Config.
package tinygguf
