package nvml

import (
	"errors"
	"os"
	"testing"
)

// TestList holds on any host: with a driver there are devices that tell their
// memory, without one the error says so.
func TestList(t *testing.T) {
	r, err := List()
	if _, statErr := os.Stat("/proc/driver/nvidia/version"); statErr != nil {
		if !errors.Is(err, ErrNoLibrary) && err == nil && len(r.Devices) > 0 {
			t.Errorf("devices %+v without a driver", r.Devices)
		}
		return
	}
	if err != nil {
		t.Fatalf("a driver is loaded: %v", err)
	}
	for i, d := range r.Devices {
		if d.Index != i || d.Name == "" || d.UUID == "" || d.Memory <= 0 || d.Free > d.Memory || d.Major == 0 {
			t.Errorf("device %d: %+v", i, d)
		}
	}
}

func TestGeneration(t *testing.T) {
	for code, want := range map[uint32]int{0: 0, 1: 1, 3: 2, 5: 3, 6: 4, 7: 5, 8: 6, 99: 0} {
		if got := generation(code); got != want {
			t.Errorf("code %d is generation %d, want %d", code, got, want)
		}
	}
}
