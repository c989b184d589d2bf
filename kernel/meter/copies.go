package meter

import "ieg"

// copies follows the KV that goes to and from an engine's device.
type copies struct {
	step    ieg.StepID
	ops     []ieg.KVOp         // Save and Load of the batch in flight, nil for others
	brought map[ieg.Slot]int32 // tokens loaded for a sequence that has had no work yet
}

// sent notes the copies of a batch.
func (c *copies) sent(b *ieg.Batch) {
	c.step, c.ops = b.Step, append(c.ops[:0], b.Ops...)
	for i := range b.Ops {
		op := &b.Ops[i]
		switch op.Kind {
		case ieg.KVLoad:
			if c.brought == nil {
				c.brought = map[ieg.Slot]int32{}
			}
			c.brought[op.To] = op.N
		case ieg.KVTrim, ieg.KVCopy:
			delete(c.brought, op.To)
		}
	}
}

// take is what was loaded into the row of a sequence that begins.
func (c *copies) take(slot ieg.Slot) int32 {
	n := c.brought[slot]
	delete(c.brought, slot)
	return n
}

// copied counts the copies that a step did.
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
		if op.Kind == ieg.KVSave {
			to = &e.Saves
		}
		to.Bytes += uint64(int64(op.N) * e.info.KVToken)
		to.Seconds += c.Took.Seconds()
	}
}
