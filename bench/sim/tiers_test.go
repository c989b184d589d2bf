package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/synth"
	"ieg/kernel"
	"ieg/memory/kv"
)

// talks makes conversations: each turn's prompt is the one before it with more
// at its end, some of them edited near the end.
func talks(seed uint64, chats, turns, start, grow int) []Request {
	rng := rand.New(rand.NewPCG(seed, 31))
	words := func(n int) []ieg.Token {
		t := make([]ieg.Token, n)
		for i := range t {
			t[i] = FirstToken + ieg.Token(rng.IntN(200))
		}
		return t
	}
	system := words(1 + rng.IntN(start))
	var out []Request
	for c := range chats {
		history := append(slices.Clone(system), words(1+rng.IntN(start))...)
		at := time.Duration(rng.IntN(int(4 * time.Second)))
		for range turns {
			history = append(history, words(1+rng.IntN(grow))...)
			r := &ieg.Request{ID: ieg.RequestID(len(out) + 1), Model: "alpha", N: 1, Class: ieg.Class(rng.IntN(int(ieg.NumClasses))),
				Deadline: ieg.Never, MaxTokens: int32(1 + rng.IntN(20)), Prompt: slices.Clone(history), NoStore: rng.IntN(12) == 0,
				Sampling: ieg.Sampling{TopP: 1, RepetitionPenalty: 1, Logprobs: -1, Temperature: float32(rng.IntN(2)), Seed: rng.Uint64()}}
			if c%3 == 2 {
				r.Tenant = "b"
			}
			out = append(out, Request{At: at, Spec: r})
			at += time.Duration(rng.IntN(int(6 * time.Second)))
			if rng.IntN(4) == 0 {
				history = history[:len(history)-rng.IntN(min(30, len(history)))]
			}
		}
	}
	return out
}

// deep is a random configuration with tiers below the device.
func deep(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 3))
	cfg := Config{Seed: seed, Kernel: kernel.DefaultConfig(), Check: true, Verify: true,
		Requests: talks(seed, 2+rng.IntN(8), 1+rng.IntN(6), 400, 200)}
	for i := range cfg.Requests {
		r := &cfg.Requests[i]
		switch rng.IntN(10) {
		case 0:
			r.CancelAt = time.Duration(1 + rng.Int64N(int64(2*time.Second)))
		case 1:
			r.PauseAfter, r.PauseFor = 1+rng.IntN(5), time.Duration(rng.Int64N(int64(2*time.Second)))
		}
	}
	for i := range 1 + rng.IntN(2) {
		cfg.Engines = append(cfg.Engines, Engine{
			Device: []string{"cpu", "gpu"}[i],
			Spec: engine.LoadSpec{Backend: "synth", Name: "alpha", Context: 4096,
				Synth: &engine.SynthSpec{Seed: 7, Vocab: 512, StepNS: 4e6, PrefillNS: 1e6, DecodeNS: 1e6, KiloCellNS: 1e5, CopyNS: []int64{0, 2000, 4000, 100_000}[rng.IntN(4)]}},
			LoadTime: time.Duration(rng.IntN(2000)) * time.Millisecond, Latency: 100 * time.Microsecond,
		})
	}
	vary(&cfg, rng)
	for i := range cfg.Engines {
		cfg.Engines[i].Spec.Slots = int32(1 + rng.IntN(4))
		cfg.Engines[i].StepTokens = []int32{0, 64, 300}[rng.IntN(3)]
	}
	cfg.Kernel.KV.Policy = kv.Policy(rng.IntN(2))
	t := &cfg.Tiers
	t.PageBytes = 4096
	t.Pages = []int{0, 4, 20, 60, 400, 4000}[rng.IntN(6)]
	t.NVMe = []int64{0, 1 << 17, 1 << 20, 1 << 30}[rng.IntN(4)]
	t.Read, t.Write = []float64{1e4, 1e6, 1e9}[rng.IntN(3)], []float64{1e5, 1e9}[rng.IntN(2)]
	t.Latency = time.Duration(rng.IntN(3)) * time.Millisecond
	if rng.IntN(3) == 0 {
		t.Fail, t.Rot, t.Flip = 0.1, 0.05, 0.2
	}
	if rng.IntN(4) == 0 {
		t.Outages, t.OutageFor = []time.Duration{time.Duration(rng.Int64N(int64(9 * time.Second)))}, 3*time.Second
	}
	for range rng.IntN(3) {
		t.Pins = append(t.Pins, time.Duration(rng.Int64N(int64(9*time.Second))))
		if rng.IntN(3) == 0 {
			t.Drops = append(t.Drops, time.Duration(rng.Int64N(int64(9*time.Second))))
		}
	}
	return cfg
}

