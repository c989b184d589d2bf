package llama

import (
	"fmt"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/devices/engine"
)

// sizing says how much KV an engine gets.
type sizing struct {
	slots      int32
	slotTokens int32 // of each slot, in streams
	// most is the context of a slot when the slots share one buffer.
	most int32
}

// size fits slots and context into memory.
func size(spec *engine.LoadSpec, info *ieg.ModelInfo, tokenBytes, budget int64) (sizing, error) {
	z := sizing{slots: spec.Slots}
	if z.slots == 0 {
		z.slots = DefaultSlots
	}
	if z.slots < 1 || z.slots > maxSlots {
		return z, fmt.Errorf("%w: %d slots; llama.cpp takes 1 to %d", ieg.ErrUnsupported, z.slots, maxSlots)
	}
	if spec.Context < 0 {
		return z, fmt.Errorf("%w: a context of %d tokens", ieg.ErrUnsupported, spec.Context)
	}
	room := budget - info.WeightBytes - computeReserve
	fits := int64(1) << 31
	if budget > 0 {
		if room <= 0 {
			return z, fmt.Errorf("%w: the model's %s and %s of buffers don't fit into %s; take a smaller model or grant more memory",
				ieg.ErrOutOfMemory, mib(info.WeightBytes), mib(computeReserve), mib(budget))
		}
		fits = room / max(tokenBytes, 1) / int64(z.slots)
	}
	if spec.Context > 0 {
		z.slotTokens = roundUp(spec.Context)
		z.most = spec.Context
		if int64(z.slotTokens) > fits {
			return z, fmt.Errorf("%w: %d slots of %d tokens need %s of KV beside %s of weights, but %s may be taken; ask for at most %d tokens or fewer slots",
				ieg.ErrOutOfMemory, z.slots, z.slotTokens, mib(int64(z.slots)*int64(z.slotTokens)*tokenBytes), mib(info.WeightBytes), mib(budget), fits/slotStep*slotStep)
		}
		return z, nil
	}
	train := info.ContextTrain
	if train <= 0 {
		train = DefaultSlotTokens
	}
	want := int64(min(train, DefaultSlotTokens))
	byTotal := DefaultKVBytes / max(tokenBytes, 1) / int64(z.slots)
	got := min(want, fits, max(byTotal, leastSlotTokens*4))
	if got < leastSlotTokens {
		return z, fmt.Errorf("%w: %d slots get %d tokens of KV each from %s, at least %d are needed; ask for fewer slots or grant more memory",
			ieg.ErrOutOfMemory, z.slots, got, mib(budget), leastSlotTokens)
	}
	z.slotTokens = int32(got / slotStep * slotStep)
	z.most = int32(min(want, got/slotStep*slotStep*int64(z.slots)))
	return z, nil
}

func roundUp(n int32) int32 { return (n + slotStep - 1) / slotStep * slotStep }

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }

// budget is the memory that the engine may take, 0 if unknown.
func budget(spec *engine.LoadSpec, dev yz.GGMLBackendDevice) int64 {
	if spec.MemoryBytes > 0 {
		return spec.MemoryBytes
	}
	free := freeMemory()
	if dev != 0 {
		f, _ := yz.GGMLBackendDeviceMemory(dev)
		free = int64(f)
	}
	return int64(float64(free) * memoryShare)
}
