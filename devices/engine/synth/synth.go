package synth

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// Runner is a loaded synthetic engine. See engine.Runner for its contract.
type Runner struct {
	spec      engine.SynthSpec
	info      ieg.EngineInfo
	stopEvery int32
	root      uint64 // hash of the empty prefix
	kv        *cells
	arena     engine.Arena // nil: none
	seqs      map[ieg.SeqID]*sequence
	spare     []*sequence
	steps     uint64
	sum       uint64 // what the last save told

	mu      sync.Mutex
	running bool
	abort   chan struct{} // holds a token once the running step is aborted
	timer   *time.Timer   // with Sleep
}

var (
	_ engine.Runner = (*Runner)(nil)
	_ engine.Loader = Load
)

// Load is the Loader. With Sleep it takes LoadNS.
func Load(ctx context.Context, spec engine.LoadSpec, progress func(float64)) (engine.Runner, error) {
	r, err := New(spec)
	if err != nil {
		return nil, err
	}
	const parts = 10
	for i := 1; i <= parts; i++ {
		if r.spec.Sleep && r.spec.LoadNS > 0 {
			select {
			case <-time.After(time.Duration(r.spec.LoadNS / parts)):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		if progress != nil {
			progress(float64(i) / parts)
		}
	}
	return r, nil
}

// New makes a runner at once, for simulations.
func New(spec engine.LoadSpec) (*Runner, error) {
	r := &Runner{seqs: map[ieg.SeqID]*sequence{}, abort: make(chan struct{}, 1)}
	if spec.Synth != nil {
		r.spec = *spec.Synth
	}
	if err := r.describe(spec); err != nil {
		return nil, err
	}
	r.shareKV(spec)
	r.stopEvery = r.spec.StopEvery
	r.root = mix(r.spec.Seed, uint64(r.info.Model.Vocab))
	r.kv = newCells(r.info.Layout, int(r.info.Slots), int(r.info.Cells))
	return r, nil
}

// describe fills info from the specification and the defaults.
func (r *Runner) describe(spec engine.LoadSpec) error {
	vocab, context, slots := or(r.spec.Vocab, DefaultVocab), or(spec.Context, DefaultContext), or(spec.Slots, DefaultSlots)
	layout := ieg.Unified
	switch spec.Layout {
	case "", "auto", "unified":
	case "streams":
		layout = ieg.Streams
	default:
		return fmt.Errorf("%w: layout %q; use auto, unified or streams", ieg.ErrUnsupported, spec.Layout)
	}
	if vocab < MinVocab || context < 1 || slots < 1 || slots > MaxSlots {
		return fmt.Errorf("%w: vocabulary %d (at least %d), context %d, slots %d (1 to %d)",
			ieg.ErrUnsupported, vocab, MinVocab, context, slots, MaxSlots)
	}
	count := context * slots
	if layout == ieg.Unified {
		count = or(r.spec.Cells, count)
	}
	group := ieg.KVGroup{Kind: ieg.FullAttention, Layers: 1, KVHeads: 1, HeadDim: 2, ElemBytes: 2}
	r.info = ieg.EngineInfo{
		Model: ieg.ModelInfo{
			Name: spec.Name, Aliases: spec.Aliases, Path: spec.Path, Arch: "synthetic",
			Digest: fmt.Sprintf("%016x", mix(r.spec.Seed, uint64(vocab))),
			Params: 1e6, ActiveParams: 1e6, WeightBytes: 2e6, Layers: 1, DModel: 64, Heads: 32,
			KV: []ieg.KVGroup{group}, ContextTrain: context, Vocab: vocab,
			Generative: true, Embedding: spec.Embedding, ChatTemplate: chatTemplate,
			BOS: BOS, EOS: EOS, AddBOS: true, EOG: []ieg.Token{EOS, TurnEnd},
			BOSText: controlText[BOS], EOSText: controlText[EOS], ControlText: controlText[:],
		},
		Device: spec.Device, Backend: "synthetic", Library: "synth 1", Layout: layout, KVType: "f16",
		Slots: slots, SlotTokens: context, Cells: count, StepTokens: StepTokens, UBatch: UBatch,
		Threads: max(spec.Threads, 1), Prefixes: true,
		WeightBytes: 2e6, KVBytes: int64(count) * 8, ComputeBytes: 1e6,
	}
	if spec.Embedding {
		r.info.Model.Pooling = "last"
	}
	return nil
}

// shareKV lets KV out of the engine if there is an arena.
func (r *Runner) shareKV(spec engine.LoadSpec) {
	if spec.Arena == nil {
		if r.info.KVNote = spec.ArenaNote; r.info.KVNote == "" {
			r.info.KVNote = "no arena"
		}
		return
	}
	r.arena = spec.Arena
	r.info.KVToken = KVToken
	r.info.KVPieces = true
	r.info.KVName = fmt.Sprintf("synth 1 %s %016x %d", spec.Name, r.spec.Seed, r.info.Model.Vocab)
}

func or(v, otherwise int32) int32 {
	if v == 0 {
		return otherwise
	}
	return v
}

// Info describes the engine.
func (r *Runner) Info() ieg.EngineInfo { return r.info }

// Tokenize turns "w300 " and the like into words, and the rest into bytes.
func (r *Runner) Tokenize(text string, special bool) ([]ieg.Token, error) {
	return tokenize(text, special, r.info.Model.Vocab), nil
}

// Detokenize is the inverse; a token outside the vocabulary is refused.
func (r *Runner) Detokenize(tokens []ieg.Token) (string, error) {
	var b []byte
	for _, t := range tokens {
		if t < 0 || int32(t) >= r.info.Model.Vocab {
			return "", fmt.Errorf("%w: token %d, the vocabulary has %d", ieg.ErrUnsupported, t, r.info.Model.Vocab)
		}
		b = appendToken(b, t, true)
	}
	return string(b), nil
}

// Abort ends the sleep of the step in flight. A step without Sleep is over
// before it can be aborted.
func (r *Runner) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		return
	}
	select {
	case r.abort <- struct{}{}:
	default:
	}
}

// Close forgets everything.
func (r *Runner) Close() { r.seqs, r.spare, r.kv = nil, nil, nil }
