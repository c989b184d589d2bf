// Package devices finds out what this host has: the cores and the memory that
// are really granted (control groups, affinity), the topology, the GPUs, and
// what stands in the way of using them.
//
// It owns no device and starts nothing; engines live in devices/engine. All
// it reads is behind Source, so that whole machines can be test data (package
// devicestest). A thing that is missing is a Finding, never an error.
//
// # Numbers
//
// Of a CPU nothing is guessed: its FLOP/s and bandwidth are 0 until Measure
// has measured them. Of an NVIDIA GPU they are derived from what the driver
// tells (see gpu.go for the formulas): peaks, which the kernel uses through
// measured efficiencies only.
package devices
