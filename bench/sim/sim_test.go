package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/kernel"
)

var (
	seedFlag  = flag.Int64("seed", -1, "run this seed only")
	seedsFlag = flag.Int("seeds", 240, "number of seeds")
)

// seeds runs f for each seed; a failing one is printed with the command that
// runs it again.
func seeds(t *testing.T, f func(seed uint64) error) {
	t.Helper()
	run := func(seed uint64) {
		if err := f(seed); err != nil {
			t.Fatalf("seed %d: %v\nagain: go test ./bench/sim -run '^%s$' -seed %d", seed, err, t.Name(), seed)
		}
	}
	if *seedFlag >= 0 {
		run(uint64(*seedFlag))
		return
	}
	n := *seedsFlag
	if testing.Short() {
		n /= 8
	}
	for seed := range uint64(n) {
		run(seed)
	}
}

// scene is a random configuration: what varies between the runs of a
// metamorphic test is not part of it.
func scene(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	models := []string{"alpha", "beta"}[:1+rng.IntN(2)]
	work := Work{
		Seed: seed, Requests: 10 + rng.IntN(40), Rate: []float64{0, 2, 20, 200}[rng.IntN(4)], Models: models, Vocab: 512,
		PromptMax: 4 + rng.IntN(120), OutputMax: 1 + rng.IntN(40), Stems: rng.IntN(4), Many: 0.2,
		Tenants: rng.IntN(3), OneClass: rng.IntN(4) == 0,
	}
	if rng.IntN(2) == 0 {
		work.Cancel, work.Pause, work.Deadline, work.Embed = 0.15, 0.15, 0.1, 0.1
	}
	cfg := Config{Seed: seed, Kernel: kernel.DefaultConfig(), Requests: work.Make(), Check: true, Verify: true}
	for i, name := range models {
		cfg.Engines = append(cfg.Engines, Engine{
			Device: []string{"cpu", "gpu"}[i*rng.IntN(2)],
			Spec: engine.LoadSpec{Backend: "synth", Name: name, Context: 512, Slots: int32(1 + rng.IntN(12)), Embedding: true,
				Synth: &engine.SynthSpec{Seed: 7 + uint64(i), Vocab: 512, StepNS: 4e6, PrefillNS: 1e6, DecodeNS: 1e6, KiloCellNS: 1e5, StopEvery: int32(rng.IntN(3) * 40)}},
			LoadTime: time.Duration(rng.IntN(2000)) * time.Millisecond, Latency: time.Duration(rng.IntN(3)) * 100 * time.Microsecond,
		})
	}
	if rng.IntN(3) == 0 { // the same model on a second device
		e := cfg.Engines[0]
		e.Device, e.LoadTime = "gpu2", time.Duration(rng.IntN(3000))*time.Millisecond
		cfg.Engines = append(cfg.Engines, e)
	}
	vary(&cfg, rng)
	return cfg
}

// vary changes what must not change any text: budgets, layouts, memory.
func vary(cfg *Config, rng *rand.Rand) {
	k := &cfg.Kernel
	k.GrantSteps = []int32{0, 1, 4, kernel.GrantSteps}[rng.IntN(4)]
	k.Pace.PrefillShare = []float64{0, 0.3, 0.68, 0.95}[rng.IntN(4)]
	k.Pace.PrefillShareMin = []float64{0, 0.5}[rng.IntN(2)]
	k.Pace.ITL[ieg.P0] = []time.Duration{0, 5 * time.Millisecond, time.Second}[rng.IntN(3)]
	k.Preemption.Enabled = rng.IntN(4) > 0
	k.Preemption.MaxPerRequest = rng.IntN(4)
	for i := range cfg.Engines {
		e := &cfg.Engines[i]
		s := *e.Spec.Synth
		e.Spec.Synth = &s
		e.Spec.Slots = int32(1 + rng.IntN(12))
		e.Spec.Layout = []string{"unified", "streams"}[rng.IntN(2)]
		e.StepTokens = []int32{0, 1, 8, 64, 300}[rng.IntN(5)]
		e.Tile = []int32{0, 0, 4, 16, 64}[rng.IntN(5)]
		s.Cells = 0
		if rng.IntN(2) == 0 {
			// Tight: the longest request fits by itself, hardly anything beside.
			need := largest(cfg.Requests)
			s.Cells = need + int32(rng.IntN(int(need)))
		}
	}
}

