package llama

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// Load loads a model; it is an engine.Loader.
func Load(ctx context.Context, spec engine.LoadSpec, progress func(float64)) (engine.Runner, error) {
	if progress == nil {
		progress = func(float64) {}
	}
	r, err := load(ctx, &spec, progress)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", spec.Path, err)
	}
	progress(1)
	return r, nil
}

var _ engine.Loader = Load

// loading is a load under way.
type loading struct {
	tokenBytes int64 // KV of a token
	spec       *engine.LoadSpec
	file       *modelFile
	lib        *library
	model      yz.Model
	dev        yz.GGMLBackendDevice
	kvType     yz.GGMLType
	info       ieg.EngineInfo
	size       sizing
	threads    int
	abort      *llamax.Flag
}

func load(ctx context.Context, spec *engine.LoadSpec, progress func(float64)) (r *Runner, err error) {
	l := &loading{spec: spec, abort: llamax.NewFlag()}
	if l.file, err = openModel(spec.Path); err != nil {
		return nil, err
	}
	if l.lib, err = openLibrary(spec.LibDir); err != nil {
		return nil, err
	}
	if err := l.options(); err != nil {
		return nil, err
	}
	if err := l.weights(ctx, progress); err != nil {
		return nil, err
	}
	r = &Runner{lib: l.lib, model: l.model, abort: l.abort, seqs: map[ieg.SeqID]*sequence{}, pass: passSeconds}
	defer func() {
		if err != nil {
			r.Close()
			r = nil
		}
	}()
	if err = l.refuse(); err != nil {
		return r, err
	}
	if r.vocab, err = newVocab(l.lib, l.model, l.file.head.TokenKinds); err != nil {
		return r, err
	}
	r.vocab.describe(&l.info.Model)
	if err = l.contexts(ctx, r); err != nil {
		return r, err
	}
	for range min(l.threads, max(int(l.info.Slots)/rowsPerDrawer, 1)) {
		r.drawers = append(r.drawers, newDrawer(r.vocab.n))
	}
	r.info = l.info
	// The state of a long context, which the layout's measurement copied, is
	// larger than all that stays.
	debug.FreeOSMemory()
	return r, nil
}

// options reads the parts of the spec that need no model.
func (l *loading) options() error {
	s := l.spec
	var ok bool
	if l.kvType, ok = kvTypes[strings.ToLower(s.KVType)]; !ok {
		return fmt.Errorf("%w: KV type %q; known are f16, f32, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl", ieg.ErrUnsupported, s.KVType)
	}
	switch s.Layout {
	case "", "auto", "unified", "streams":
	default:
		return fmt.Errorf("%w: KV layout %q; known are auto, unified, streams", ieg.ErrUnsupported, s.Layout)
	}
	switch s.FlashAttn {
	case "", "auto", "on":
	case "off":
		if quantised(l.kvType) {
			return fmt.Errorf("%w: KV type %s needs flash attention", ieg.ErrUnsupported, s.KVType)
		}
	default:
		return fmt.Errorf("%w: flash attention %q; known are auto, on, off", ieg.ErrUnsupported, s.FlashAttn)
	}
	if l.threads = s.Threads; l.threads <= 0 {
		l.threads = max(grantedCores()-1, 1)
	}
	var err error
	l.dev, l.info.Device, l.info.Backend, err = findDevice(s.Device)
	return err
}

func quantised(t yz.GGMLType) bool {
	return t != yz.GGMLTypeF16 && t != yz.GGMLTypeF32 && t != yz.GGMLTypeBF16
}

// weights loads the model.
func (l *loading) weights(ctx context.Context, progress func(float64)) error {
	elem := float64(yz.GGMLTypeSize(l.kvType)) / float64(yz.GGMLBlockSize(l.kvType))
	l.info.Model = modelInfo(l.file, elem)
	m := &l.info.Model
	m.Name, m.Aliases = l.spec.Name, l.spec.Aliases
	if m.Name == "" {
		m.Name = shortName(m.Path)
	}
	if b := budget(l.spec, l.dev); b > 0 && m.WeightBytes > b {
		return fmt.Errorf("%w: the model needs %s for its weights and %s may be taken; take a smaller model or grant more memory",
			ieg.ErrOutOfMemory, mib(m.WeightBytes), mib(b))
	}
	p := yz.ModelDefaultParams()
	p.SetCPUOnly()
	devices := []yz.GGMLBackendDevice{l.dev, 0}
	if l.dev != 0 {
		p.NGpuLayers, p.SplitMode = int32(m.Layers)+1, yz.SplitModeNone
		if err := p.SetDevices(devices); err != nil {
			return err
		}
	}
	p.SetProgressCallback(func(done float32, _ uintptr) uint8 {
		progress(float64(done) * 0.9)
		if ctx.Err() != nil {
			return 0
		}
		return 1
	})
	l.lib.log.Take()
	var err error
	l.model, err = yz.ModelLoadFromFile(m.Path, p)
	runtime.KeepAlive(devices)
	if err == nil {
		return nil
	}
	log := l.lib.log.Take()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ieg.ErrCancelled, ctx.Err())
	case strings.Contains(log, "alloc"):
		return fmt.Errorf("%w: the weights (%s): %s; take a smaller model or grant more memory", ieg.ErrOutOfMemory, mib(m.WeightBytes), log)
	}
	return fmt.Errorf("%w: llama.cpp %s refuses the model: %s", ieg.ErrUnsupported, LibraryVersion, log)
}

