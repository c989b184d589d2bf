// Package mem maps shared memory for the life of the process: a memory file
// (memfd) that a node makes with Create and its children map with Open.
//
// The mapping is made by the C library's mmap and never undone: libraries
// that register memory with a network or a GPU watch that function and no
// other, and may keep addresses for as long as the process lives.
//
// A file is sealed: its size can't change, so no process can make another one
// fault by cutting it. Memory is taken from the host page by page when it is
// first touched, by whichever process touches it.
//
// What makes the memory better but isn't there (huge pages, locked pages, a
// near NUMA node) is left out and told by Notes; it is never an error.
//
// Everything unsafe is in the file whose name ends in _unsafe.go.
package mem
