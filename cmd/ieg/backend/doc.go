// Package backend fetches builds of the engine's library: for the CPU, Vulkan
// and CUDA.
//
// It owns the list of builds, pinned by version and checksum, and the folders
// below <cache>/lib that it lays out, each with the MANIFEST that
// devices/engine/lib reads. The package manager npm brings the archive; this
// package checks it before anything of it is unpacked, and a folder appears
// whole, by a rename, or not at all. It loads no library.
package backend
