package llama

import (
	"fmt"
	"slices"
	"time"

	"ieg"
)

// Step runs one batch.
func (r *Runner) Step(b *ieg.Batch, done *ieg.StepDone) {
	start := time.Now()
	r.abortMu.Lock()
	r.abort.Clear()
	r.inStep = true
	r.abortMu.Unlock()

	done.Outcome, done.Err = ieg.StepOK, ""
	done.Results = resize(done.Results, len(b.Work))
	done.Copies = done.Copies[:0]
	if err := r.step(b, done); err != nil {
		done.Outcome, done.Err = ieg.StepFailed, err.Error()
	}
	if done.Outcome != ieg.StepOK {
		done.Results = done.Results[:0]
	}

	r.abortMu.Lock()
	r.inStep = false
	r.abortMu.Unlock()
	done.Took = time.Since(start)
	for i := range done.Copies {
		done.Took -= done.Copies[i].Took
	}
}

// Abort ends the step in flight; without one it does nothing.
func (r *Runner) Abort() {
	r.abortMu.Lock()
	defer r.abortMu.Unlock()
	if r.inStep {
		r.abort.Set()
	}
}

// resize keeps the memory inside old results.
func resize(res []ieg.SeqResult, n int) []ieg.SeqResult {
	if n > cap(res) {
		res = slices.Grow(res[:cap(res)], n-cap(res))
	}
	return res[:n]
}

func (r *Runner) step(b *ieg.Batch, done *ieg.StepDone) error {
	for _, id := range b.Drop {
		delete(r.seqs, id)
	}
	for i := range b.New {
		q, err := r.newSequence(&b.New[i])
		if err != nil {
			return err
		}
		r.seqs[q.id] = q
	}
	if len(b.Ops) > 0 {
		if err := r.operate(b.Ops, done); err != nil {
			return err
		}
	}
	if len(b.Work) == 0 {
		return nil
	}
	if err := r.plan(b.Work); err != nil {
		return err
	}
	if len(r.embeds) > 0 {
		if aborted, err := r.embedAll(b.Work, done); err != nil || aborted {
			if aborted {
				done.Outcome = ieg.StepAborted
			}
			return err
		}
	}
	if len(r.order) == 0 {
		return nil
	}
	return r.compute(b.Work, done)
}

// operate changes the KV of slots. Slots of a model that keeps none are empty.
func (r *Runner) operate(ops []ieg.KVOp, done *ieg.StepDone) error {
	if r.gen != nil {
		err := r.slots.apply(ops, done)
		r.slots.dropBlob()
		return err
	}
	for i, op := range ops {
		if op.Kind > ieg.KVCopy || op.N != 0 || op.To < 0 || int32(op.To) >= r.info.Slots {
			return fmt.Errorf("operation %d: %d tokens of slot %d: this model keeps no KV", i, op.N, op.To)
		}
	}
	return nil
}

// plan checks the work and sorts it: r.order lists generation by slot, since
// a stream per slot wants ascending neighbours; r.embeds lists inputs to be
// embedded.
func (r *Runner) plan(work []ieg.Work) error {
	r.order, r.embeds = r.order[:0], r.embeds[:0]
	r.picked = r.picked[:0]
	rows := int32(0)
	for i := range work {
		w := &work[i]
		q := r.seqs[w.Seq]
		if q == nil {
			return fmt.Errorf("work %d: sequence %d is unknown", i, w.Seq)
		}
		if err := r.checkWork(w, q); err != nil {
			return fmt.Errorf("work %d: sequence %d: %w", i, w.Seq, err)
		}
		r.picked = append(r.picked, q)
		if q.embed {
			r.embeds = append(r.embeds, i)
			continue
		}
		rows += w.N
		r.order = append(r.order, i)
	}
	if rows > r.info.StepTokens {
		return fmt.Errorf("%d tokens in one batch, at most %d", rows, r.info.StepTokens)
	}
	r.sortBySeq(work)
	for k := 1; k < len(r.order); k++ {
		if a, b := work[r.order[k-1]], work[r.order[k]]; a.Slot == b.Slot {
			return fmt.Errorf("sequences %d and %d both work in slot %d", a.Seq, b.Seq, a.Slot)
		}
	}
	return nil
}

// sortBySeq orders generation by the library's sequences.
func (r *Runner) sortBySeq(work []ieg.Work) {
	if r.gen != nil {
		seq := r.slots.seq
		slices.SortFunc(r.order, func(x, y int) int { return int(seq[work[x].Slot] - seq[work[y].Slot]) })
	}
}

func (r *Runner) checkWork(w *ieg.Work, q *sequence) error {
	known := int32(len(q.tokens))
	switch {
	case w.N <= 0 || w.Start < 0 || w.Start+w.N > known:
		return fmt.Errorf("tokens [%d, %d) of %d known", w.Start, w.Start+w.N, known)
	case q.embed:
		if r.emb == nil {
			return fmt.Errorf("%w: the model was not loaded for embeddings", ieg.ErrUnsupported)
		}
		if w.Start != 0 || w.N != known || w.Sample {
			return fmt.Errorf("an input to be embedded is computed whole, not [%d, %d) of %d", w.Start, w.Start+w.N, known)
		}
		return nil
	case r.gen == nil:
		return fmt.Errorf("%w: the model only embeds", ieg.ErrUnsupported)
	case !r.slots.valid(w.Slot):
		return fmt.Errorf("slot %d of %d", w.Slot, len(r.slots.tokens))
	case w.Start+w.N > r.info.SlotTokens:
		return fmt.Errorf("%w: %d tokens in a slot of %d", ieg.ErrContextLength, w.Start+w.N, r.info.SlotTokens)
	case w.Sample && w.Start+w.N != known:
		return fmt.Errorf("a draw after token %d of %d known", w.Start+w.N, known)
	}
	held := r.slots.tokens[w.Slot]
	if w.Start > held {
		return fmt.Errorf("it starts at %d, but slot %d holds %d tokens", w.Start, w.Slot, held)
	}
	if w.Start < held {
		return r.slots.trim(w.Slot, w.Start)
	}
	return nil
}

