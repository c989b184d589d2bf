package engine

import (
	"fmt"

	"ieg"
)

// takeBatch decodes a batch and hands it to the worker.
func (s *server) takeBatch(body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.loaded:
		return fmt.Errorf("%w: batch before the model is ready", ieg.ErrProtocol)
	case s.closing:
		return fmt.Errorf("%w: batch after close", ieg.ErrProtocol)
	case s.busy:
		return fmt.Errorf("%w: batch while step %d is in flight", ieg.ErrProtocol, s.batch.Step)
	}
	if err := decodeBatch(body, &s.batch); err != nil {
		return err
	}
	if s.batch.Engine != s.id || s.batch.Epoch != s.epoch {
		return fmt.Errorf("%w: batch for engine %d epoch %d reached engine %d epoch %d",
			ieg.ErrProtocol, s.batch.Engine, s.batch.Epoch, s.id, s.epoch)
	}
	s.busy, s.halted, s.aborted = true, false, false
	s.work <- struct{}{}
	return nil
}

// runBatch runs the batch and its repeats, and reports each.
func (s *server) runBatch() error {
	b, d := &s.batch, &s.done
	grant := b.Grant
	fault := checkGrant(b)
	s.warm.used(b.Ops)
	for repeat := int32(0); ; repeat++ {
		*d = ieg.StepDone{Engine: b.Engine, Epoch: b.Epoch, Step: b.Step, Repeat: repeat, Results: d.Results[:0], Copies: d.Copies[:0]}
		s.runStep(b, d, fault)
		d.Last = s.endRepeat(repeat == grant)
		if err := s.report(); err != nil || d.Last {
			return err
		}
		nextRepeat(b)
	}
}

// runStep runs one repeat. An abort that came before it, or a fault of the
// grant, leaves Work out; Drop, New and Ops are done all the same.
func (s *server) runStep(b *ieg.Batch, d *ieg.StepDone, fault string) {
	s.mu.Lock()
	aborted := s.aborted
	s.mu.Unlock()
	if aborted || fault != "" {
		b.Work = b.Work[:0]
	}
	s.runner.Step(b, d)
	switch {
	case d.Outcome == ieg.StepOK && len(d.Results) != len(b.Work):
		d.Outcome = ieg.StepFailed
		d.Err = fmt.Sprintf("the runner gave %d results for %d sequences", len(d.Results), len(b.Work))
	case d.Outcome != ieg.StepFailed && len(d.Copies) != copies(b.Ops):
		d.Outcome = ieg.StepFailed
		d.Err = fmt.Sprintf("the runner reports %d copies of %d", len(d.Copies), copies(b.Ops))
	case d.Outcome == ieg.StepOK && fault != "":
		d.Outcome, d.Err = ieg.StepFailed, fault
	case d.Outcome == ieg.StepOK && aborted:
		d.Outcome = ieg.StepAborted
	}
	if d.Outcome != ieg.StepOK {
		d.Results = d.Results[:0]
	}
}

// copies is the number of operations that a report tells of.
func copies(ops []ieg.KVOp) (n int) {
	for i := range ops {
		if ops[i].Kind == ieg.KVSave || ops[i].Kind == ieg.KVLoad {
			n++
		}
	}
	return n
}

// endRepeat tells whether the grant ends here, and if so lets go of the batch.
func (s *server) endRepeat(spent bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := spent || s.halted || s.aborted || s.done.Outcome != ieg.StepOK
	for i := range s.done.Results {
		last = last || s.done.Results[i].Stop != ieg.NotStopped
	}
	if last {
		s.busy = false
	}
	return last
}

// report sends done; it does not use frameWriter.send, whose closure would be
// the loop's only allocation.
func (s *server) report() error {
	f := &s.out
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush(appendDone(openFrame(f.buf[:0], frameDone), &s.done))
}

// checkGrant says what is wrong with a batch's grant, or "".
func checkGrant(b *ieg.Batch) string {
	if b.Grant < 0 {
		return fmt.Sprintf("grant of %d repeats", b.Grant)
	}
	if b.Grant == 0 {
		return ""
	}
	if len(b.Work) == 0 {
		return fmt.Sprintf("grant of %d repeats without work", b.Grant)
	}
	for i := range b.Work {
		if !b.Work[i].Sample {
			return fmt.Sprintf("grant of %d repeats, but sequence %d does not sample", b.Grant, b.Work[i].Seq)
		}
	}
	return ""
}

// nextRepeat makes the batch its own continuation.
func nextRepeat(b *ieg.Batch) {
	b.Drop, b.New, b.Ops = b.Drop[:0], b.New[:0], b.Ops[:0]
	for i := range b.Work {
		w := &b.Work[i]
		w.Start, w.N = w.Start+w.N, 1
	}
}
