package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/devices/engine"
	"ieg/devices/engine/llama/gguf"
)

// modelDir is where fetched models lie.
func modelDir(cacheDir string) string { return filepath.Join(cacheDir, "models") }

// firstModel is the first GGUF file in the cache by name, or "".
func firstModel(cacheDir string) string {
	files, err := filepath.Glob(filepath.Join(modelDir(cacheDir), "*.gguf"))
	if err != nil || len(files) == 0 {
		return ""
	}
	slices.Sort(files)
	// Models for vectors don't chat; their names tell.
	for _, f := range files {
		if n := strings.ToLower(filepath.Base(f)); !strings.Contains(n, "embed") && !strings.Contains(n, "minilm") && !strings.Contains(n, "bge") {
			return f
		}
	}
	return ""
}

// preparer completes what is to be loaded.
type preparer struct {
	stateDir string
	// libDir finds the libraries for a device.
	libDir func(d node.Device) (string, error)
	// cores are granted to this process; more threads only wait for each other.
	cores int
	log   *slog.Logger
}

// prepare fills in backend, libraries and name, checks the file, and
// estimates the bytes that the model needs on the device.
func (p preparer) prepare(s *engine.LoadSpec, d node.Device) (int64, error) {
	if s.Name == "" {
		s.Name = config.ModelName(s.Path)
	}
	s.StateDir = p.stateDir
	if err := checkSpec(s); err != nil {
		return 0, err
	}
	if s.Threads > p.cores {
		p.log.Warn("fewer threads than asked for: no more cores are granted", "model", s.Name, "threads", s.Threads, "cores", p.cores)
		s.Threads = p.cores
	}
	if rest, ok := strings.CutPrefix(s.Path, config.SynthPrefix); ok {
		synth, err := parseSynth(rest)
		if err != nil {
			return 0, err
		}
		s.Backend, s.Synth, s.Path = "synth", synth, ""
		return 16 << 20, nil
	}
	s.Backend = "llama"
	f, weights, err := readModel(s.Path)
	if err != nil {
		return 0, err
	}
	if s.LibDir, err = p.libDir(d); err != nil {
		return 0, err
	}
	return weights + kvBytes(f, s) + node.OverheadBytes, nil
}

// checkSpec holds what comes by the admin socket to the bounds of the
// configuration. What is empty there is left to the engine.
func checkSpec(s *engine.LoadSpec) error {
	m := config.DefaultModel()
	m.Ctx, m.Slots, m.Threads = s.Context, s.Slots, s.Threads
	m.KVType, m.Layout = cmp.Or(s.KVType, m.KVType), cmp.Or(s.Layout, m.Layout)
	m.FlashAttention = cmp.Or(s.FlashAttn, m.FlashAttention)
	if err := config.CheckModel(m); err != nil {
		return fmt.Errorf("%w: %w", admin.ErrInvalid, err)
	}
	return nil
}

// readModel reads a model file's header and returns it with the file's size.
func readModel(path string) (*gguf.File, int64, error) {
	// Opening a pipe would wait for who writes into it.
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, fmt.Errorf("there is no model file %s; check the path", path)
	case err != nil:
		return nil, 0, fmt.Errorf("model file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no file; name a GGUF file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("model file: %w", err)
	}
	defer f.Close()
	head, err := gguf.Read(f, info.Size())
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %s: %w", ieg.ErrUnsupported, path, err)
	}
	return head, info.Size(), nil
}

// kvBytes is the KV that was asked for: slots × context × bytes a token of
// grouped-query attention. Where either is left to the engine it is 0: the
// engine then takes what is free.
func kvBytes(f *gguf.File, s *engine.LoadSpec) int64 {
	arch := f.String("general.architecture")
	layers, _ := f.Uint(arch + ".block_count")
	heads, _ := f.Uint(arch + ".attention.head_count")
	width, _ := f.Uint(arch + ".embedding_length")
	if s.Context <= 0 || s.Slots <= 0 || layers == 0 || layers > 1<<16 || heads == 0 {
		return 0
	}
	key, ok := f.Uint(arch + ".attention.key_length")
	if !ok {
		key = width / heads
	}
	value, ok := f.Uint(arch + ".attention.value_length")
	if !ok {
		value = key
	}
	perLayer, ok := f.PerLayer(arch+".attention.head_count_kv", int(layers))
	if !ok {
		return 0
	}
	sum := 0
	for _, n := range perLayer {
		sum += n
	}
	token := float64(sum) * float64(key+value) * elemBytes(s.KVType)
	return int64(min(token*float64(s.Context)*float64(s.Slots), 1<<62))
}

// elemBytes is the size of a KV element, with the scales of its block.
func elemBytes(kvType string) float64 {
	switch kvType {
	case "f32":
		return 4
	case "q8_0":
		return 34.0 / 32
	case "q5_1":
		return 24.0 / 32
	case "q5_0":
		return 22.0 / 32
	case "q4_1":
		return 20.0 / 32
	case "q4_0", "iq4_nl":
		return 18.0 / 32
	}
	return 2
}

// parseSynth reads "KEY=VALUE,…" after "synth:": seed, vocab, stop (one token
// in N ends the text), load, step, prefill, decode, kilocell (spans).
func parseSynth(text string) (*engine.SynthSpec, error) {
	s := &engine.SynthSpec{Seed: 1, Sleep: true, StopEvery: 64,
		StepNS: int64(2 * time.Millisecond), PrefillNS: int64(20 * time.Microsecond), DecodeNS: int64(200 * time.Microsecond)}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "seed":
			s.Seed, err = strconv.ParseUint(value, 10, 64)
		case "vocab":
			err = parseInt32(value, &s.Vocab)
		case "stop":
			err = parseInt32(value, &s.StopEvery)
		case "load":
			err = parseSpan(value, &s.LoadNS)
		case "step":
			err = parseSpan(value, &s.StepNS)
		case "prefill":
			err = parseSpan(value, &s.PrefillNS)
		case "decode":
			err = parseSpan(value, &s.DecodeNS)
		case "kilocell":
			err = parseSpan(value, &s.KiloCellNS)
		default:
			err = errors.New("known are seed, vocab, stop, load, step, prefill, decode, kilocell")
		}
		if err != nil {
			return nil, fmt.Errorf("%w: model %q: %s: %w", config.ErrConfig, config.SynthPrefix+text, key, err)
		}
	}
	return s, nil
}

func parseInt32(text string, to *int32) error {
	n, err := strconv.ParseInt(text, 10, 32)
	*to = int32(n)
	return err
}

func parseSpan(text string, to *int64) error {
	d, err := time.ParseDuration(text)
	*to = int64(d)
	return err
}
