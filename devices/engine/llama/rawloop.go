package llama

import (
	"fmt"
	"time"

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

// RawLoop measures what the library itself reaches through the same binding:
// prompts computed whole in chunks of 512, then one token of each sequence a
// step, the largest logit taken. It knows no stops, text, or sampling; it is
// the limit that an engine is held against.
func RawLoop(spec RawSpec) (RawResult, error) {
	var res RawResult
	l := &loading{spec: &spec.Load, abort: llamax.NewFlag()}
	var err error
	if l.file, err = openModel(spec.Load.Path); err != nil {
		return res, err
	}
	if l.lib, err = openLibrary(spec.Load.LibDir); err != nil {
		return res, err
	}
	if err = l.options(); err != nil {
		return res, err
	}
	if err = l.weights(noContext, func(float64) {}); err != nil {
		return res, err
	}
	defer l.freeModel()
	l.size = sizing{slots: int32(len(spec.Prompts)), slotTokens: roundUp(spec.Context)}
	c, err := newContext(l.lib, l.model, l.shapeFor(spec.Layout, spec.Flash), l.abort)
	if err != nil {
		return res, err
	}
	defer c.close()
	return res, rawRun(c, l.vocabSize(), &spec, &res)
}

func rawRun(c *engineContext, vocab int, spec *RawSpec, res *RawResult) error {
	b := c.batch
	last := make([]ieg.Token, len(spec.Prompts))
	res.Tokens = make([][]ieg.Token, len(spec.Prompts))
	total := 0
	started := time.Now()
	for s, prompt := range spec.Prompts {
		total += len(prompt)
		for from := 0; from < len(prompt); from += stepTokens {
			part := prompt[from:min(from+stepTokens, len(prompt))]
			b.n = 0
			for i, t := range part {
				b.add(t, int32(from+i), int32(s), from+i == len(prompt)-1)
			}
			if code := c.decode(); code != decodeOK {
				return fmt.Errorf("raw loop: prefill ended with code %d", code)
			}
		}
		last[s] = largest(c.logits(1, vocab))
	}
	res.Prefill = time.Since(started)
	started = time.Now()
	for n := range spec.Tokens {
		b.n = 0
		for s, prompt := range spec.Prompts {
			b.add(last[s], int32(len(prompt)+n), int32(s), true)
		}
		if code := c.decode(); code != decodeOK {
			return fmt.Errorf("raw loop: decode ended with code %d", code)
		}
		rows := c.logits(len(spec.Prompts), vocab)
		for s := range spec.Prompts {
			res.Tokens[s] = append(res.Tokens[s], last[s])
			last[s] = largest(rows[s*vocab : (s+1)*vocab])
		}
	}
	res.Decode = time.Since(started)
	for s := range last {
		res.Tokens[s] = append(res.Tokens[s], last[s])
	}
	res.PrefillTPS = float64(total) / res.Prefill.Seconds()
	res.DecodeTPS = float64(spec.Tokens*len(spec.Prompts)) / res.Decode.Seconds()
	return nil
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
