package llama

import (
	"fmt"
	"slices"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/devices/engine"
)

// RawKV is an engine whose KV is moved by hand, beside the library's own
// export and import: rows are computed, copied to the arena and brought back,
// and the logits of what follows are read whole.
type RawKV struct {
	r    *Runner
	step ieg.StepID
	done ieg.StepDone
}

// OpenRawKV loads a model that gives its KV away; spec has the arena. The
// caller closes it.
func OpenRawKV(spec engine.LoadSpec) (*RawKV, error) {
	r, err := Load(noContext, spec, nil)
	if err != nil {
		return nil, err
	}
	k := &RawKV{r: r.(*Runner)}
	if k.r.gen == nil || k.r.slots.blocks == nil {
		note := k.r.info.KVNote
		r.Close()
		return nil, fmt.Errorf("%w: this model's KV can't leave it: %s", ieg.ErrUnsupported, note)
	}
	return k, nil
}

// Close frees the model.
func (k *RawKV) Close() { k.r.Close() }

// Info describes the engine.
func (k *RawKV) Info() ieg.EngineInfo { return k.r.info }

// Tokenize turns text into tokens.
func (k *RawKV) Tokenize(text string) ([]ieg.Token, error) { return k.r.Tokenize(text, false) }

// Ops does operations on slots as a step does them and returns the reports of
// its copies, which are valid until the next call.
func (k *RawKV) Ops(ops ...ieg.KVOp) ([]ieg.CopyDone, error) {
	k.step++
	k.r.Step(&ieg.Batch{Step: k.step, Ops: ops}, &k.done)
	if k.done.Outcome != ieg.StepOK {
		return nil, fmt.Errorf("raw KV: %s", k.done.Err)
	}
	return k.done.Copies, nil
}

// Fill computes tokens in a slot behind what it holds.
func (k *RawKV) Fill(slot ieg.Slot, tokens []ieg.Token) error {
	s, b := k.r.slots, k.r.gen.batch
	for len(tokens) > 0 {
		part := tokens[:min(len(tokens), stepTokens)]
		b.n = 0
		for i, t := range part {
			b.add(t, s.tokens[slot]+int32(i), s.seq[slot], false)
		}
		if code := k.r.gen.decode(); code != decodeOK {
			return fmt.Errorf("raw KV: the library fails with code %d", code)
		}
		s.tokens[slot] += int32(len(part))
		tokens = tokens[len(part):]
	}
	return nil
}

// Next computes one token behind what each of the slots holds, all in one
// pass, and returns a row of logits for each, valid until the next call.
func (k *RawKV) Next(slots []ieg.Slot, tokens []ieg.Token) ([][]float32, error) {
	s, b := k.r.slots, k.r.gen.batch
	order := make([]int, len(slots))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return int(s.seq[slots[x]] - s.seq[slots[y]]) })
	b.n = 0
	for _, i := range order {
		b.add(tokens[i], s.tokens[slots[i]], s.seq[slots[i]], true)
	}
	all, err := k.pass()
	if err != nil {
		return nil, err
	}
	rows := make([][]float32, len(slots))
	for row, i := range order {
		rows[i] = all[row]
		s.tokens[slots[i]]++
	}
	return rows, nil
}

// Run computes tokens behind what one slot holds, all in one pass, and returns
// a row of logits for each, valid until the next call. There may be no more
// than the engine has slots.
func (k *RawKV) Run(slot ieg.Slot, tokens []ieg.Token) ([][]float32, error) {
	s, b := k.r.slots, k.r.gen.batch
	if len(tokens) > len(s.tokens) {
		return nil, fmt.Errorf("raw KV: %d rows of logits of an engine of %d slots", len(tokens), len(s.tokens))
	}
	b.n = 0
	for i, t := range tokens {
		b.add(t, s.tokens[slot]+int32(i), s.seq[slot], true)
	}
	rows, err := k.pass()
	if err == nil {
		s.tokens[slot] += int32(len(tokens))
	}
	return rows, err
}

// pass runs the batch, which wants logits of all its rows.
func (k *RawKV) pass() ([][]float32, error) {
	if code := k.r.gen.decode(); code != decodeOK {
		return nil, fmt.Errorf("raw KV: the library fails with code %d", code)
	}
	n, vocab := k.r.gen.batch.n, k.r.vocab.n
	all := k.r.gen.logits(n, vocab)
	if all == nil {
		return nil, fmt.Errorf("raw KV: the library gave no logits")
	}
	return slices.Collect(slices.Chunk(all, vocab)), nil
}

// Export is the library's own state of a slot.
func (k *RawKV) Export(slot ieg.Slot) ([]byte, error) {
	_ = yz.Synchronize(k.r.gen.ctx)
	return k.r.gen.export(k.r.slots.seq[slot], nil)
}

// Import makes a slot hold a state of so many tokens by the library's own
// import, and tells how long that took.
func (k *RawKV) Import(slot ieg.Slot, state []byte, tokens int32) (time.Duration, error) {
	_ = yz.Synchronize(k.r.gen.ctx)
	started := time.Now()
	n := yz.StateSeqSetData(k.r.gen.ctx, state, yz.SeqId(k.r.slots.seq[slot]))
	took := time.Since(started)
	if n != uint64(len(state)) {
		k.r.slots.tokens[slot] = 0
		return took, fmt.Errorf("raw KV: the library took %d of %d bytes", n, len(state))
	}
	k.r.slots.tokens[slot] = tokens
	return took, nil
}
