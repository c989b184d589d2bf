package place

import "ieg"

// shortlist keeps the Top-K options of each node.
func (pl *Planner) shortlist() {
	n := len(pl.pr.Nodes)
	pl.candAt, pl.candN, pl.pick = resize(pl.candAt, n), resize(pl.candN, n), resize(pl.pick, n)
	pl.cands = resize(pl.cands, n*MaxCandidates)
	k := pl.pr.TopK
	if k <= 0 {
		k = TopK
	}
	k = min(k, MaxCandidates)
	pl.needAll = 0
	for v := range n {
		pl.candAt[v], pl.candN[v], pl.pick[v] = int32(v*MaxCandidates), 0, -1
		pl.needAll += pl.pr.Nodes[v].Demand.Memory
		var top [MaxCandidates]option
		kept := 0
		for _, o := range pl.options(v) {
			kept = insert(top[:], kept, k, o)
		}
		for _, o := range top[:kept] {
			pl.add(v, o)
		}
		if pl.pr.Bound > 0 || pl.pr.Nodes[v].SLA > 0 {
			pl.addFast(v)
		}
	}
}

// addFast lists the places where a node ends first: with latency bounds, the
// cheapest may all be too slow.
func (pl *Planner) addFast(v int) {
	for _, f := range pl.fast[v] {
		if f.seconds == infinite {
			continue
		}
		for _, o := range pl.options(v) {
			if o.place == f.place {
				pl.add(v, o)
				break
			}
		}
	}
}

func (pl *Planner) options(v int) []option { return pl.opts[pl.optAt[v].lo:pl.optAt[v].hi] }

// insert keeps the k best options in rising order.
func insert(top []option, kept, k int, o option) int {
	at := kept
	for at > 0 && o.before(&top[at-1]) {
		at--
	}
	if at == k {
		return kept
	}
	kept = min(kept+1, k)
	copy(top[at+1:kept], top[at:])
	top[at] = o
	return kept
}

func (o *option) before(p *option) bool {
	if o.late != p.late {
		return o.late < p.late
	}
	return o.c < p.c
}

// add puts an option on a node's list unless it is there or the list is full.
func (pl *Planner) add(v int, o option) {
	if int(pl.candN[v]) == MaxCandidates || pl.candidateAt(v, o.place) >= 0 {
		return
	}
	pl.cands[pl.candAt[v]+pl.candN[v]] = pl.candidateOf(v, o)
	pl.candN[v]++
}

// candidateAt is the index of a place on a node's list, −1 if it is not there.
func (pl *Planner) candidateAt(v int, place int32) int32 {
	for j := range pl.candidates(v) {
		if pl.candidates(v)[j].place == place {
			return int32(j)
		}
	}
	return -1
}

// near widens a node's list by the best options in view of where its
// neighbours are, so that the node-level ranking can't hide the device that
// is next to the data.
func (pl *Planner) near(v, most int) {
	if pl.pr.Weights.Lambda == 0 || len(pl.edges(v)) == 0 {
		return
	}
	options := pl.options(v)
	var top [MaxCandidates]option
	kept := 0
	for _, c := range pl.candidates(v) {
		c.c += pl.pr.Weights.Lambda * pl.pull(v, c.place)
		kept = insert(top[:], kept, most, c.option)
	}
	// What is listed sets the mark: pull only adds, so most options are out
	// by their own cost.
	mark := option{late: infinite, c: infinite}
	if kept == most {
		mark = top[kept-1]
	}
	kept = 0
	for i, o := range options {
		if !o.before(&mark) {
			continue
		}
		o.c += pl.pr.Weights.Lambda * pl.pull(v, o.place)
		o.place = int32(i)
		if o.before(&mark) {
			kept = insert(top[:], kept, most, o)
		}
	}
	for _, o := range top[:kept] {
		pl.add(v, options[o.place])
	}
}

