package engine

import "ieg"

// Warmer is an arena whose pages take time when they are touched for the first
// time. Warm makes this process ready to use n pages from first on; it does not
// change them.
type Warmer interface {
	Warm(first ieg.Page, n int)
}

// warming keeps the pages after those in use ready, so that copies, for which
// the engine's steps wait, don't meet new ones.
type warming struct {
	arena Warmer
	pages int      // of the arena
	want  chan int // pages to be ready, the last wish only
}

// newWarming begins to warm; nil: there is nothing to warm.
func newWarming(a Arena) *warming {
	w, ok := a.(Warmer)
	if !ok {
		return nil
	}
	h := &warming{arena: w, pages: a.Pages(), want: make(chan int, 1)}
	h.want <- warmAhead
	go h.run()
	return h
}

// used notes the pages that a batch copies to or from.
func (h *warming) used(ops []ieg.KVOp) {
	if h == nil {
		return
	}
	most := -1
	for i := range ops {
		for _, e := range ops[i].Extents {
			for _, p := range e.Pages {
				most = max(most, int(p))
			}
		}
	}
	if most < 0 {
		return
	}
	select {
	case <-h.want:
	default:
	}
	h.want <- most + warmAhead
}

// run warms a little at a time; it lives as long as the process.
func (h *warming) run() {
	done := 0
	for want := range h.want {
		for want = min(want, h.pages); done < want; done += warmStep {
			h.arena.Warm(ieg.Page(done), min(warmStep, h.pages-done))
		}
	}
}
