package backend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ieg/devices/engine/lib"
)

// packageVersion is the release of the packages that carry lib.Version.
const packageVersion = "3.22.1"

// Backend is one build of the library.
type Backend struct {
	Name string `json:"name"`
	// For says which hosts it is for.
	For string `json:"for"`
	// Needs are what the host must have beside it.
	Needs string `json:"needs,omitempty"`
	// Hint ends the sentence that it finds no device.
	Hint string `json:"-"`

	pkg string // npm package
	// sum is the SHA-512 of its archive in base64, as the registry states it.
	sum string
	// inner is the folder of the libraries in the archive, suffix what
	// libllama and libggml carry in their names.
	inner, suffix string
	megabytes     int
}

var all = []Backend{
	{Name: "cpu", For: "every x86-64 host", pkg: "@node-llama-cpp/linux-x64", inner: "linux-x64", suffix: "." + lib.Version, megabytes: 11,
		sum: "5uCCDNqWCNfaAm8aR/Uzxbo4HBpKgNF91kCHPepKhgMgV2OAmatoefbOlMihsqCiH2Od35E/eUHQCFbfRBJuOg=="},
	{Name: "vulkan", For: "GPUs with a Vulkan driver", Needs: "libvulkan.so.1 and a driver (Debian: libvulkan1, mesa-vulkan-drivers)",
		Hint: "; a software driver is taken with GGML_VK_VISIBLE_DEVICES=0",
		pkg:  "@node-llama-cpp/linux-x64-vulkan", inner: "linux-x64-vulkan", suffix: ".vulkan." + lib.Version, megabytes: 24,
		sum: "bBxqU+JOcBu1nb5Qj2zcMci+JByT1E8EajHvYodyNfVIPkEhXh+/HMwR1/BT7xP08YK0hks+kM8fglER0P8JEg=="},
	{Name: "cuda", For: "NVIDIA GPUs", Needs: "NVIDIA's driver (libcuda.so.1), libcudart.so.13 and libcublas.so.13 of CUDA 13 where the loader finds them",
		pkg: "@node-llama-cpp/linux-x64-cuda", inner: "linux-x64-cuda", suffix: ".cuda." + lib.Version, megabytes: 143,
		sum: "8rQCjyNNLZJUFit+YpjwlC4hwkKgOMIkB2wuycKBf8NU2O3ySKbiWZQ8aw9ku2nUTXjSnUIrE6KB88itduTBuA=="},
}

// All lists the builds.
func All() []Backend { return all }

// ErrUnknown: there is no such build.
var ErrUnknown = errors.New("unknown backend")

// Find looks a build up by name.
func Find(name string) (Backend, error) {
	var names []string
	for _, b := range all {
		if b.Name == name {
			return b, nil
		}
		names = append(names, b.Name)
	}
	return Backend{}, fmt.Errorf("%w %q; known are %q", ErrUnknown, name, names)
}

// Dir is where the build lies, or would lie, below a cache folder.
func (b Backend) Dir(cacheDir string) string {
	return filepath.Join(cacheDir, "lib", "linux-x64-"+b.Name+"-"+lib.Version)
}

// Installed tells whether the build's folder is there.
func (b Backend) Installed(cacheDir string) bool {
	_, err := os.Stat(filepath.Join(b.Dir(cacheDir), "MANIFEST"))
	return err == nil
}
