package llama

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/llama/tinygguf"
)

// TestBadModels: what can't be loaded is an error that says what to do, never
// an end of the process.
func TestBadModels(t *testing.T) {
	lib := libDir(t)
	dir := t.TempDir()
	good := tinygguf.Bytes(tinygguf.Config{})
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bare := func(f func(w *tinygguf.Writer)) []byte {
		w := &tinygguf.Writer{}
		f(w)
		w.Tensor("x", []uint64{32}, make([]float32, 32))
		return w.Bytes()
	}
	named := func(w *tinygguf.Writer, arch string) {
		w.String("general.architecture", arch)
		w.Uint(arch+".block_count", 1)
		w.Strings("tokenizer.ggml.tokens", []string{"a"})
	}
	for _, c := range []struct {
		name, path, why string
		is              error
	}{
		{"missing", filepath.Join(dir, "none.gguf"), "check the path", fs.ErrNotExist},
		{"folder", dir, "not a file", ieg.ErrUnsupported},
		{"none", "", "no model file", ieg.ErrUnsupported},
		{"other", write("zip.gguf", []byte("PK\x03\x04 and more")), "convert", ieg.ErrUnsupported},
		{"empty", write("empty.gguf", nil), "convert", ieg.ErrUnsupported},
		{"cut header", write("cut1.gguf", good[:3000]), "fetch it again", ieg.ErrUnsupported},
		{"cut data", write("cut2.gguf", good[:len(good)-100]), "fetch it again", ieg.ErrUnsupported},
		{"no arch", write("noarch.gguf", bare(func(*tinygguf.Writer) {})), "architecture", ieg.ErrUnsupported},
		{"no layers", write("nolayers.gguf", bare(func(w *tinygguf.Writer) { w.String("general.architecture", "llama") })), "layers", ieg.ErrUnsupported},
		{"adapter", write("lora.gguf", bare(func(w *tinygguf.Writer) { named(w, "llama"); w.String("general.type", "adapter") })), "not a model", ieg.ErrUnsupported},
		{"unknown arch", write("arch.gguf", bare(func(w *tinygguf.Writer) { named(w, "nosuch") })), "refuses the model", ieg.ErrUnsupported},
		{"no tensors", write("tensors.gguf", bare(func(w *tinygguf.Writer) { named(w, "llama") })), "refuses the model", ieg.ErrUnsupported},
		{"split part", write("m-00002-of-00003.gguf", good), "name the first", ieg.ErrUnsupported},
		{"split hole", write("n-00001-of-00002.gguf", good), "part 2 of 2", fs.ErrNotExist},
	} {
		_, err := Load(context.Background(), engine.LoadSpec{Path: c.path, LibDir: lib}, nil)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestBadSpecs(t *testing.T) {
	good := tinySpec(t)
	for name, c := range map[string]struct {
		edit func(*engine.LoadSpec)
		why  string
		is   error
	}{
		"library":   {func(s *engine.LoadSpec) { s.LibDir = t.TempDir() }, "", ieg.ErrUnsupported},
		"slots":     {func(s *engine.LoadSpec) { s.Slots = 257 }, "256", ieg.ErrUnsupported},
		"kv type":   {func(s *engine.LoadSpec) { s.KVType = "q9" }, "q8_0", ieg.ErrUnsupported},
		"layout":    {func(s *engine.LoadSpec) { s.Layout = "rows" }, "streams", ieg.ErrUnsupported},
		"flash":     {func(s *engine.LoadSpec) { s.FlashAttn = "maybe" }, "auto", ieg.ErrUnsupported},
		"kv flash":  {func(s *engine.LoadSpec) { s.KVType, s.FlashAttn = "q8_0", "off" }, "flash", ieg.ErrUnsupported},
		"device":    {func(s *engine.LoadSpec) { s.Device = "GPU7" }, "CPU", ieg.ErrUnsupported},
		"context":   {func(s *engine.LoadSpec) { s.Context, s.MemoryBytes = 1<<20, 400<<20 }, "at most", ieg.ErrOutOfMemory},
		"memory":    {func(s *engine.LoadSpec) { s.MemoryBytes = 100 << 10 }, "smaller model", ieg.ErrOutOfMemory},
		"all slots": {func(s *engine.LoadSpec) { s.Context, s.Slots, s.MemoryBytes = 0, 256, 193<<20 }, "fewer slots", ieg.ErrOutOfMemory},
	} {
		spec := good
		c.edit(&spec)
		if _, err := Load(context.Background(), spec, nil); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Load(ctx, good, nil); !errors.Is(err, ieg.ErrCancelled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestMissingLibraries(t *testing.T) {
	for name, dir := range map[string]string{"none": "", "no folder": filepath.Join(t.TempDir(), "x"), "empty": t.TempDir()} {
		if _, err := plainNames(dir); err == nil || !errors.Is(err, ieg.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	for _, f := range []string{"libllama.v0.5.0.so", "libggml.vulkan.v0.5.0.so", "libggml-base.so", "libggml-cpu-zen4.so"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	links, err := plainNames(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(links)
	for _, f := range []string{"libllama.so", "libllama.v0.5.0.so", "libggml.so", "libggml-base.so", "libggml-cpu-zen4.so"} {
		if _, err := os.Stat(filepath.Join(links, f)); err != nil {
			t.Error(err)
		}
	}
}

func TestLayoutIsMeasuredOnce(t *testing.T) {
	spec := tinySpec(t)
	spec.Layout, spec.FlashAttn, spec.StateDir = "auto", "auto", filepath.Join(t.TempDir(), "state")
	first := start(t, spec).Info()
	if len(first.Probe) != 3 {
		t.Fatalf("%d candidates", len(first.Probe))
	}
	chosen := 0
	for _, p := range first.Probe {
		if p.Chosen {
			chosen++
			if p.Layout != first.Layout || p.FlashAttn != first.FlashAttn || p.DecodeTPS <= 0 || p.PrefillTPS <= 0 {
				t.Errorf("%+v is not what runs", p)
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(spec.StateDir, "*"))
	if chosen != 1 || len(files) != 1 {
		t.Fatalf("%d chosen, files %v", chosen, files)
	}
	b, _ := os.ReadFile(files[0])
	b = []byte(strings.Replace(string(b), `"decode_tokens_per_s"`, `"prefill_tokens_per_s": 1, "decode_tokens_per_s"`, 1))
	if err := os.WriteFile(files[0], b, 0o644); err != nil {
		t.Fatal(err)
	}
	if again := start(t, spec).Info(); again.Layout != first.Layout || again.Probe[0] != first.Probe[0] && again.Probe[0].DecodeTPS != first.Probe[0].DecodeTPS {
		t.Error("it was measured again")
	}
	spec.Slots++
	start(t, spec)
	if files, _ = filepath.Glob(filepath.Join(spec.StateDir, "*")); len(files) != 2 {
		t.Errorf("other sizes share the outcome: %v", files)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	start(t, spec)
}

func TestSizing(t *testing.T) {
	info := ieg.ModelInfo{WeightBytes: 96 << 20, ContextTrain: 8192}
	const token = 23040
	for name, c := range map[string]struct {
		spec        engine.LoadSpec
		budget      int64
		slots, each int32
	}{
		"default":   {engine.LoadSpec{}, 12 << 30, 16, DefaultKVBytes / token / 16 / slotStep * slotStep},
		"few slots": {engine.LoadSpec{Slots: 2}, 12 << 30, 2, 8192},
		"asked":     {engine.LoadSpec{Slots: 3, Context: 1000}, 12 << 30, 3, 1024},
		"tight":     {engine.LoadSpec{Slots: 4}, 388 << 20, 4, 1024},
		"unknown":   {engine.LoadSpec{Slots: 1, Context: 8192}, 0, 1, 8192},
	} {
		z, err := size(&c.spec, &info, token, c.budget)
		if err != nil || z.slots != c.slots || z.slotTokens != c.each {
			t.Errorf("%s: %+v, %v; want %d slots of %d", name, z, err, c.slots, c.each)
		}
	}
}

func TestInfoOfTiny(t *testing.T) {
	path, err := tinygguf.Write(t.TempDir(), tinygguf.Config{Layers: 6, Pooling: "mean"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := openModel(path)
	if err != nil {
		t.Fatal(err)
	}
	m := modelInfo(f, 2)
	if m.Layers != 6 || m.DModel != 64 || m.Heads != 4 || m.Pooling != "mean" || !m.Generative || !m.Embedding || m.ChatTemplate == "" || len(m.Digest) != 64 {
		t.Errorf("%+v", m)
	}
	if len(m.KV) != 1 || kvBytes(m.KV) != 2*6*2*16*2 {
		t.Errorf("KV %+v, %d bytes a token", m.KV, kvBytes(m.KV))
	}
	other, _ := tinygguf.Write(t.TempDir(), tinygguf.Config{Layers: 6, Pooling: "mean", Seed: 1})
	if g, err := openModel(other); err != nil || g.digest == f.digest {
		t.Error("other weights have the same digest")
	}
}
