package llama

import (
	"strconv"
	"strings"

	"ieg/devices/engine"
)

// pin registers the arena with the device that KV is copied from. Where that
// fails copies are slower, and KVNote says so. Blocks that come out of the
// library's export pass through memory of the engine: nothing is to be pinned.
func (l *loading) pin(b *blocks) {
	if b == nil || b.arena == nil || !b.direct {
		return
	}
	if err := pinArena(b.arena, l.info.Backend, l.info.Device); err != nil {
		l.info.KVNote = "KV is copied through memory that is not pinned, which is slower: " + err.Error()
	}
}

// pinArena registers an arena that can be with a device that asks for it.
func pinArena(arena engine.Arena, backend, device string) error {
	if n, ok := ordinal(backend, device); ok {
		if r, can := arena.(engine.CUDARegistrar); can {
			return r.RegisterCUDA(n)
		}
	}
	return nil
}

// ordinal tells devices to register with; tests take the CPU for one.
var ordinal = cudaOrdinal

// cudaOrdinal reads the number in the name that the library gives a CUDA
// device: "CUDA0" is the first that the process sees, which is the driver's
// number too.
func cudaOrdinal(backend, device string) (int, bool) {
	digits, ok := strings.CutPrefix(device, "CUDA")
	if !ok || !strings.HasPrefix(backend, "CUDA") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return int(n), err == nil
}
