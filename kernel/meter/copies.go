package meter

import "ieg"

// copies follows the KV that goes to and from an engine's device.
type copies struct {
	step    ieg.StepID
	ops     []ieg.KVOp          // of the batch that was sent last
	brought map[ieg.Slot]loaded // for sequences that have had no work yet
	// hopes are sequences whose first work depends on a load: they are counted
	// once it is done and right.
	hopes []hope
}

// loaded are n tokens up to end, loaded in one part or several, the last of
// them by a step.
type loaded struct {
	end, n int32
	step   ieg.StepID
}

// hope is a sequence of which brought tokens, of the cached ones, come from
// below the device.
type hope struct {
	seq             *seq
	slot            ieg.Slot
	cached, brought int32
}

// sent notes the copies of a batch.
func (c *copies) sent(b *ieg.Batch) {
	c.step, c.ops = b.Step, append(c.ops[:0], b.Ops...)
	for i := range b.Ops {
		op := &b.Ops[i]
		switch op.Kind {
		case ieg.KVLoad:
			if c.brought == nil {
				c.brought = map[ieg.Slot]loaded{}
			}
			was := c.brought[op.To]
			if was.end != op.Start {
				was.n = 0
			}
			c.brought[op.To] = loaded{end: op.Start + op.N, n: was.n + op.N, step: b.Step}
		case ieg.KVTrim, ieg.KVCopy:
			delete(c.brought, op.To)
		}
	}
}

// take is what was loaded into the row of a sequence that begins; sure tells
// that it is known to be right.
func (c *copies) take(slot ieg.Slot) (n int32, sure bool) {
	l := c.brought[slot]
	delete(c.brought, slot)
	return l.n, l.step != c.step
}

func (c *copies) await(s *seq, w *ieg.Work, brought int32) {
	c.hopes = append(c.hopes, hope{seq: s, slot: w.Slot, cached: w.Start, brought: brought})
}

// copied counts the copies that a step did, and the sequences that waited for
// them.
func (e *engine) copied(d *ieg.StepDone) {
	if d.Step != e.copies.step {
		return
	}
	for _, c := range d.Copies {
		if c.Op < 0 || int(c.Op) >= len(e.copies.ops) {
			continue
		}
		op := &e.copies.ops[c.Op]
		to := &e.Loads
		switch {
		case op.Kind == ieg.KVSave:
			to = &e.Saves
		case c.Bad > 0:
			e.despair(op.To)
			continue
		}
		to.Bytes += uint64(int64(op.N) * e.info.KVToken)
		to.Seconds += c.Took.Seconds()
	}
	for _, h := range e.copies.hopes {
		if !h.seq.scheduled {
			e.scheduled(h.seq, h.cached, h.brought)
		}
	}
	e.copies.hopes = e.copies.hopes[:0]
}

// despair forgets what was hoped of a row: what was loaded into it is wrong, and
// its next work tells anew what it holds.
func (e *engine) despair(slot ieg.Slot) {
	hopes := e.copies.hopes[:0]
	for _, h := range e.copies.hopes {
		if h.slot != slot {
			hopes = append(hopes, h)
		} else if h.seq.engine == e && h.seq.row >= 0 {
			e.KVTokens -= int64(h.seq.computed)
			h.seq.computed, h.seq.fresh = 0, true
		}
	}
	e.copies.hopes = hopes
}
