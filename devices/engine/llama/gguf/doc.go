// Package gguf reads the header of a GGUF model file: its metadata and its
// table of tensors. It checks what llama.cpp takes on trust, so that a
// damaged, cut or foreign file is an error here and not a crash there. It
// reads no tensor data.
//
// The format: magic "GGUF", version (2 or 3), number of tensors, number of
// key-value pairs, the pairs, the tensor infos, then the data, each tensor at
// an aligned offset.
package gguf
