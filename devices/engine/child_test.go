package engine_test

import (
	"testing"

	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
	"ieg/devices/engine/synth"
)

func TestMain(m *testing.M) {
	enginetest.Main(m, map[string]engine.Loader{"synth": synth.Load})
}

func synthSpec() engine.LoadSpec {
	return engine.LoadSpec{
		Backend: "synth", Name: "s", Context: 600, Slots: 4, Embedding: true,
		Synth: &engine.SynthSpec{Seed: 42, Sleep: true, StepNS: 500_000, PrefillNS: 20_000, DecodeNS: 100},
	}
}

func TestChildConformance(t *testing.T) {
	enginetest.RunChild(t, engine.Config{Spec: synthSpec()}, enginetest.Options{Exact: true, Embedding: true})
}
