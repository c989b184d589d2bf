package llama

import (
	"os"
	"testing"

	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
)

// TestConformance runs the suite of all engines in this process.
func TestConformance(t *testing.T) {
	spec := tinySpec(t)
	spec.Embedding = true
	for _, y := range []string{"unified", "streams"} {
		t.Run(y, func(t *testing.T) {
			a := enginetest.Memory()
			spec.Layout, spec.Context, spec.Arena = y, 1024, a
			r := start(t, spec)
			enginetest.Run(t, enginetest.Options{Embedding: true, Arena: a}, func(testing.TB) engine.Runner { return r })
		})
	}
}

// TestConformanceExact runs what holds for a cleared engine only, and only as
// far as rounding allows: with KV of 32 bits a token computed alone and the
// same one in a batch differ by less than a draw notices.
func TestConformanceExact(t *testing.T) {
	spec := tinySpec(t)
	spec.KVType, spec.FlashAttn = "f32", "off"
	enginetest.Run(t, enginetest.Options{Exact: true}, func(t testing.TB) engine.Runner { return start(t, spec) })
}

func TestConformanceInChild(t *testing.T) {
	spec := tinySpec(t)
	enginetest.RunChild(t, engine.Config{Spec: spec}, enginetest.Options{})
}

func TestConformanceEmbedOnly(t *testing.T) {
	lib := libDir(t)
	path := os.Getenv("IEG_EMBED_MODEL")
	if path == "" {
		path = cached("models", "all-MiniLM-L6-v2.gguf")
	}
	r := start(t, engine.LoadSpec{Path: present(t, path), LibDir: lib, Threads: 1})
	enginetest.Run(t, enginetest.Options{Embedding: true, EmbedOnly: true}, func(testing.TB) engine.Runner { return r })
}
