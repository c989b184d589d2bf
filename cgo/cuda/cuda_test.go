package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// fake builds the library of testdata and puts it in the driver's place.
func fake(t *testing.T, flags ...string) {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler to make a library with")
	}
	file := filepath.Join(t.TempDir(), "libfake.so")
	args := append([]string{"-shared", "-fPIC", "-o", file, "testdata/fake.c"}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	replace(t, file)
}

func replace(t *testing.T, file string) {
	old := library
	library = file
	t.Cleanup(func() { library = old })
}

// recorded runs f with what is to fail, and returns the calls and the error's
// words. The memory's address, which is never the same, is "mem".
func recorded(t *testing.T, fails string, mem []byte, f func() error) string {
	t.Helper()
	log := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_CUDA_LOG", log)
	t.Setenv("FAKE_CUDA", fails)
	err := f()
	calls, readErr := os.ReadFile(log)
	if readErr != nil && !os.IsNotExist(readErr) {
		t.Fatal(readErr)
	}
	out := strings.ReplaceAll(string(calls), fmt.Sprintf("%p", mem), "mem")
	if err != nil {
		out += "error: " + strings.ReplaceAll(err.Error(), "\n", "\nerror: ") + "\n"
	}
	return out
}

// TestCalls tells which calls reach the driver, and what becomes of its codes.
func TestCalls(t *testing.T) {
	fake(t)
	mem := make([]byte, 3<<20)
	var release func() error
	datadriven.RunTest(t, "testdata/calls.txt", func(t *testing.T, d *datadriven.TestData) string {
		var device int
		d.MaybeScanArgs(t, "device", &device)
		switch d.Cmd {
		case "register":
			return recorded(t, d.Input, mem, func() (err error) {
				release, err = Register(mem, device)
				if (release == nil) != (err != nil) {
					t.Error("either a release or an error")
				}
				return err
			})
		case "release":
			return recorded(t, d.Input, mem, func() error { return release() })
		}
		return "no such command"
	})
}

func TestIdentity(t *testing.T) {
	fake(t)
	mem := make([]byte, 4096)
	for fails, want := range map[string]error{
		"cuMemHostRegister_v2=2": ErrOutOfMemory, "cuDevicePrimaryCtxRetain=2": ErrOutOfMemory,
		"cuMemHostRegister_v2=712": nil, "cuInit=100": nil,
	} {
		recorded(t, fails, mem, func() error {
			_, err := Register(mem, 0)
			if err == nil || errors.Is(err, ErrNoDriver) || errors.Is(err, ErrOutOfMemory) != (want == ErrOutOfMemory) {
				t.Errorf("%s: %v", fails, err)
			}
			return err
		})
	}
}

func TestNoDriver(t *testing.T) {
	replace(t, filepath.Join(t.TempDir(), "libcuda.so.1"))
	if release, err := Register(make([]byte, 4096), 0); !errors.Is(err, ErrNoDriver) || release != nil {
		t.Errorf("%v", err)
	}
}

// An old driver without a function is an error that names it.
func TestOldDriver(t *testing.T) {
	fake(t, "-DOLD")
	mem := make([]byte, 4096)
	recorded(t, "", mem, func() error {
		release, err := Register(mem, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err = release(); err == nil || !strings.Contains(err.Error(), "no cuMemHostUnregister") {
			t.Errorf("%v", err)
		}
		return err
	})
}

func TestRefuses(t *testing.T) {
	fake(t)
	mem := make([]byte, 4096)
	for _, c := range []struct {
		mem    []byte
		device int
	}{{nil, 0}, {mem[:0], 0}, {mem, -1}, {mem, math.MaxInt32 + 1}} {
		if out := recorded(t, "", mem, func() error {
			_, err := Register(c.mem, c.device)
			return err
		}); !strings.HasPrefix(out, "error: CUDA ") {
			t.Errorf("%d bytes on device %d:\n%s", len(c.mem), c.device, out)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int]string{4095: "4095 bytes", 3 << 19: "1.5 MiB", 4 << 30: "4 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}
