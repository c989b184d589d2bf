package llamax

import (
	"fmt"
	"path/filepath"

	"github.com/ebitengine/purego"
)

// Lib holds the addresses of the C functions.
type Lib struct {
	version, tokenize, getLogits, setAbort uintptr
	strlen, tensorGet, isHost              uintptr
}

// Open looks up the functions in the library file, which the binding has
// opened before. A missing symbol is an error that names it.
func Open(file string) (*Lib, error) {
	h, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", file, err)
	}
	l := &Lib{}
	for name, at := range map[string]*uintptr{
		"llama_version":            &l.version,
		"llama_tokenize":           &l.tokenize,
		"llama_get_logits":         &l.getLogits,
		"llama_set_abort_callback": &l.setAbort,
	} {
		if *at, err = purego.Dlsym(h, name); err != nil {
			return nil, fmt.Errorf("%s has no %s: it is of another version", file, name)
		}
	}
	base := filepath.Join(filepath.Dir(file), "libggml-base.so")
	if h, err = purego.Dlopen(base, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return nil, fmt.Errorf("open %s: %w", base, err)
	}
	for name, at := range map[string]*uintptr{
		"ggml_backend_tensor_get":     &l.tensorGet,
		"ggml_backend_buffer_is_host": &l.isHost,
	} {
		if *at, err = purego.Dlsym(h, name); err != nil {
			return nil, fmt.Errorf("%s has no %s: it is of another version", base, name)
		}
	}
	if l.strlen, err = purego.Dlsym(purego.RTLD_DEFAULT, "strlen"); err != nil {
		return nil, fmt.Errorf("look up strlen: %w", err)
	}
	return l, nil
}
