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
		Backend: "synth", Name: "s", Context: 700, Slots: 4, Layout: layout, Embedding: true,
		Synth: &engine.SynthSpec{Seed: 42, Sleep: sleep, StepNS: 1000, PrefillNS: 20_000, DecodeNS: 100, CopyNS: 2000},
	}
}

func TestConformance(t *testing.T) {
	for _, layout := range []string{"unified", "streams"} {
		for name, sleep := range map[string]bool{"at once": false, "sleeping": true} {
			t.Run(layout+" "+name, func(t *testing.T) {
				o := enginetest.Options{Exact: true, Embedding: true, Arena: enginetest.Memory()}
				enginetest.Run(t, o, func(t testing.TB) engine.Runner {
					spec := spec(layout, sleep)
					spec.Arena = o.Arena
					r, err := synth.Load(context.Background(), spec, nil)
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
