package host

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ieg/cgo/cuda"
)

// registrar is what engines ask of an arena for a CUDA device; devices/engine
// declares the same.
type registrar interface{ RegisterCUDA(device int) error }

var _ registrar = (*Arena)(nil)

// The whole arena is registered once; what went wrong before is told once, and
// is forgotten when it has gone right.
func TestRegisterCUDA(t *testing.T) {
	defer func(old func([]byte, int) (func() error, error)) { register = old }(register)
	a := make5(t)
	fill(a, 3)
	var fails error
	var devices []int
	register = func(mem []byte, device int) (func() error, error) {
		devices = append(devices, device)
		if len(mem) != pages*pageBytes || &mem[0] != &a.Page(0)[0] {
			t.Errorf("%d bytes to register, not the arena", len(mem))
		}
		if fails != nil {
			return nil, fails
		}
		return func() error { return errors.New("the arena stays for good") }, nil
	}
	const noMemory = "CUDA can't pin 4 GiB: out of memory (CUDA_ERROR_OUT_OF_MEMORY); lower kv.host"
	fails = fmt.Errorf("CUDA can't pin 4 GiB: %w (CUDA_ERROR_OUT_OF_MEMORY)", cuda.ErrOutOfMemory)
	for range 2 {
		if err := a.RegisterCUDA(1); !errors.Is(err, cuda.ErrOutOfMemory) || err.Error() != noMemory {
			t.Errorf("%v, want %s", err, noMemory)
		}
	}
	fails = cuda.ErrNoDriver
	if err := a.RegisterCUDA(1); err != cuda.ErrNoDriver {
		t.Errorf("%v", err)
	}
	want := []string{"the arena is not pinned: " + noMemory, "the arena is not pinned: " + cuda.ErrNoDriver.Error()}
	if got := a.Notes(); !slices.Equal(got, want) {
		t.Errorf("notes %q\nwant %q", got, want)
	}
	fails = nil
	for device := range 3 {
		if err := a.RegisterCUDA(device); err != nil {
			t.Errorf("device %d: %v", device, err)
		}
	}
	if got := a.Notes(); len(got) != 0 {
		t.Errorf("notes %q of a pinned arena", got)
	}
	if want := []int{1, 1, 1, 0}; !slices.Equal(devices, want) {
		t.Errorf("registered for %d, want %d", devices, want)
	}
}
