package synth_test

import (
	"context"
	"testing"

	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
	"ieg/devices/engine/synth"
)

func spec(layout string, sleep bool) engine.LoadSpec {
	return engine.LoadSpec{
		Backend: "synth", Name: "s", Context: 600, Slots: 4, Layout: layout, Embedding: true,
		Synth: &engine.SynthSpec{Seed: 42, Sleep: sleep, StepNS: 1000, PrefillNS: 20_000, DecodeNS: 100},
	}
}

func TestConformance(t *testing.T) {
	for _, layout := range []string{"unified", "streams"} {
		for name, sleep := range map[string]bool{"at once": false, "sleeping": true} {
			t.Run(layout+" "+name, func(t *testing.T) {
				enginetest.Run(t, enginetest.Options{Exact: true, Embedding: true}, func(t testing.TB) engine.Runner {
					r, err := synth.Load(context.Background(), spec(layout, sleep), nil)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(r.Close)
					return r
				})
			})
		}
	}
}