// pull is Σ D of a node's edges to placed neighbours if it were at a place.
func (pl *Planner) pull(v int, place int32) float64 {
	var sum float64
	for _, e := range pl.edges(v) {
		edge := &pl.pr.Edges[e]
		if edge.Bytes == 0 {
			continue
		}
		if int(edge.From) == v {
			if pl.pick[edge.To] >= 0 {
				sum += pl.between(place, pl.picked(int(edge.To)).place, float64(edge.Bytes))
			}
		} else if pl.pick[edge.From] >= 0 {
			sum += pl.between(pl.picked(int(edge.From)).place, place, float64(edge.Bytes))
		}
	}
	return sum
}

// widenAll lists, once all are placed, what is best in view of both sides, and
// tells whether that was anything new.
func (pl *Planner) widenAll() bool {
	before, after := int32(0), int32(0)
	for v := range pl.pr.Nodes {
		before += pl.candN[v]
		pl.near(v, widen)
		if pl.now.late > 0 {
			pl.sooner(v, widen)
		}
	}
	for v := range pl.pr.Nodes {
		if pl.now.late > 0 && pl.late[v] > 0 {
			pl.follow(v)
		}
	}
	for i := range pl.pr.Edges {
		pl.together(&pl.pr.Edges[i])
	}
	for v := range pl.pr.Nodes {
		after += pl.candN[v]
	}
	return after > before
}

// sooner widens a node's list by the options that end first in view of where
// its neighbours are, for plans that are late.
func (pl *Planner) sooner(v, most int) {
	options := pl.options(v)
	if len(options) > FewOptions {
		return
	}
	var top [MaxCandidates]option
	kept := 0
	for i, o := range options {
		c := pl.candidateOf(v, o)
		kept = insert(top[:], kept, most, option{c: c.q + c.t + max(c.src, pl.pull(v, o.place)), place: int32(i)})
	}
	for _, o := range top[:kept] {
		pl.add(v, options[o.place])
	}
}

// follow lets the predecessors of a late node come to where it may be.
func (pl *Planner) follow(v int) {
	for _, i := range pl.edges(v) {
		e := &pl.pr.Edges[i]
		if int(e.To) != v || len(pl.options(int(e.From))) > FewOptions {
			continue
		}
		for j := range pl.candidates(v) {
			for _, o := range pl.options(int(e.From)) {
				if o.place == pl.candidates(v)[j].place {
					pl.add(int(e.From), o)
				}
			}
		}
	}
}

// together lists, for both ends of an edge, the place that is cheapest for
// the two: neither end alone may have it near its top.
func (pl *Planner) together(e *ieg.Edge) {
	u, v := int(e.From), int(e.To)
	a, b := pl.options(u), pl.options(v)
	if e.Bytes == 0 || (a[0].place < 0) != (b[0].place < 0) {
		return
	}
	best, at, with := infinite, 0, 0
	consider := func(i, j int) {
		if c := a[i].c + b[j].c; c < best {
			best, at, with = c, i, j
		}
	}
	switch {
	case a[0].place >= 0: // both in the order of devices
		for i, j := 0, 0; i < len(a) && j < len(b); {
			switch {
			case a[i].place < b[j].place:
				i++
			case a[i].place > b[j].place:
				j++
			default:
				consider(i, j)
				i, j = i+1, j+1
			}
		}
	case len(a) <= FewOptions && len(b) <= FewOptions:
		for i := range a {
			for j := range b {
				if a[i].place == b[j].place {
					consider(i, j)
				}
			}
		}
	}
	if best < infinite {
		pl.add(u, a[at])
		pl.add(v, b[with])
	}
}

// widenFully fills the lists where greedy found no room, so that the search
// has more to choose from.
func (pl *Planner) widenFully() {
	for v := range pl.pr.Nodes {
		var top [MaxCandidates]option
		kept := 0
		for _, o := range pl.options(v) {
			kept = insert(top[:], kept, MaxCandidates, o)
		}
		for _, o := range top[:kept] {
			pl.add(v, o)
		}
	}
}
