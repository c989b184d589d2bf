package sim

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"ieg"
	"ieg/bench/trace"
	"ieg/devices/engine"
	"ieg/devices/engine/synth"
	"ieg/kernel"
)

// options are the command line's.
type options struct {
	seed     uint64
	requests int
	rate     float64
	prompt   int
	output   int
	trace    string
	speed    float64 // of the trace
	engines  int
	models   int
	slots    int
	context  int
	cells    int
	layout   string
	prefill  float64 // tokens/s
	step     time.Duration
	perSeq   time.Duration
	faults   bool
	check    bool
	record   string
	replay   string
	json     bool
}

func parse(args []string, stderr io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("ieg sim", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Uint64Var(&o.seed, "seed", 1, "seed of work and faults; equal flags give equal runs")
	f.IntVar(&o.requests, "requests", 200, "number of requests; with --trace the most that are taken, 0: all")
	f.Float64Var(&o.rate, "rate", 2, "arrivals per second; 0: all at once")
	f.IntVar(&o.prompt, "prompt", 600, "longest made-up prompt in tokens")
	f.IntVar(&o.output, "output", 120, "longest made-up output in tokens")
	f.StringVar(&o.trace, "trace", "", "take arrivals and lengths from this file of JSON lines (may be gzipped)")
	f.Float64Var(&o.speed, "speed", 1, "play the trace so many times as fast")
	f.IntVar(&o.engines, "engines", 1, "number of engines, each on a device of its own")
	f.IntVar(&o.models, "models", 1, "number of models the engines hold in turn")
	f.IntVar(&o.slots, "slots", 16, "rows of KV of an engine")
	f.IntVar(&o.context, "context", 8192, "tokens of one row; raised to fit a trace")
	f.IntVar(&o.cells, "cells", 0, "tokens of all rows together in the unified layout; 0: each can be full")
	f.StringVar(&o.layout, "layout", "streams", "unified or streams")
	f.Float64Var(&o.prefill, "prefill", 950, "prefill speed in tokens/s")
	f.DurationVar(&o.step, "step", 3600*time.Microsecond, "fixed time of a step")
	f.DurationVar(&o.perSeq, "per-seq", 1100*time.Microsecond, "time of each decoding sequence in a step")
	f.BoolVar(&o.faults, "faults", false, "fail, slow down, hang and kill engines at random")
	f.BoolVar(&o.check, "check", false, "prove the kernel's invariants after each event, and every text")
	f.StringVar(&o.record, "record", "", "write a flight recorder segment of the run to this file")
	f.StringVar(&o.replay, "replay", "", "run a flight recorder segment again and compare its decisions")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.Usage = func() {
		fmt.Fprintf(stderr, "Simulate the kernel with synthetic engines in virtual time, or replay a recording.\n\nFlags:\n")
		f.PrintDefaults()
	}
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	return o, o.validate()
}

func (o *options) validate() error {
	switch {
	case o.requests < 0 || o.requests > RequestsMax || o.requests == 0 && o.trace == "":
		return fmt.Errorf("--requests is %d, not in 1 … %d", o.requests, RequestsMax)
	case o.prompt < 1 || o.output < 1:
		return errors.New("--prompt and --output must be at least 1")
	case o.rate < 0 || o.speed <= 0 || o.prefill <= 0 || o.step < 0 || o.perSeq < 0:
		return errors.New("--rate, --step and --per-seq can't be negative, --speed and --prefill must be positive")
	case o.engines < 1 || o.engines > 1024 || o.models < 1 || o.models > o.engines:
		return errors.New("--engines is 1 … 1024, --models at most as many")
	case o.slots < 1 || o.slots > synth.MaxSlots:
		return fmt.Errorf("--slots is %d, not in 1 … %d", o.slots, synth.MaxSlots)
	case o.context < 2 || o.context > 1<<22:
		return fmt.Errorf("--context is %d, not in 2 … %d", o.context, 1<<22)
	case o.cells != 0 && o.cells < o.context:
		return errors.New("--cells must hold one full row at least")
	case o.layout != "unified" && o.layout != "streams":
		return fmt.Errorf("--layout is %q, not unified or streams", o.layout)
	}
	return nil
}

// config makes the run that the options describe.
func (o *options) config() (Config, error) {
	cfg := Config{Seed: o.seed, Kernel: kernel.DefaultConfig(), Check: o.check, Verify: o.check}
	cfg.Kernel.WaitingMax = RequestsMax
	var names []string
	for i := range o.models {
		names = append(names, "model-"+strconv.Itoa(i+1))
	}
	if o.trace == "" {
		cfg.Requests = Work{Seed: o.seed, Requests: o.requests, Rate: o.rate, Models: names, Vocab: synth.DefaultVocab,
			PromptMax: o.prompt, OutputMax: o.output, Stems: 4}.Make()
	} else {
		recs, err := readTrace(o.trace)
		if err != nil {
			return cfg, err
		}
		if o.requests > 0 && len(recs) > o.requests {
			recs = recs[:o.requests]
		}
		cfg.Requests = o.fromTrace(recs, names)
	}
	need := 0
	for _, r := range cfg.Requests {
		need = max(need, len(r.Spec.Prompt)+int(r.Spec.MaxTokens))
	}
	o.context = max(o.context, need+1)
	if o.cells != 0 {
		o.cells = max(o.cells, o.context)
	}
	for i := range o.engines {
		cfg.Engines = append(cfg.Engines, o.engine(i, names[i%len(names)]))
	}
	if o.faults {
		cfg.Faults = Faults{Fail: 0.001, Slow: 0.01, SlowBy: 10, Hang: 0.0005, Die: 0.001, Most: 1 + len(cfg.Requests)/20}
	}
	return cfg, nil
}

func (o *options) engine(i int, model string) Engine {
	return Engine{
		Device: "device-" + strconv.Itoa(i+1),
		Spec: engine.LoadSpec{Backend: "synth", Name: model, Context: int32(o.context), Slots: int32(o.slots), Layout: o.layout,
			Synth: &engine.SynthSpec{Seed: 7, StepNS: int64(o.step), DecodeNS: int64(o.perSeq), PrefillNS: int64(1e9 / o.prefill), KiloCellNS: 20_000, Cells: int32(o.cells)}},
		LoadTime: time.Second, Latency: 50 * time.Microsecond,
	}
}

func readTrace(path string) ([]trace.Record, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	recs, err := trace.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(recs) == 0 {
		return nil, fmt.Errorf("%s holds no requests", path)
	}
	return recs, nil
}

// fromTrace makes requests of records. Blocks with the same hash become the
// same tokens; what has no hash is like nothing else.
func (o *options) fromTrace(recs []trace.Record, models []string) []Request {
	const words = synth.DefaultVocab - FirstToken
	out := make([]Request, len(recs))
	for i, rec := range recs {
		prompt := make([]ieg.Token, 0, rec.Input)
		for b := 0; len(prompt) < rec.Input; b++ {
			rng := rand.New(rand.NewPCG(o.seed, uint64(i)<<32|uint64(b)|1<<63))
			if b < len(rec.Hashes) {
				rng = rand.New(rand.NewPCG(o.seed, uint64(rec.Hashes[b])&^(1<<63)))
			}
			for range min(trace.HashTokens, rec.Input-len(prompt)) {
				prompt = append(prompt, FirstToken+ieg.Token(rng.Int32N(words)))
			}
		}
		out[i] = Request{At: time.Duration(float64(rec.At) / o.speed), Spec: &ieg.Request{
			ID: ieg.RequestID(i + 1), Model: models[i%len(models)], N: 1, Class: ieg.P0, Prompt: prompt, MaxTokens: int32(max(rec.Output, 1)),
			Deadline: ieg.Never, Sampling: ieg.Sampling{TopP: 1, RepetitionPenalty: 1, Logprobs: -1, IgnoreEOS: true},
		}}
	}
	return out
}
