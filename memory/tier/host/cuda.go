package host

import (
	"errors"
	"fmt"
	"slices"

	"ieg/cgo/cuda"
)

// register pins memory; tests put another in its place.
var register = cuda.Register

// RegisterCUDA registers the whole arena with CUDA, for the life of this
// process: copies between its pages and the device of that ordinal, or another
// one, then go by DMA. A process that has done so does nothing more.
//
// Pinning commits the memory: all of the arena is taken from the host at once
// and can't be swapped out, whether blocks use it or not. It takes about as
// long as writing all of it.
//
// An error (cuda.ErrNoDriver, cuda.ErrOutOfMemory, or another word of the
// driver) leaves the arena usable as it was; Notes tells of it.
func (a *Arena) RegisterCUDA(device int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pinned {
		return nil
	}
	_, err := register(a.mem.Bytes(), device)
	if errors.Is(err, cuda.ErrOutOfMemory) {
		err = fmt.Errorf("%w; lower kv.host", err)
	}
	if err == nil {
		a.pinned, a.notes = true, nil
		return nil
	}
	if note := "the arena is not pinned: " + err.Error(); !slices.Contains(a.notes, note) {
		a.notes = append(a.notes, note)
	}
	return err
}
