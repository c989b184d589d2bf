package llama

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"ieg"
	"ieg/devices/engine/llama/gguf"
)

// modelFile is a checked model: one file, or the parts of a split one.
type modelFile struct {
	paths  []string
	head   *gguf.File // of the first part
	bytes  int64      // tensor data of all parts
	params int64
	expert int64 // parameters in experts
	digest string
}

// openModel checks a model's files before the library sees them.
func openModel(path string) (*modelFile, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: no model file was named", ieg.ErrUnsupported)
	}
	paths, err := parts(path)
	if err != nil {
		return nil, err
	}
	m := &modelFile{paths: paths}
	sum := sha256.New()
	for i, p := range paths {
		if err := m.part(p, i, sum); err != nil {
			return nil, err
		}
	}
	m.digest = hex.EncodeToString(sum.Sum(nil))
	return m, m.known()
}

func (m *modelFile) part(path string, i int, sum io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open model: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open model: %w", err)
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a file; name a .gguf file", ieg.ErrUnsupported, path)
	}
	h, err := gguf.Read(f, st.Size())
	switch {
	case errors.Is(err, gguf.ErrNotGGUF):
		return fmt.Errorf("%w: %s: %v; convert the model to GGUF first", ieg.ErrUnsupported, path, err)
	case errors.Is(err, gguf.ErrUnknown):
		return fmt.Errorf("%w: %s: %v; it needs a newer llama.cpp than %s", ieg.ErrUnsupported, path, err, LibraryVersion)
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ieg.ErrUnsupported, path, err)
	}
	if i == 0 {
		m.head = h
	}
	for _, t := range h.Tensors {
		m.bytes += t.Bytes
		m.params += t.Elements
		if expertName.MatchString(t.Name) {
			m.expert += t.Elements
		}
	}
	return m.digestPart(f, h, st.Size(), sum)
}

// expertName matches the tensors that hold all experts of a layer.
var expertName = regexp.MustCompile(`\.ffn_(up|down|gate|gate_up)_exps\.`)

// digestPart feeds what identifies a file: its size, header and tables, and
// evenly spread pieces of its data. Hashing all of it would take seconds to
// minutes; two files that differ only between the pieces are not told apart.
func (m *modelFile) digestPart(f io.ReaderAt, h *gguf.File, size int64, sum io.Writer) error {
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(size))
	sum.Write(n[:])
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, min(h.DataStart, size))); err != nil {
		return fmt.Errorf("read model: %w", err)
	}
	data := size - h.DataStart
	buf := make([]byte, digestPiece)
	for i := range int64(digestSamples) {
		at := h.DataStart + data/digestSamples*i
		k, err := f.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read model: %w", err)
		}
		sum.Write(buf[:k])
	}
	return nil
}

// splitName is how the parts of a split model are named.
var splitName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// parts lists the files of a model; a split one must be whole.
func parts(path string) ([]string, error) {
	x := splitName.FindStringSubmatch(filepath.Base(path))
	if x == nil {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("model file: %w; check the path", err)
		}
		return []string{path}, nil
	}
	n, _ := strconv.Atoi(x[3])
	if x[2] != "00001" {
		return nil, fmt.Errorf("%w: %s is one of %d parts; name the first, %s-00001-of-%s.gguf", ieg.ErrUnsupported, path, n, x[1], x[3])
	}
	var all []string
	for i := 1; i <= n; i++ {
		p := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", x[1], i, n))
		if _, err := os.Stat(p); err != nil {
			return nil, fmt.Errorf("part %d of %d of the model: %w; fetch all parts into one folder", i, n, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// known refuses what this engine can't serve, before the library tries.
func (m *modelFile) known() error {
	h, path := m.head, m.paths[0]
	if n, _ := h.Uint("split.count"); n > 1 && len(m.paths) == 1 {
		return fmt.Errorf("%w: %s is a part of a split model whose name was changed; restore names like model-00001-of-%05d.gguf", ieg.ErrUnsupported, path, n)
	}
	arch := h.String("general.architecture")
	if arch == "" {
		return fmt.Errorf("%w: %s names no architecture", ieg.ErrUnsupported, path)
	}
	switch t := h.String("general.type"); t {
	case "", "model":
	default:
		return fmt.Errorf("%w: %s is a %q file, not a model", ieg.ErrUnsupported, path, t)
	}
	if arch == "clip" {
		return fmt.Errorf("%w: %s is an image projector, not a language model", ieg.ErrUnsupported, path)
	}
	if n, ok := h.Uint(arch + ".block_count"); !ok || n == 0 || n > 4096 {
		return fmt.Errorf("%w: %s tells no number of layers", ieg.ErrUnsupported, path)
	}
	a, ok := h.Array("tokenizer.ggml.tokens")
	if !ok || a.Len == 0 || a.Len > maxVocab {
		return fmt.Errorf("%w: %s has no vocabulary", ieg.ErrUnsupported, path)
	}
	if len(h.TokenKinds) > 0 && len(h.TokenKinds) != a.Len {
		return fmt.Errorf("%w: %s has %d tokens but %d token types", ieg.ErrUnsupported, path, a.Len, len(h.TokenKinds))
	}
	if m.bytes == 0 {
		return fmt.Errorf("%w: %s holds a vocabulary only", ieg.ErrUnsupported, path)
	}
	return nil
}
