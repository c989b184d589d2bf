package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/lib"
	"ieg/devices/engine/llama"
)

// What testdata/reference.py computes in f64 from the package's own weights.
//
//go:embed testdata/vectors.json
var reference []byte

// The converted model tokenises as the package's own tokenizer does and gives
// its vectors.
func TestVectors(t *testing.T) {
	cache, err := lib.CacheDir()
	if err != nil {
		t.Skip(err)
	}
	libs, err := lib.Dir(cache)
	if err != nil {
		t.Skip(err)
	}
	model := filepath.Join(cache, "models", "all-MiniLM-L6-v2.gguf")
	if _, err := os.Stat(model); err != nil {
		t.Skipf("%v; run: make models", err)
	}
	var want []struct {
		Text   string
		Tokens []ieg.Token
		Vector []float32
	}
	if err := json.Unmarshal(reference, &want); err != nil {
		t.Fatal(err)
	}
	r, err := llama.Load(context.Background(), engine.LoadSpec{
		Backend: "llama", Name: "minilm", Path: model, LibDir: libs, Threads: 1, Slots: 1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if m := r.Info().Model; !m.Embedding || m.Generative || m.Pooling != "mean" {
		t.Errorf("loaded as %+v", m)
	}
	for i, w := range want {
		// The engine adds begin and end; the reference has both.
		inner := w.Tokens[1 : len(w.Tokens)-1]
		tokens, err := r.Tokenize(w.Text, false)
		if err != nil || !slices.Equal(tokens, inner) {
			t.Errorf("%q: tokens %v (%v), want %v", w.Text, tokens, err, inner)
			continue
		}
		var done ieg.StepDone
		seq := ieg.SeqID(i + 1)
		r.Step(&ieg.Batch{
			Step: ieg.StepID(i + 1),
			New:  []ieg.SeqStart{{Seq: seq, Tokens: tokens, Prompt: int32(len(tokens)), Embed: true}},
			Work: []ieg.Work{{Seq: seq, N: int32(len(tokens))}},
		}, &done)
		if done.Outcome != ieg.StepOK || len(done.Results) != 1 {
			t.Fatalf("%q: %v %s", w.Text, done.Outcome, done.Err)
		}
		// Both are of unit length: the dot product is the cosine.
		got, cos := done.Results[0].Vector, float64(0)
		for k := range min(len(got), len(w.Vector)) {
			cos += float64(got[k]) * float64(w.Vector[k])
		}
		if len(got) != len(w.Vector) || cos < 0.9999 || cos > 1.0001 {
			t.Errorf("%q: %d dimensions, cosine %v", w.Text, len(got), cos)
		}
	}
}
