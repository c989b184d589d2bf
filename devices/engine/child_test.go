package engine_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
	"ieg/devices/engine/synth"
)

func TestMain(m *testing.M) {
	if os.Getenv("IEG_TEST_NODE") == "1" {
		actAsNode()
	}
	if os.Getenv("IEG_TEST_NO_ARENA") == "1" {
		os.Exit(engine.Main(map[string]engine.Loader{"synth": synth.Load}, nil))
	}
	enginetest.Main(m, map[string]engine.Loader{
		"synth": synth.Load,
		"missing": func(context.Context, engine.LoadSpec, func(float64)) (engine.Runner, error) {
			return nil, fmt.Errorf("model.gguf: %w", fs.ErrNotExist)
		},
		"panics": func(context.Context, engine.LoadSpec, func(float64)) (engine.Runner, error) {
			panic("a failed assertion")
		},
		"second try": loadAtSecondTry,
		"never": func(ctx context.Context, _ engine.LoadSpec, progress func(float64)) (engine.Runner, error) {
			progress(0.5)
			select {} // deaf to ctx, as a C library is
		},
		"stuck": func(_ context.Context, spec engine.LoadSpec, _ func(float64)) (engine.Runner, error) {
			r, err := synth.New(spec)
			return stuck{r, spec.Path}, err
		},
	})
}

// loadAtSecondTry fails once: the file at Path remembers.
func loadAtSecondTry(ctx context.Context, spec engine.LoadSpec, progress func(float64)) (engine.Runner, error) {
	if _, err := os.Stat(spec.Path); err == nil {
		return synth.Load(ctx, spec, progress)
	}
	if err := os.WriteFile(spec.Path, nil, 0o600); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("4 GB of weights: %w", ieg.ErrOutOfMemory)
}

// stuck never answers Tokenize, which leaves a file, and dies in Step.
type stuck struct {
	*synth.Runner
	asked string
}

func (s stuck) Tokenize(string, bool) ([]ieg.Token, error) {
	if err := os.WriteFile(s.asked, nil, 0o600); err != nil {
		return nil, err
	}
	select {}
}

func (stuck) Step(*ieg.Batch, *ieg.StepDone) { panic("died in a step") }

// actAsNode runs an engine, prints its process id, and waits to be killed.
func actAsNode() {
	up := make(chan int, 1)
	engine.Start(enginetest.Host(engine.Config{
		ID: 1, Spec: synthSpec(), Env: []string{"IEG_TEST_NODE=0"},
		Notify: func(n engine.Note) {
			if u, ok := n.(engine.Up); ok {
				up <- u.PID
			}
		},
	}))
	fmt.Println(<-up)
	select {}
}

func synthSpec() engine.LoadSpec {
	return engine.LoadSpec{
		Backend: "synth", Name: "s", Context: 700, Slots: 4, Embedding: true,
		Synth: &engine.SynthSpec{Seed: 42, Sleep: true, StepNS: 500_000, PrefillNS: 20_000, DecodeNS: 100},
	}
}

func TestChildConformance(t *testing.T) {
	enginetest.RunChild(t, engine.Config{Spec: synthSpec()}, enginetest.Options{Exact: true, Embedding: true})
}
