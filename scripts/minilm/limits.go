package main

// Limits of what is read, so that a broken file fails with a message.
const (
	maxHeaderBytes = 16 << 20  // JSON header of the tensors
	maxTextBytes   = 16 << 20  // config.json, vocab.txt
	maxModelBytes  = 512 << 20 // the tensors
	// alignBytes is the file format's default alignment of tensor data.
	alignBytes = 32
)
