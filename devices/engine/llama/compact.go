package llama

import "ieg"

// compact moves a working sequence next to the others when gaps between the
// working streams persist: each gap ends a pass over the weights. The slot
// keeps its number; its stream is exchanged with an idle one's. At most one
// move is made a step, and only if it pays soon.
func (r *Runner) compact(work []ieg.Work) error {
	if r.gen.shape.layout != ieg.Streams || !r.gen.shape.flash || r.slots.deferred || r.slots.pruned || len(r.order) < 2 {
		return nil
	}
	from, to, gaps := r.move(work)
	if gaps == 0 {
		r.gapSteps = 0
		return nil
	}
	if r.gapSteps++; r.gapSteps <= compactAfter {
		return nil
	}
	r.gapSteps = 0
	bytes := float64(int64(r.slots.tokens[from]+r.slots.tokens[to]) * r.slots.bytes)
	if r.slots.swapSeconds(bytes) > compactPays*r.pass {
		return nil
	}
	if err := r.slots.swap(from, to); err != nil {
		return err
	}
	r.sortBySeq(work)
	return nil
}

// move finds the working slot to move and the idle slot whose stream it gets:
// the end of the shortest run of neighbours goes next to the longest run. It
// also counts the gaps that filling rows don't close.
func (r *Runner) move(work []ieg.Work) (from, to ieg.Slot, gaps int) {
	type run struct{ first, last int } // of r.order
	longest, shortest := run{}, run{0, len(r.order)}
	seq := func(k int) int32 { return r.slots.seq[work[r.order[k]].Slot] }
	for k := 0; k < len(r.order); {
		x := run{k, k}
		for x.last+1 < len(r.order) && int(seq(x.last+1)-seq(x.last)) <= 1+r.fillGap {
			x.last++
		}
		if k = x.last + 1; k < len(r.order) {
			gaps++
		}
		if x.last-x.first > longest.last-longest.first {
			longest = x
		}
		if x.last-x.first < shortest.last-shortest.first {
			shortest = x
		}
	}
	if gaps == 0 {
		return 0, 0, 0
	}
	if shortest == longest { // all are of one length
		shortest = run{len(r.order) - 1, len(r.order) - 1}
	}
	near := seq(longest.last) + 1
	if int(near) == len(r.slots.slot) {
		near = seq(longest.first) - 1
	}
	end := shortest.last
	if shortest.first < longest.first {
		end = shortest.first
	}
	return work[r.order[end]].Slot, r.slots.slot[near], gaps
}
