package llama

import (
	"fmt"
	"sync"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// Runner is a loaded model. It implements engine.Runner.
type Runner struct {
	info     ieg.EngineInfo
	lib      *library
	model    yz.Model
	vocab    *vocab
	gen      *engineContext // nil: the model only embeds
	emb      *engineContext // nil: it was not loaded for embeddings
	slots    *slots
	seqs     map[ieg.SeqID]*sequence
	grammars grammars
	drawers  []*drawer // one for each thread
	// fillGap is the longest gap between slots that is filled.
	fillGap int
	// pass is the fixed time of a pass in seconds; gapSteps counts steps with
	// gaps.
	pass        float64
	gapSteps    int
	embedDim    int32
	embedTokens int32

	// Working memory of a step.
	order, embeds []int
	picked        []*sequence
	fillers       []ieg.Slot
	rowOf         []int // row of logits of each work, -1: none
	logits        []float32
	results       []ieg.SeqResult

	abort   *llamax.Flag
	abortMu sync.Mutex
	inStep  bool

	closeMu sync.RWMutex // held for reading while the vocabulary is read
	closed  bool
}

var _ engine.Runner = (*Runner)(nil)

// Info describes the engine.
func (r *Runner) Info() ieg.EngineInfo { return r.info }

// Tokenize turns text into tokens.
func (r *Runner) Tokenize(text string, special bool) ([]ieg.Token, error) {
	r.closeMu.RLock()
	defer r.closeMu.RUnlock()
	if r.closed {
		return nil, fmt.Errorf("%w: it was closed", ieg.ErrEngineLost)
	}
	return r.vocab.tokenize(text, special)
}

// Detokenize is the inverse.
func (r *Runner) Detokenize(tokens []ieg.Token) (string, error) {
	r.closeMu.RLock()
	defer r.closeMu.RUnlock()
	if r.closed {
		return "", fmt.Errorf("%w: it was closed", ieg.ErrEngineLost)
	}
	return r.vocab.detokenize(tokens)
}

// Close frees the model. No step may be running.
func (r *Runner) Close() {
	r.closeMu.Lock()
	defer r.closeMu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	r.gen.close()
	if r.slots != nil {
		r.slots.blocks.release()
	}
	r.emb.close()
	_ = yz.ModelFree(r.model)
	r.seqs = nil
}
