package llama

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
)

// LibraryVersion is the version of llama.cpp that the binding is made for.
const LibraryVersion = "0.5.0"

// library is the process's one copy of llama.cpp. It is never unloaded: ggml's
// backends keep threads and tables for the life of the process.
type library struct {
	dir string
	x   *llamax.Lib
	log *llamax.Log
}

var (
	libMu  sync.Mutex
	libOne *library
)

// openLibrary opens the libraries in dir, once per process.
func openLibrary(dir string) (*library, error) {
	libMu.Lock()
	defer libMu.Unlock()
	abs, err := filepath.Abs(dir)
	if err != nil || dir == "" {
		return nil, fmt.Errorf("%w: no folder of llama.cpp libraries was named; run \"make engine\" or pass the folder", ieg.ErrUnsupported)
	}
	if libOne != nil {
		if libOne.dir != abs {
			return nil, fmt.Errorf("%w: this process has loaded the libraries in %s and can't load those in %s; start another engine", ieg.ErrUnsupported, libOne.dir, abs)
		}
		return libOne, nil
	}
	plain, err := plainNames(abs)
	if err != nil {
		return nil, err
	}
	if err := yz.Load(plain); err != nil {
		return nil, fmt.Errorf("%w: load llama.cpp from %s: %v; it must be version %s for this machine", ieg.ErrUnsupported, abs, err, LibraryVersion)
	}
	x, err := llamax.Open(filepath.Join(plain, "libllama.so"))
	if err != nil {
		return nil, fmt.Errorf("%w: %v; llama.cpp must be version %s", ieg.ErrUnsupported, err, LibraryVersion)
	}
	if v := x.Version(); strings.TrimSuffix(v, "-dev") != LibraryVersion {
		return nil, fmt.Errorf("%w: llama.cpp in %s is version %q, this build needs %s; run \"make engine\" or remove the folder", ieg.ErrUnsupported, abs, v, LibraryVersion)
	}
	log, cb := llamax.NewLog()
	yz.LogSet(cb)
	yz.Init()
	if yz.GGMLBackendDeviceByType(yz.GGMLBackendDeviceTypeCPU) == 0 {
		return nil, fmt.Errorf("%w: no libggml-cpu-*.so in %s runs on this processor; fetch the folder again", ieg.ErrUnsupported, abs)
	}
	libOne = &library{dir: abs, x: x, log: log}
	return libOne, nil
}

// versioned matches a library whose name carries a version or a backend, such
// as libllama.v0.5.0.so or libggml.vulkan.v0.5.0.so.
var versioned = regexp.MustCompile(`^(libllama|libggml|libggml-base)\.[A-Za-z0-9._-]+\.so$`)

// plainNames returns a folder in which the libraries have the names that the
// binding opens. If dir lacks them, a private folder of links is made; it may
// go once the libraries are loaded, so it is left to the system's cleaning.
func plainNames(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("%w: llama.cpp libraries: %v; run \"make engine\" to fetch them", ieg.ErrUnsupported, err)
	}
	have := map[string]string{}
	for _, e := range entries {
		name := e.Name()
		have[name] = name
		if m := versioned.FindStringSubmatch(name); m != nil && have[m[1]+".so"] == "" {
			have[m[1]+".so"] = name
		}
	}
	missing := false
	for _, want := range []string{"libllama.so", "libggml.so", "libggml-base.so"} {
		if have[want] == "" {
			return "", fmt.Errorf("%w: %s is missing in %s; run \"make engine\" to fetch the libraries", ieg.ErrUnsupported, want, dir)
		}
		missing = missing || have[want] != want
	}
	if !missing {
		return dir, nil
	}
	tmp, err := os.MkdirTemp("", "ieg-lib-")
	if err != nil {
		return "", fmt.Errorf("make a folder of links to the libraries: %w", err)
	}
	for link, file := range have {
		if err := os.Symlink(filepath.Join(dir, file), filepath.Join(tmp, link)); err != nil {
			return "", fmt.Errorf("link %s: %w", file, err)
		}
	}
	return tmp, nil
}
