package llama

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"ieg/devices/engine"
)

// cudaArena is an arena that can be registered.
type cudaArena struct {
	*testArena
	devices []int
	fails   error
}

func (a *cudaArena) RegisterCUDA(device int) error {
	a.devices = append(a.devices, device)
	return a.fails
}

var _ engine.CUDARegistrar = (*cudaArena)(nil)

// TestPin: the arena is registered where KV is copied from a CUDA device into
// it; what goes wrong is told and nothing else is lost.
func TestPin(t *testing.T) {
	for name, c := range map[string]struct {
		backend, device string
		direct, without bool
		want            []int
	}{
		"first":       {"CUDA", "CUDA0", true, false, []int{0}},
		"twelfth":     {"CUDA", "CUDA11", true, false, []int{11}},
		"CPU":         {"CPU", "CPU", true, false, nil},
		"Vulkan":      {"Vulkan", "Vulkan0", true, false, nil},
		"ROCm":        {"ROCm", "ROCm0", true, false, nil},
		"no number":   {"CUDA", "CUDA", true, false, nil},
		"a sign":      {"CUDA", "CUDA-1", true, false, nil},
		"a split":     {"CUDA", "CUDA_Split", true, false, nil},
		"beyond int":  {"CUDA", "CUDA4294967296", true, false, nil},
		"the export":  {"CUDA", "CUDA0", false, false, nil},
		"stays there": {"CUDA", "CUDA0", true, true, nil},
	} {
		for _, fails := range []error{nil, errors.New("out of memory; lower kv.host")} {
			a := &cudaArena{testArena: newTestArena(2, 4096), fails: fails}
			b := &blocks{direct: c.direct, arena: a}
			if c.without {
				b.arena = nil
			}
			l := &loading{}
			l.info.Backend, l.info.Device, l.info.KVToken = c.backend, c.device, 64
			l.pin(b)
			if !slices.Equal(a.devices, c.want) || l.info.KVToken != 64 {
				t.Errorf("%s: registered for %d, want %d", name, a.devices, c.want)
			}
			told := strings.Contains(l.info.KVNote, "lower kv.host")
			if told != (fails != nil && c.want != nil) || !told && l.info.KVNote != "" {
				t.Errorf("%s, error %v: note %q", name, fails, l.info.KVNote)
			}
		}
	}
	l := &loading{}
	l.info.Backend, l.info.Device = "CUDA", "CUDA0"
	l.pin(nil)
	l.pin(&blocks{direct: true, arena: newTestArena(2, 4096)})
	if l.info.KVNote != "" {
		t.Errorf("note %q without blocks, or of an arena that can't be registered", l.info.KVNote)
	}
}

// TestLoadPins: a load registers the arena once, and does not fail with it.
func TestLoadPins(t *testing.T) {
	defer func(old func(string, string) (int, bool)) { ordinal = old }(ordinal)
	ordinal = func(string, string) (int, bool) { return 3, true }
	for _, fails := range []error{nil, errors.New("out of memory; lower kv.host")} {
		for layout, want := range map[string][]int{"streams": {3}, "unified": nil} {
			spec, a := blockSpec(t)
			pinned := &cudaArena{testArena: a, fails: fails}
			spec.Arena, spec.Layout = pinned, layout
			i := start(t, spec).Info()
			if !slices.Equal(pinned.devices, want) || i.KVToken == 0 {
				t.Errorf("%s: registered for %d, want %d; KV of %d bytes a token", layout, pinned.devices, want, i.KVToken)
			}
			if told := i.KVNote != ""; told != (fails != nil && want != nil) {
				t.Errorf("%s, error %v: note %q", layout, fails, i.KVNote)
			}
		}
	}
}