// compute runs the forward pass and draws.
func (r *Runner) compute(work []ieg.Work, done *ieg.StepDone) error {
	if err := r.compact(work); err != nil {
		return err
	}
	rows := r.fill(work)
	code := r.gen.decode()
	r.slots.deferred = false
	if code != decodeOK {
		return r.rollBack(work, code, done)
	}
	for _, s := range r.fillers {
		if err := r.slots.trim(s, r.slots.tokens[s]); err != nil {
			return err
		}
	}
	if rows > 0 {
		if r.logits = r.gen.logits(rows, r.vocab.n); r.logits == nil {
			return fmt.Errorf("the library gave no logits")
		}
	}
	r.rowOf = slices.Grow(r.rowOf[:0], len(work))[:len(work)]
	row := 0
	for _, i := range r.order {
		w, res := &work[i], &done.Results[i]
		r.slots.tokens[w.Slot] = w.Start + w.N
		*res = ieg.SeqResult{Seq: w.Seq, Computed: w.N, Text: res.Text[:0], Logprob: res.Logprob}
		r.rowOf[i] = -1
		if w.Sample {
			r.rowOf[i] = row
			row++
		} else {
			res.Logprob = nil
		}
	}
	r.results = done.Results
	r.drawAll(rows)
	return nil
}

// fill builds the batch and returns the number of rows with logits. In streams
// one pass takes ascending neighbours only: short gaps are filled with a row
// of an idle slot, whose token is dropped again, where a row costs less than
// another pass.
func (r *Runner) fill(work []ieg.Work) int {
	b := r.gen.batch
	b.n = 0
	r.fillers = r.fillers[:0]
	rows, room := 0, len(b.token)
	for _, i := range r.order {
		room -= int(work[i].N)
	}
	before := int32(-1)
	for _, i := range r.order {
		w, q := &work[i], r.picked[i]
		seq := r.slots.seq[w.Slot]
		if gap := int(seq - before - 1); before >= 0 && gap > 0 && gap <= min(r.fillGap, room) && r.fillable(before+1, seq) {
			for s := before + 1; s < seq; s++ {
				idle := r.slots.slot[s]
				b.add(0, r.slots.tokens[idle], s, false)
				r.fillers = append(r.fillers, idle)
				room--
			}
		}
		before = seq
		for k := range w.N {
			last := k == w.N-1
			b.add(q.tokens[w.Start+k], w.Start+k, seq, last && w.Sample)
		}
		if w.Sample {
			rows++
		}
	}
	return rows
}

// fillable tells that the streams in [from, to) have room for a token.
func (r *Runner) fillable(from, to int32) bool {
	for s := from; s < to; s++ {
		if r.slots.tokens[r.slots.slot[s]] >= r.gen.shape.slotTokens {
			return false
		}
	}
	return true
}

// rollBack undoes a decode that did not succeed.
func (r *Runner) rollBack(work []ieg.Work, code int32, done *ieg.StepDone) error {
	log := r.lib.log.Take()
	for _, i := range r.order {
		if err := r.slots.trim(work[i].Slot, work[i].Start); err != nil {
			return err
		}
	}
	for _, s := range r.fillers {
		if err := r.slots.trim(s, r.slots.tokens[s]); err != nil {
			return err
		}
	}
	switch code {
	case decodeAborted:
		done.Outcome = ieg.StepAborted
		return nil
	case decodeNoRoom:
		return fmt.Errorf("%w: no room in the KV for %d tokens; %d cells in all", ieg.ErrOutOfMemory, r.gen.batch.n, r.info.Cells)
	}
	return fmt.Errorf("llama.cpp failed with code %d: %s", code, log)
}

// finish draws a sequence's next token and fills its result, whose Logprob
// may hold memory to be used again.
func (d *drawer) finish(r *Runner, q *sequence, logits []float32, res *ieg.SeqResult) {
	lp := res.Logprob
	res.Logprob = nil
	if q.bad != nil {
		res.Stop = ieg.StopError
		return
	}
	t := d.draw(q, logits)
	if t < 0 {
		res.Stop = ieg.StopError
		res.Text = append(res.Text, q.text.Finish()...)
		return
	}
	if q.par.Logprobs >= 0 {
		res.Logprob = d.logprob(r.vocab, q, t, lp)
	}
	shown, stop, stopText := q.take(r.vocab, t)
	res.Sampled, res.Token = true, t
	res.Text = append(res.Text, shown...)
	if stop == ieg.NotStopped && len(q.tokens) >= int(r.info.SlotTokens) {
		stop = ieg.StopLength
	}
	if stop != ieg.NotStopped {
		res.Text = append(res.Text, q.text.Finish()...)
		res.Stop, res.StopText = stop, stopText
	}
}
