package synth

import (
	"fmt"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// Step runs one batch.
func (r *Runner) Step(b *ieg.Batch, done *ieg.StepDone) {
	r.enter()
	defer r.leave()
	done.Copies = done.Copies[:0]
	err := r.prepare(b, done)
	if err == nil {
		err = r.check(b.Work)
	}
	if err != nil {
		done.Outcome, done.Err, done.Results = ieg.StepFailed, err.Error(), done.Results[:0]
		return
	}
	done.Took = r.took(b.Work)
	if r.spec.Sleep && r.sleep(done.Took) {
		done.Outcome, done.Results = ieg.StepAborted, done.Results[:0]
		return
	}
	done.Outcome = ieg.StepOK
	done.Results = results(done.Results, len(b.Work))
	for i := range b.Work {
		r.compute(&b.Work[i], &done.Results[i])
	}
}

func (r *Runner) enter() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = true
	r.steps++
}

func (r *Runner) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	select {
	case <-r.abort:
	default:
	}
}

// sleep waits for d, or tells that the step was aborted.
func (r *Runner) sleep(d time.Duration) (aborted bool) {
	r.reset(d)
	select {
	case <-r.timer.C:
		return false
	case <-r.abort:
		r.timer.Stop()
		return true
	}
}

// wait lets d pass, abort or not: copies are done in any case.
func (r *Runner) wait(d time.Duration) {
	r.reset(d)
	<-r.timer.C
}

func (r *Runner) reset(d time.Duration) {
	if r.timer == nil {
		r.timer = time.NewTimer(d)
	} else {
		r.timer.Reset(d)
	}
}

// prepare does Drop, New and Ops.
func (r *Runner) prepare(b *ieg.Batch, done *ieg.StepDone) error {
	for _, id := range b.Drop {
		if s := r.seqs[id]; s != nil {
			delete(r.seqs, id)
			r.spare = append(r.spare, s)
		}
	}
	for i := range b.New {
		if err := r.begin(&b.New[i]); err != nil {
			return err
		}
	}
	return r.operate(b.Ops, done)
}

// operate does Ops in order. A load of bad bytes does not end them.
func (r *Runner) operate(ops []ieg.KVOp, done *ieg.StepDone) (bad error) {
	for i := range ops {
		op := &ops[i]
		if op.Kind != ieg.KVSave && op.Kind != ieg.KVLoad {
			if err := r.kv.apply(op); err != nil {
				return err
			}
			continue
		}
		if engine.Moot(ops, i, done.Copies) {
			continue
		}
		report := ieg.CopyDone{Op: int32(i)}
		err := engine.CheckNext(ops, i)
		if err == nil {
			err = r.copyKV(op, &report)
		}
		if err != nil {
			return fmt.Errorf("operation %d: %w", i, err)
		}
		done.Copies = append(done.Copies, report)
		if report.Bad > 0 && bad == nil {
			bad = fmt.Errorf("operation %d: load into slot %d: the bytes of extent %d are not what its digest says", i, op.To, report.Bad-1)
		}
	}
	return bad
}

// begin takes a sequence in and replays what it has generated.
func (r *Runner) begin(n *ieg.SeqStart) error {
	switch {
	case len(n.Tokens) == 0 || n.Prompt < 1 || int(n.Prompt) > len(n.Tokens):
		return fmt.Errorf("sequence %d has %d tokens, %d of them its prompt", n.Seq, len(n.Tokens), n.Prompt)
	case !r.kv.has(n.Slot):
		return fmt.Errorf("sequence %d in slot %d; there are %d slots", n.Seq, n.Slot, r.info.Slots)
	case n.Embed && !r.info.Model.Embedding:
		return fmt.Errorf("sequence %d asks for a vector of a model without embeddings", n.Seq)
	case n.Sampling.Grammar != "":
		return fmt.Errorf("sequence %d has a grammar, which the synthetic engine does not follow", n.Seq)
	}
	for i, t := range n.Tokens {
		if t < 0 || int32(t) >= r.info.Model.Vocab {
			return fmt.Errorf("token %d of sequence %d is %d; the vocabulary has %d", i, n.Seq, t, r.info.Model.Vocab)
		}
	}
	s := r.seqs[n.Seq]
	if s == nil {
		if k := len(r.spare); k > 0 {
			s, r.spare = r.spare[k-1], r.spare[:k-1]
		} else {
			s = new(sequence)
		}
		r.seqs[n.Seq] = s
	}
	*s = sequence{
		slot: n.Slot, prompt: n.Prompt, max: n.MaxTokens, embed: n.Embed, sampling: n.Sampling,
		tokens: append(s.tokens[:0], n.Tokens[:n.Prompt]...), pending: s.pending[:0],
	}
	var shown [64]byte
	for _, t := range n.Tokens[n.Prompt:] {
		s.add(shown[:0], t, false)
	}
	return nil
}

