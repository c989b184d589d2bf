// Package llamax calls the few functions of libllama that the yzma binding
// lacks, or whose form there costs too much in a step: text with zero bytes,
// an abort flag that needs no call back into Go, rows of logits in place, rows
// of the KV cache, and log lines.
//
// It owns no model and no context: handles come from the binding. It loads
// nothing of its own: the library must have been opened by the binding from
// the same folder, and Open finds it again by its path.
//
// Everything unsafe is in the files whose names end in _unsafe.go.
package llamax