// folded follows events: what each tier has by what was told.
type folded struct {
	has map[string]bool
	n   [ieg.NumTiers]int
	err error
}

func (f *folded) observe(now ieg.Time, _ kernel.Event, r *kernel.Ready) {
	for _, e := range r.KV {
		key := fmt.Sprint(e.Tier, e.Block.Hash)
		if e.Tier == ieg.TierNVMe { // it may be told again: the kernel forgets what nobody wants
			f.n[e.Tier]++
			continue
		}
		if e.Model != "alpha" || f.has[key] != (e.Kind == ieg.KVRemoved) {
			f.err = fmt.Errorf("at %d: %s of model %q: kind %d, known before: %t", now, key, e.Model, e.Kind, f.has[key])
		}
		if e.Kind == ieg.KVStored {
			f.has[key] = true
			f.n[e.Tier]++
			if want := kv.Name(e.Block.Parent, e.Block.Tokens); want != e.Block.Hash {
				f.err = fmt.Errorf("at %d: %s has tokens that are named %s", now, key, want)
			}
		} else {
			delete(f.has, key)
			f.n[e.Tier]--
		}
	}
}

// What is told of blocks adds up to what there is.
func TestTiersTell(t *testing.T) {
	total := [ieg.NumTiers]int{}
	seeds(t, func(seed uint64) error {
		cfg := deep(seed)
		cfg.Engines = cfg.Engines[:1]
		if seed%3 == 1 {
			plague(&cfg, rand.New(rand.NewPCG(seed, 2)))
		}
		cfg.Kernel.KV.Events = true
		f := &folded{has: map[string]bool{}}
		cfg.Observe = func(now ieg.Time, ev kernel.Event, r *kernel.Ready) {
			f.observe(now, ev, r)
			for i, n := range f.n {
				total[i] = max(total[i], n)
			}
		}
		w, err := run(cfg)
		if err == nil {
			err = f.err
		}
		if n := w.m.Status().KV.Blocks; err == nil && f.n[ieg.TierHost] != n {
			err = fmt.Errorf("%d blocks in the arena were told, there are %d", f.n[ieg.TierHost], n)
		}
		return err
	})
	if *seedFlag < 0 && slices.Contains(total[:], 0) {
		t.Errorf("blocks told by tier: %v", total)
	}
}

func TestTiers(t *testing.T) {
	var sum Report
	parts := 0
	seeds(t, func(seed uint64) error {
		cfg := deep(seed)
		streams := !slices.ContainsFunc(cfg.Engines, func(e Engine) bool { return e.Spec.Layout != "streams" })
		cfg.Observe = func(_ ieg.Time, _ kernel.Event, r *kernel.Ready) {
			for _, b := range r.Batches {
				if streams && slices.ContainsFunc(b.Ops, func(op ieg.KVOp) bool { return op.Kind == ieg.KVLoad && op.Start > 0 }) {
					parts++
				}
			}
		}
		if seed%3 == 1 {
			plague(&cfg, rand.New(rand.NewPCG(seed, 2)))
		}
		w, err := run(cfg)
		if err != nil {
			return err
		}
		k := w.report.KV
		for tier := range sum.KV.Hits {
			sum.KV.Hits[tier] += k.Hits[tier]
		}
		sum.KV.Corrupt += k.Corrupt
		sum.KV.FetchesDeclined += k.FetchesDeclined
		sum.KV.FetchesFailed += k.FetchesFailed
		sum.KV.FetchesLate += k.FetchesLate
		sum.KV.SavesRefused += k.SavesRefused
		sum.Preemptions += w.report.Preemptions
		return nil
	})
	k := sum.KV
	if *seedFlag < 0 && (slices.Contains(k.Hits[:], 0) || k.Corrupt == 0 || k.FetchesDeclined == 0 || k.FetchesFailed == 0 || k.FetchesLate == 0 || k.SavesRefused == 0 || sum.Preemptions == 0 || parts == 0) {
		t.Errorf("the seeds miss something: %+v, %d later parts of rows", sum, parts)
	}
}

// The same conversations give the same texts whatever lies below the device.
func TestTiersMetamorphic(t *testing.T) {
	seeds(t, func(seed uint64) error {
		base := deep(seed)
		for i := range base.Requests {
			base.Requests[i].CancelAt = 0
		}
		bare := base
		bare.Tiers = Tiers{}
		first, err := run(bare)
		if err != nil {
			return err
		}
		other, err := run(base)
		if err != nil {
			return err
		}
		return same(first, other, false)
	})
}