// refuse names the kinds of models that this engine doesn't run.
func (l *loading) refuse() error {
	switch {
	case yz.ModelIsRecurrent(l.model), yz.ModelIsHybrid(l.model):
		return fmt.Errorf("%w: %s keeps a running state instead of KV, which can't be cut or rolled back; take a model with attention in all layers", ieg.ErrUnsupported, l.info.Model.Arch)
	case yz.ModelIsDiffusion(l.model):
		return fmt.Errorf("%w: %s is a diffusion model; take one that writes from left to right", ieg.ErrUnsupported, l.info.Model.Arch)
	case yz.ModelHasEncoder(l.model) && yz.ModelHasDecoder(l.model):
		return fmt.Errorf("%w: %s has an encoder and a decoder; take a model with one of them", ieg.ErrUnsupported, l.info.Model.Arch)
	}
	return nil
}

// contexts sizes and builds what computes.
func (l *loading) contexts(ctx context.Context, r *Runner) error {
	m := &l.info.Model
	m.Embedding = m.Embedding || l.spec.Embedding
	l.info.Library = "llama.cpp " + l.lib.x.Version()
	l.info.Threads = l.threads
	l.info.KVType = strings.ToLower(l.spec.KVType)
	if l.info.KVType == "" {
		l.info.KVType = "f16"
	}
	l.info.StepTokens, l.info.UBatch = l.batch(), stepTokens
	bytes := kvBytes(m.KV)
	var err error
	if m.Generative {
		l.lib.log.Sums()
		if err := l.generation(ctx, r, bytes); err != nil {
			return err
		}
	}
	if !m.Generative {
		l.info.KVNote = "the model keeps no KV"
	}
	if m.Embedding {
		if m.Pooling == "" {
			m.Pooling = "last"
		}
		if r.emb, err = l.embedding(r); err != nil {
			return err
		}
	}
	sums := l.lib.log.Sums()
	l.info.ComputeBytes = sums["compute"] + sums["output"]
	l.info.WeightBytes = m.WeightBytes
	return nil
}

func (l *loading) generation(ctx context.Context, r *Runner, tokenBytes int64) error {
	l.tokenBytes = tokenBytes
	m := &l.info.Model
	var err error
	if l.size, err = size(l.spec, m, tokenBytes, budget(l.spec, l.dev)); err != nil {
		return err
	}
	l.info.KVNote = l.noTiers()
	s, err := l.layOut(ctx, r)
	if err != nil && ctx.Err() == nil && l.tiers() && l.spec.FlashAttn != "on" {
		l.info.KVNote = "blocks need flash attention: " + err.Error()
		s, err = l.layOut(ctx, r)
	}
	if err != nil {
		return err
	}
	l.info.Layout, l.info.FlashAttn = s.layout, s.flash
	l.info.Slots, l.info.Cells = s.slots, s.cells
	l.info.SlotTokens = min(l.size.slotTokens, s.slotTokens)
	if s.layout == ieg.Unified {
		l.info.SlotTokens = min(l.size.most, s.cells)
	}
	if l.spec.Context > 0 {
		l.info.SlotTokens = l.spec.Context
	}
	l.info.Prefixes = true
	if s.flash && l.info.Backend == "CPU" && !quantised(l.kvType) {
		l.info.Tile = flashTile
	}
	l.info.KVBytes = tokenBytes * int64(s.cells)
	l.pin(r.slots.blocks)
	return nil
}

// layOut chooses the shape of the context and builds it.
func (l *loading) layOut(ctx context.Context, r *Runner) (shape, error) {
	s, err := l.choose(ctx, r)
	if err != nil {
		return s, err
	}
	return s, l.build(r, s)
}

// batch is the most tokens of a step: an input to be embedded is one step.
func (l *loading) batch() int32 {
	if l.info.Model.Embedding {
		return embedStepTokens
	}
	return stepTokens
}

// noContext never ends; for loads that can't be cancelled.
var noContext = context.Background()

func (l *loading) freeModel() { _ = yz.ModelFree(l.model) }

func (l *loading) vocabSize() int { return int(yz.VocabNTokens(yz.ModelGetVocab(l.model))) }

// shapeFor is the context's shape in a layout.
func (l *loading) shapeFor(layout ieg.Layout, flash bool) shape {
	s := shape{
		layout: layout, flash: flash, kv: l.kvType, threads: l.threads, device: l.dev != 0,
		slots: l.size.slots, slotTokens: l.size.slotTokens, cells: l.size.slots * l.size.slotTokens,
		batch: l.batch(), ubatch: stepTokens,
	}
	if layout == ieg.Unified {
		s.slotTokens = s.cells
	}
	return s
}

// embedding builds the context for pooled vectors.
func (l *loading) embedding(r *Runner) (*engineContext, error) {
	m := &l.info.Model
	most := int32(embedStepTokens)
	if m.ContextTrain > 0 {
		most = min(most, m.ContextTrain)
	}
	if m.Generative {
		most = min(most, l.info.SlotTokens)
	}
	pooling := map[string]yz.PoolingType{"mean": yz.PoolingTypeMean, "cls": yz.PoolingTypeCLS, "last": yz.PoolingTypeLast}[m.Pooling]
	s := shape{
		layout: ieg.Unified, flash: !m.Generative || l.info.FlashAttn, kv: l.kvType, threads: l.threads, device: l.dev != 0,
		slots: DefaultSlots, cells: roundUp(embedStepTokens), slotTokens: most,
		batch: embedStepTokens, ubatch: embedStepTokens, embed: true, pooling: pooling,
	}
	c, err := newContext(l.lib, l.model, s, l.abort)
	if err != nil {
		return nil, err
	}
	r.embedDim, r.embedTokens = yz.ModelNEmbdOut(l.model), most
	if !m.Generative {
		l.info.Slots, l.info.SlotTokens, l.info.Cells = s.slots, most, s.slots*most
		l.info.StepTokens, l.info.UBatch, l.info.FlashAttn = embedStepTokens, embedStepTokens, s.flash
	}
	return c, nil
}
