package llama

import (
	"fmt"
	"slices"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// RawSpec says what the raw loop runs.
type RawSpec struct {
	Load   engine.LoadSpec // path, libraries, threads, KV type, device
	Layout ieg.Layout
	Flash  bool
	// Prompts are computed one after the other, each into a slot of its own.
	Prompts [][]ieg.Token
	// Tokens is the number of tokens drawn per prompt after the first.
	Tokens int
	// Context is the tokens of a slot.
	Context int32
}

// RawResult is what the raw loop reached.
type RawResult struct {
	PrefillTPS float64       // prompt tokens a second
	DecodeTPS  float64       // drawn tokens a second, all slots together
	Prefill    time.Duration // of all prompts
	Decode     time.Duration // of all decode steps
	Tokens     [][]ieg.Token // what was drawn, per prompt
}

// Raw is the library itself through the same binding: prompts computed whole
// in chunks of 512, then one token of each sequence a step, the largest logit
// taken. It knows no stops, text, or sampling; it is the limit that an engine
// is held against.
type Raw struct {
	l       *loading
	c       *engineContext
	vocab   int
	prompts [][]ieg.Token
	last    []ieg.Token // drawn, not computed
	first   []ieg.Token // drawn from the prompts
	drawn   int         // tokens computed beyond the prompts
}

// OpenRaw loads the model and makes the context; the caller closes it.
func OpenRaw(spec RawSpec) (*Raw, error) {
	r := &Raw{l: &loading{spec: &spec.Load, abort: llamax.NewFlag()}, prompts: spec.Prompts}
	l := r.l
	var err error
	if l.file, err = openModel(spec.Load.Path); err != nil {
		return nil, err
	}
	if l.lib, err = openLibrary(spec.Load.LibDir); err != nil {
		return nil, err
	}
	if err = l.options(); err != nil {
		return nil, err
	}
	if err = l.weights(noContext, func(float64) {}); err != nil {
		return nil, err
	}
	l.size = sizing{slots: int32(len(spec.Prompts)), slotTokens: roundUp(spec.Context)}
	if r.c, err = newContext(l.lib, l.model, l.shapeFor(spec.Layout, spec.Flash), l.abort); err != nil {
		l.freeModel()
		return nil, err
	}
	r.vocab = l.vocabSize()
	return r, nil
}

// Close frees context and model.
func (r *Raw) Close() {
	r.c.close()
	r.l.freeModel()
}

// rawShare is the least common start of prompts that is copied, not computed,
// in the streams layout, where each slot has cells of its own all the same.
const rawShare = 512

// Prefill computes all prompts anew and returns how long it took. Prompts that
// begin like the first one are copied from it as far as rawShare allows.
func (r *Raw) Prefill() (time.Duration, error) {
	for s := range r.prompts {
		r.c.trim(int32(s), 0)
	}
	r.last, r.drawn = make([]ieg.Token, len(r.prompts)), 0
	b := r.c.batch
	started := time.Now()
	for s, prompt := range r.prompts {
		for from := r.share(s); from < len(prompt); from += stepTokens {
			part := prompt[from:min(from+stepTokens, len(prompt))]
			b.n = 0
			for i, t := range part {
				b.add(t, int32(from+i), int32(s), from+i == len(prompt)-1)
			}
			if code := r.c.decode(); code != decodeOK {
				return 0, fmt.Errorf("raw loop: prefill ended with code %d", code)
			}
		}
		r.last[s] = largest(r.c.logits(1, r.vocab))
	}
	r.first = slices.Clone(r.last)
	return time.Since(started), nil
}

// share copies the common start of a prompt and the first one and returns its
// length.
func (r *Raw) share(s int) int {
	first, prompt := r.prompts[0], r.prompts[s]
	n := 0
	for n < min(len(first), len(prompt)-1) && first[n] == prompt[n] {
		n++
	}
	if s == 0 || n < rawShare || r.c.shape.layout != ieg.Streams {
		return 0
	}
	_ = yz.MemorySeqCp(r.c.mem, 0, yz.SeqId(s), -1, -1)
	r.c.trim(int32(s), int32(n))
	return n
}

// Decode draws n tokens of each sequence and returns how long it took. tokens
// gets each draw, and may be nil.
func (r *Raw) Decode(n int, tokens func(seq int, t ieg.Token)) (time.Duration, error) {
	b := r.c.batch
	started := time.Now()
	for range n {
		b.n = 0
		for s, prompt := range r.prompts {
			b.add(r.last[s], int32(len(prompt)+r.drawn), int32(s), true)
		}
		if code := r.c.decode(); code != decodeOK {
			return 0, fmt.Errorf("raw loop: decode ended with code %d", code)
		}
		r.drawn++
		rows := r.c.logits(len(r.prompts), r.vocab)
		for s := range r.prompts {
			if tokens != nil {
				tokens(s, r.last[s])
			}
			r.last[s] = largest(rows[s*r.vocab : (s+1)*r.vocab])
		}
	}
	return time.Since(started), nil
}

// Rewind goes back to where the prompts ended.
func (r *Raw) Rewind() {
	for s, prompt := range r.prompts {
		r.c.trim(int32(s), int32(len(prompt)))
	}
	copy(r.last, r.first)
	r.drawn = 0
}

// RawLoop opens, computes the prompts, draws spec.Tokens of each sequence, and
// closes.
func RawLoop(spec RawSpec) (RawResult, error) {
	var res RawResult
	r, err := OpenRaw(spec)
	if err != nil {
		return res, err
	}
	defer r.Close()
	if res.Prefill, err = r.Prefill(); err != nil {
		return res, err
	}
	res.Tokens = make([][]ieg.Token, len(spec.Prompts))
	take := func(s int, t ieg.Token) { res.Tokens[s] = append(res.Tokens[s], t) }
	if res.Decode, err = r.Decode(spec.Tokens, take); err != nil {
		return res, err
	}
	total := 0
	for s, t := range r.last {
		take(s, t)
		total += len(spec.Prompts[s])
	}
	res.PrefillTPS = float64(total) / res.Prefill.Seconds()
	res.DecodeTPS = float64(spec.Tokens*len(spec.Prompts)) / res.Decode.Seconds()
	return res, nil
}

func largest(logits []float32) ieg.Token {
	best, at := logits[0], 0
	for i, v := range logits {
		if v > best {
			best, at = v, i
		}
	}
	return ieg.Token(at)
}