// Restored in the middle, a machine with tiers decides as the original.
func TestTiersSnapshots(t *testing.T) {
	seeds(t, func(seed uint64) error {
		cfg := deep(seed)
		s := &shadow{rng: rand.New(rand.NewPCG(seed, 4))}
		cfg.Before, cfg.Observe = s.before, s.observe
		if _, err := run(cfg); err != nil {
			return err
		}
		return s.err
	})
}

// chats is a run of conversations with room for few of them on the device.
func chats(tiers Tiers) Config {
	cfg := Config{Seed: 5, Kernel: kernel.DefaultConfig(), Check: true, Verify: true, Tiers: tiers, Requests: talks(5, 8, 5, 300, 100)}
	for i := range cfg.Requests {
		cfg.Requests[i].Spec.Class, cfg.Requests[i].Spec.NoStore, cfg.Requests[i].Spec.Tenant = ieg.P0, false, ""
		cfg.Requests[i].At = 3*time.Second + time.Duration(i%5)*40*time.Second + time.Duration(i/5)*4*time.Second
	}
	cfg.Engines = []Engine{{Device: "cpu", LoadTime: time.Second, Latency: 100 * time.Microsecond,
		Spec: engine.LoadSpec{Backend: "synth", Name: "alpha", Context: 4096, Slots: 2, Layout: "streams",
			Synth: &engine.SynthSpec{Seed: 7, Vocab: 512, StepNS: 4e6, PrefillNS: 5e6, DecodeNS: 1e6, CopyNS: 100}}}}
	return cfg
}

// No token is computed twice that a tier can hold: not on two rows, and not
// after everything was started anew.
func TestNothingIsComputedTwice(t *testing.T) {
	shelf := &Shelf{blocks: map[ieg.BlockHash]*kept{}}
	for _, c := range []struct {
		name  string
		tiers Tiers
		most  float64 // prefilled by unique prompt tokens
	}{
		{"device", Tiers{}, 100},
		{"host", Tiers{Pages: 4000, PageBytes: 4096}, 1.02},
		{"nvme", Tiers{Pages: 60, PageBytes: 4096, NVMe: 1 << 30, Read: 1e8, Write: 1e8, Kept: shelf}, 1.02},
		{"little memory", Tiers{Pages: 20, PageBytes: 4096, NVMe: 1 << 30, Read: 1e8, Write: 1e8}, 1.02},
		{"again", Tiers{Pages: 60, PageBytes: 4096, NVMe: 1 << 30, Read: 1e8, Write: 1e8, Kept: shelf}, 0.02},
	} {
		cfg := chats(c.tiers)
		w, err := run(cfg)
		if err != nil {
			t.Fatal(c.name, err)
		}
		ratio := float64(w.report.PrefilledTokens) / float64(unique(cfg.Requests))
		t.Logf("%s: %d prefilled, %.3f of the unique tokens, hits %v, %d evicted", c.name, w.report.PrefilledTokens, ratio, w.report.KV.Hits, w.m.Status().KV.Evicted)
		if ratio > c.most {
			t.Errorf("%s: %.3f of the unique tokens were prefilled, at most %.2f should be", c.name, ratio, c.most)
		}
	}
}

// unique counts the prompt tokens that no earlier prompt has at the same place
// with the same tokens before it.
func unique(reqs []Request) (n int) {
	seen := map[string]bool{}
	for _, r := range reqs {
		b := fmt.Appendf(nil, "%s|", r.Spec.Tenant)
		for _, t := range r.Spec.Prompt {
			if b = fmt.Appendf(b, "%d,", t); !seen[string(b)] {
				seen[string(b)] = true
				n++
			}
		}
	}
	return n
}

// A disk that is slow, not broken, loses against computing.
func TestSlowDiskLoses(t *testing.T) {
	cfg := chats(Tiers{Pages: 60, PageBytes: 4096, NVMe: 1 << 30, Read: 3e3, Write: 1e8})
	w, err := run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	k := w.report.KV
	if k.FetchesDeclined == 0 || k.Fetches > 20 {
		t.Errorf("%d fetches were declined and %d made from a disk that takes longer than computing", k.FetchesDeclined, k.Fetches)
	}
	if synth.KVToken != 128 {
		t.Fatal("the disk's speed above is meant for 128 bytes a token")
	}
}