// check refuses work that breaks the contract, before anything is computed.
func (r *Runner) check(work []ieg.Work) error {
	total := 0
	for i := range work {
		w := &work[i]
		s := r.seqs[w.Seq]
		switch {
		case s == nil:
			return fmt.Errorf("sequence %d is unknown", w.Seq)
		case s.slot != w.Slot:
			return fmt.Errorf("sequence %d is in slot %d, the work says %d", w.Seq, s.slot, w.Slot)
		case s.mark == r.steps || r.kv.marked[w.Slot] == r.steps:
			return fmt.Errorf("sequence %d or its slot %d appears twice", w.Seq, w.Slot)
		case w.Start < 0 || w.N < 1 || int64(w.Start)+int64(w.N) > int64(len(s.tokens)):
			return fmt.Errorf("sequence %d has %d tokens, the work is %d from %d", w.Seq, len(s.tokens), w.N, w.Start)
		case w.Sample && int(w.Start+w.N) != len(s.tokens):
			return fmt.Errorf("sequence %d has %d tokens, the work samples after %d", w.Seq, len(s.tokens), w.Start+w.N)
		case s.embed && (w.Sample || int(w.N) != len(s.tokens)):
			return fmt.Errorf("sequence %d wants a vector of %d tokens; the work is %d from %d, sample %t", w.Seq, len(s.tokens), w.N, w.Start, w.Sample)
		case w.Start+w.N > r.info.SlotTokens:
			return fmt.Errorf("sequence %d would take %d tokens, a slot holds %d", w.Seq, w.Start+w.N, r.info.SlotTokens)
		}
		if err := r.kv.holds(w.Slot, w.Start, s.prefix(w.Start, r.root)); err != nil {
			return fmt.Errorf("sequence %d: %w", w.Seq, err)
		}
		s.mark, r.kv.marked[w.Slot] = r.steps, r.steps
		total += int(w.N)
	}
	if total > int(r.info.StepTokens) {
		return fmt.Errorf("%d tokens in a step, the limit is %d", total, r.info.StepTokens)
	}
	if free := r.kv.most - r.kv.used; total > free {
		return fmt.Errorf("no cells: %d tokens, %d of %d cells free", total, free, r.kv.most)
	}
	return nil
}

// took is the made-up time of a step: fixed, per token of prefill, per decoded
// sequence, and per cell of KV that is read. In the unified layout each
// sequence reads all cells in use, with streams its own. A step without work
// is no pass and takes none.
func (r *Runner) took(work []ieg.Work) time.Duration {
	if len(work) == 0 {
		return 0
	}
	var prefill, decode, read int64
	for i := range work {
		w := &work[i]
		if w.N == 1 && w.Sample {
			decode++
		} else {
			prefill += int64(w.N)
		}
		if r.info.Layout == ieg.Unified {
			read += int64(r.kv.used)
		} else {
			read += int64(w.Start)
		}
		read += int64(w.N)
	}
	p := &r.spec
	return time.Duration(p.StepNS + p.PrefillNS*prefill + p.DecodeNS*decode + p.KiloCellNS*read/1000)
}

// compute does one sequence's work, which has been checked.
func (r *Runner) compute(w *ieg.Work, out *ieg.SeqResult) {
	s := r.seqs[w.Seq]
	end := w.Start + w.N
	for s.at < end {
		r.kv.put(w.Slot, s.prefix(s.at+1, r.root))
	}
	*out = ieg.SeqResult{Seq: w.Seq, Computed: w.N, Text: out.Text[:0]}
	switch {
	case s.embed:
		out.Vector, out.Stop = vector(s.hash), ieg.StopEnd
	case w.Sample:
		out.Sampled, out.Token = true, r.draw(s, s.hash)
		if s.sampling.Logprobs >= 0 {
			out.Logprob = r.logprob(s, s.hash, out.Token)
		}
		out.Text, out.Stop, out.StopText = s.add(out.Text, out.Token, end >= r.info.SlotTokens)
	}
}

// results returns n results that keep the texts' memory.
func results(s []ieg.SeqResult, n int) []ieg.SeqResult {
	if n > cap(s) {
		grown := make([]ieg.SeqResult, n, n+n/4)
		copy(grown, s[:cap(s)])
		return grown
	}
	return s[:n]
}
