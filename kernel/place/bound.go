package place

import "slices"

// bounds is the working memory of the branch and bound search.
type bounds struct {
	// The heaviest edges that form no circle make a forest; walk lists it from
	// the roots, up is the edge to a node's parent (−1: root).
	walk  []int32
	up    []int32
	tree  []bool  // by edge
	label []int32 // component of a node while the forest grows
	byD   []int32 // edges by falling δ
	// under[v·MaxCandidates+j] is the least cost of v's subtree if v is at
	// candidate j; below the same for a parent's candidate, edge included.
	under, below []float64
	stop         int // evaluations at which the search ends
	soonest      []struct{ begin, t float64 }
	bestPick     []int32
}

// bound searches depth first along the forest, with the exact cost of each
// subtree (other edges, memory and latency bounds left out, which only add) as
// the lower bound, and keeps a plan better than the present one. It returns
// true if it finished: no combination of the candidates is better. rescue
// means that there is no plan yet.
func (pl *Planner) bound(rescue bool) (finished bool) {
	pl.forest()
	pl.subtrees()
	pl.stop = pl.evaluated + pl.spare()*3/4
	if rescue {
		pl.stop = pl.evaluated + RescueBudget
	}
	pl.bestPick = append(pl.bestPick[:0], pl.pick...)
	for v := range pl.pick {
		pl.pick[v] = -1
	}
	low := 0.0
	for _, v := range pl.walk {
		if pl.up[v] < 0 {
			low += slices.Min(pl.under[int(v)*MaxCandidates:][:pl.candN[v]])
		}
	}
	pl.fastestEach()
	finished = pl.descend(0, low, 0)
	copy(pl.pick, pl.bestPick)
	if pl.now.cost < infinite {
		pl.start()
	}
	return finished
}

const infinite = 1e300

// fastestEach notes the earliest start and the shortest time of each node
// over its candidates, for the bound of the critical path.
func (pl *Planner) fastestEach() {
	pl.soonest = resize(pl.soonest, len(pl.pr.Nodes))
	if pl.pr.Bound == 0 {
		return
	}
	for v := range pl.soonest {
		s := &pl.soonest[v]
		s.begin, s.t = infinite, infinite
		for j := range pl.candidates(v) {
			c := &pl.candidates(v)[j]
			s.begin, s.t = min(s.begin, max(c.q, c.src)), min(s.t, c.t)
		}
	}
}

// shortest is a lower bound of the critical path: placed nodes where they are,
// the others at their fastest, with nothing to move. Without an end-to-end
// bound it counts nothing.
func (pl *Planner) shortest() float64 {
	if pl.pr.Bound == 0 {
		return 0
	}
	path := 0.0
	for _, id := range pl.order {
		s := pl.soonest[id]
		placed := pl.pick[id] >= 0
		if placed {
			c := pl.picked(int(id))
			s.begin, s.t = max(c.q, c.src), c.t
		}
		for _, i := range pl.edges(int(id)) {
			e := &pl.pr.Edges[i]
			if e.To != id {
				continue
			}
			ready := pl.finish[e.From]
			if placed && pl.pick[e.From] >= 0 {
				ready += pl.between(pl.picked(int(e.From)).place, pl.picked(int(id)).place, float64(e.Bytes))
			}
			s.begin = max(s.begin, ready)
		}
		pl.finish[id] = s.begin + s.t
		path = max(path, pl.finish[id])
	}
	return path
}