// largest is the most cells that one request can need.
func largest(reqs []Request) int32 {
	most := int32(2)
	for _, r := range reqs {
		most = max(most, int32(len(r.Spec.Prompt))+r.Spec.MaxTokens)
	}
	return most
}

// plague adds faults to a configuration.
func plague(cfg *Config, rng *rand.Rand) {
	cfg.Faults = Faults{Fail: 0.02, Slow: 0.05, SlowBy: 20, Hang: 0.01, Die: 0.02, Most: 1 + rng.IntN(6)}
}

func run(cfg Config) (*World, error) {
	w, err := New(cfg)
	if err != nil {
		return nil, err
	}
	_, err = w.Run()
	return w, err
}

func TestSeeds(t *testing.T) {
	var sum Report
	seeds(t, func(seed uint64) error {
		cfg := scene(seed)
		rng := rand.New(rand.NewPCG(seed, 2))
		if seed%2 == 1 {
			plague(&cfg, rng)
		}
		if seed%7 == 3 {
			cfg.DrainAfter = time.Duration(1 + rng.IntN(int(2*time.Second)))
		}
		if seed%11 == 5 {
			cfg.Faults.FinalAfter = 2
		}
		if seed%5 == 2 {
			for range 1 + rng.IntN(2) {
				cfg.Unloads = append(cfg.Unloads, Unload{At: time.Duration(rng.IntN(int(4 * time.Second))),
					Engine: ieg.EngineID(1 + rng.IntN(len(cfg.Engines))), Force: rng.IntN(2) == 0})
			}
		}
		w, err := run(cfg)
		if err != nil {
			return err
		}
		r := w.report
		sum.Preemptions += r.Preemptions
		sum.Deaths += r.Deaths
		sum.Kills += r.Kills
		sum.Repeats += r.Repeats
		sum.CachedTokens += r.CachedTokens
		sum.Finished += r.Finished
		sum.Cancelled += r.Cancelled
		sum.Failed += r.Failed
		return nil
	})
	// The seeds must reach what they are meant to reach.
	if *seedFlag < 0 && (sum.Preemptions == 0 || sum.Deaths == 0 || sum.Kills == 0 || sum.Repeats == 0 || sum.CachedTokens == 0 || sum.Finished == 0 || sum.Cancelled == 0 || sum.Failed == 0) {
		t.Errorf("the seeds miss something: %+v", sum)
	}
}

// The same work with other budgets, layouts, memory, timing and faults gives
// the same text wherever a text was whole.
func TestMetamorphic(t *testing.T) {
	seeds(t, func(seed uint64) error {
		base := scene(seed)
		for i := range base.Requests {
			r := &base.Requests[i]
			r.CancelAfter, r.CancelAt, r.Spec.Deadline = 0, 0, ieg.Never
		}
		first, err := run(base)
		if err != nil {
			return err
		}
		for variant := range uint64(2) {
			rng := rand.New(rand.NewPCG(seed, 10+variant))
			cfg := base
			cfg.Engines, cfg.Requests, cfg.Verify = slices.Clone(base.Engines), slices.Clone(base.Requests), false
			vary(&cfg, rng)
			if variant == 1 {
				plague(&cfg, rng)
				for i := range cfg.Requests {
					cfg.Requests[i].At = time.Duration(rng.IntN(int(3 * time.Second)))
				}
			}
			other, err := run(cfg)
			if err != nil {
				return fmt.Errorf("variant %d: %w", variant, err)
			}
			if err := same(first, other, variant == 1); err != nil {
				return fmt.Errorf("variant %d: %w", variant, err)
			}
		}
		return nil
	})
}

// same compares the outcomes of two runs; with faults a request may fail, and
// an embedding may be too long for the steps of one of them.
func same(a, b *World, faults bool) error {
	want := map[string]Outcome{}
	key := func(o Outcome) string { return fmt.Sprint(o.Request, "/", o.Choice) }
	for _, o := range a.Outcomes() {
		want[key(o)] = o
	}
	for _, o := range b.Outcomes() {
		w := want[key(o)]
		if !o.Reason.Success() && faults || o.Kind == ieg.Embed && o.Reason.Success() != w.Reason.Success() {
			continue
		}
		if o.Reason != w.Reason || !slices.Equal(o.Tokens, w.Tokens) || o.Text != w.Text {
			return fmt.Errorf("request %d, choice %d: %q %q, was %q %q", o.Request, o.Choice, o.Reason, o.Text, w.Reason, w.Text)
		}
	}
	return nil
}
