package nvml

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
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

// TestStub reads a library made for the test: the binding in use must take
// every layout as the header has it.
func TestStub(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to make a library with")
	}
	file := filepath.Join(t.TempDir(), "libstub.so")
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", file, "testdata/stub.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer func(old string) { library = old }(library)
	library = file
	got, err := List()
	first := Device{
		Index: 0, Name: "Stub 1000", UUID: "GPU-a", PCI: "00000000:1B:00.0", Major: 9, Minor: 1, Cores: 16896,
		ClockMHz: 1980, MemClockMHz: 3201, BusBits: 6144, Memory: 151 << 30, Free: 100 << 30,
		Compute: 0.45, MemoryUse: 0.62, NVLinks: 4, NVLinkVersion: 4,
	}
	second := first
	second.Index, second.UUID, second.BusBits = 1, "GPU-b", 0
	want := Report{Driver: "570.1", Devices: []Device{first, second}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v (%v)\nwant %+v", got, err, want)
	}
}