// forest joins nodes by falling δ, as long as no circle closes.
func (pl *Planner) forest() {
	n, edges := len(pl.pr.Nodes), pl.pr.Edges
	pl.label, pl.up, pl.tree = resize(pl.label, n), resize(pl.up, n), resize(pl.tree, len(edges))
	for v := range n {
		pl.label[v], pl.up[v] = int32(v), -1
	}
	pl.byD = pl.byD[:0]
	for i := range edges {
		pl.byD = append(pl.byD, int32(i))
	}
	slices.SortStableFunc(pl.byD, func(a, b int32) int {
		switch x, y := edges[a].Bytes, edges[b].Bytes; {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, i := range pl.byD {
		a, b := pl.label[edges[i].From], pl.label[edges[i].To]
		pl.tree[i] = a != b
		if a != b {
			for v := range n {
				if pl.label[v] == b {
					pl.label[v] = a
				}
			}
		}
	}
	pl.walkForest()
}

// walkForest lists the nodes so that each comes after its parent.
func (pl *Planner) walkForest() {
	n := len(pl.pr.Nodes)
	pl.walk = pl.walk[:0]
	for v := range n {
		pl.label[v] = -1 // not listed
	}
	for _, root := range pl.order {
		if pl.label[root] >= 0 {
			continue
		}
		at := len(pl.walk)
		pl.label[root] = 0
		pl.walk = append(pl.walk, int32(root))
		for ; at < len(pl.walk); at++ {
			v := pl.walk[at]
			for _, e := range pl.edges(int(v)) {
				w := pl.other(e, v)
				if pl.tree[e] && pl.label[w] < 0 {
					pl.label[w], pl.up[w] = 0, e
					pl.walk = append(pl.walk, w)
				}
			}
		}
	}
}

// other is the far end of an edge.
func (pl *Planner) other(e, v int32) int32 {
	if edge := &pl.pr.Edges[e]; int32(edge.From) == v {
		return int32(edge.To)
	}
	return int32(pl.pr.Edges[e].From)
}

// subtrees computes under and below from the leaves up.
func (pl *Planner) subtrees() {
	n := len(pl.pr.Nodes)
	pl.under, pl.below = resize(pl.under, n*MaxCandidates), resize(pl.below, n*MaxCandidates)
	for v := range n {
		for j := range pl.candidates(v) {
			pl.under[v*MaxCandidates+j] = pl.candidates(v)[j].c
		}
	}
	for i := n - 1; i >= 0; i-- {
		v := pl.walk[i]
		if pl.up[v] < 0 {
			continue
		}
		parent := pl.other(pl.up[v], v)
		for k := range pl.candidates(int(parent)) {
			least := infinite
			for j := range pl.candidates(int(v)) {
				least = min(least, pl.under[int(v)*MaxCandidates+j]+pl.toll(v, int32(j), parent, int32(k)))
			}
			pl.below[int(v)*MaxCandidates+k] = least
			pl.under[int(parent)*MaxCandidates+k] += least
		}
	}
}

// toll is λ·D of a node's tree edge with both ends at candidates.
func (pl *Planner) toll(v, j, parent, k int32) float64 {
	e := &pl.pr.Edges[pl.up[v]]
	from, to := pl.candidates(int(v))[j].place, pl.candidates(int(parent))[k].place
	if int32(e.To) == v {
		from, to = to, from
	}
	return pl.pr.Weights.Lambda * pl.between(from, to, float64(e.Bytes))
}

// descend places the node at a position of the walk on each candidate that
// may lead to a better plan, best first. low is the lower bound so far, late
// the latency missed so far. It returns false once the budget is spent.
func (pl *Planner) descend(at int, low, late float64) bool {
	if at == len(pl.walk) {
		pl.leaf()
		return true
	}
	v := pl.walk[at]
	var tried [MaxCandidates]bool
	for range pl.candN[v] {
		j, with := pl.promising(v, low, &tried)
		if j < 0 {
			return true
		}
		tried[j] = true
		if pl.hopeless(with, late) {
			return true // the others are no better
		}
		if pl.evaluated >= pl.stop {
			return false
		}
		pl.evaluated++
		c := &pl.candidates(int(v))[j]
		if !pl.fits(int(v), c) {
			continue
		}
		pl.pick[v] = j
		with += pl.cross(v)
		missed := late + pl.missed(v)
		path := pl.shortest()
		lost := pl.hopeless(with+pl.pr.Weights.Alpha*path, missed+max(path-pl.pr.Bound.Seconds(), 0))
		if !lost && !pl.descend(at+1, with, missed) {
			pl.pick[v] = -1
			return false
		}
		pl.pick[v] = -1
	}
	return true
}

// promising is the untried candidate with the least lower bound.
func (pl *Planner) promising(v int32, low float64, tried *[MaxCandidates]bool) (best int32, least float64) {
	best, least = -1, infinite
	base := int(v) * MaxCandidates
	rest := low
	parent, k := int32(-1), int32(0)
	if pl.up[v] >= 0 {
		parent = pl.other(pl.up[v], v)
		k = pl.pick[parent]
		rest -= pl.below[base+int(k)]
	} else {
		rest -= slices.Min(pl.under[base : base+int(pl.candN[v])])
	}
	for j := range pl.candN[v] {
		if tried[j] {
			continue
		}
		with := rest + pl.under[base+int(j)]
		if parent >= 0 {
			with += pl.toll(v, j, parent, k)
		}
		if with < least {
			best, least = j, with
		}
	}
	return best, least
}

// hopeless tells that no plan with these bounds beats the present one.
func (pl *Planner) hopeless(low, late float64) bool {
	best := pl.now
	if best.cost >= infinite {
		return false
	}
	if late < 1e-12 {
		late = 0
	}
	return !value{late, low}.better(best) && late >= best.late*(1-tie)-tie
}

// cross is λ·D of the edges outside the forest between v and placed nodes.
func (pl *Planner) cross(v int32) float64 {
	sum := 0.0
	for _, i := range pl.edges(int(v)) {
		if e := &pl.pr.Edges[i]; !pl.tree[i] && pl.pick[pl.other(i, v)] >= 0 {
			sum += pl.between(pl.picked(int(e.From)).place, pl.picked(int(e.To)).place, float64(e.Bytes))
		}
	}
	return pl.pr.Weights.Lambda * sum
}

// missed is a lower bound of a node's lateness: with the inputs placed so far.
func (pl *Planner) missed(v int32) float64 {
	sla := pl.pr.Nodes[v].SLA.Seconds()
	if sla == 0 {
		return 0
	}
	c := pl.picked(int(v))
	in := c.src
	for _, i := range pl.edges(int(v)) {
		if e := &pl.pr.Edges[i]; int32(e.To) == v && pl.pick[e.From] >= 0 {
			in = max(in, pl.between(pl.picked(int(e.From)).place, c.place, float64(e.Bytes)))
		}
	}
	return max(c.q+in+c.t-sla, 0)
}

// leaf takes the complete plan if it is better.
func (pl *Planner) leaf() {
	pl.start()
	if v := pl.value(); pl.now.cost >= infinite || v.better(pl.now) {
		pl.now = v
		copy(pl.bestPick, pl.pick)
	}
}
