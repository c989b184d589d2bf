// Package tier is the seam to stores of KV blocks that outlive the process.
// tier/nvme is the real one; tiertest holds the fake, the faults and the suite
// that both must pass.
//
// A store keeps blocks by name, whole or not at all: after the process or the
// host ends at any moment, a block is there with all its bytes or it is
// missing. It proves nothing about the bytes: their digest is checked by who
// reads them (memory/pager).
package tier
