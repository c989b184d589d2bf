package place

import (
	"ieg"
)

// search is the second stage: one candidate per node, so that the sum of all
// is least. Sums are kept up to date by what a change touches.
type search struct {
	budget, evaluated int

	candAt []int32 // candidates of node v: cands[candAt[v]:candAt[v+1]] at MaxCandidates apart
	candN  []int32
	pick   []int32 // chosen candidate of each node, −1 while greedy has not come to it
	order  []ieg.NodeID
	waits  []int32
	// edges of node v: adj[adjAt[v]:adjAt[v+1]]
	adj, adjAt []int32
	dist       []float64 // D of each edge
	late       []float64 // violation of each node
	finish     []float64

	sum, moved, lateSum, critical float64

	now     value // of the plan as it stands
	needAll int64 // memory of all nodes together
	tight   bool  // something did not fit beside the rest
	changes []change
	bounds
	fit  []member
	one  [1]int32
	ends [2]int32
}

type change struct {
	node, to, from int32
}

// value orders plans: less late first, then cheaper.
type value struct{ late, cost float64 }

const (
	// tie is the relative difference that counts as none.
	tie = 1e-12
)

func (a value) better(b value) bool {
	if d := a.late - b.late; d < -tie*(1+b.late) || d > tie*(1+b.late) {
		return d < 0
	}
	return a.cost < b.cost-tie*b.cost
}

// value is the state of the search as one measure.
func (pl *Planner) value() value {
	v := value{pl.lateSum, pl.sum + pl.pr.Weights.Lambda*pl.moved}
	if bound := pl.pr.Bound.Seconds(); bound > 0 {
		v.cost += pl.pr.Weights.Alpha * pl.critical
		v.late += max(pl.critical-bound, 0)
	}
	if v.late < 1e-12 {
		v.late = 0
	}
	return v
}

func (pl *Planner) picked(v int) *candidate { return &pl.cands[pl.candAt[v]+pl.pick[v]] }

func (pl *Planner) candidates(v int) []candidate {
	return pl.cands[pl.candAt[v] : pl.candAt[v]+pl.candN[v]]
}

// join runs the joint search on the scanned options.
func (pl *Planner) join() error {
	pl.evaluated = 0
	if err := pl.layout(); err != nil {
		return err
	}
	pl.shortlist()
	err := pl.greedy()
	if err == nil {
		pl.start()
		pl.now = pl.value()
		pl.widenAll()
	} else {
		pl.widenFully()
		pl.now = value{infinite, infinite}
	}
	if pl.pr.Bound > 0 && err == nil {
		pl.improve() // bounds on a critical path are weak: a good plan first
	}
	for finished := true; finished; {
		finished = pl.bound(err != nil)
		switch {
		case pl.now.cost >= infinite:
			return err
		case !finished:
			pl.improve()
		default: // the best of the lists; do they lack something near it?
			finished = pl.spare() > 0 && pl.widenAll()
		}
		err = nil
	}
	return nil
}

// layout makes the topological order and the adjacency of the problem.
func (pl *Planner) layout() error {
	n, edges := len(pl.pr.Nodes), pl.pr.Edges
	pl.adjAt, pl.waits = resize(pl.adjAt, n+1), resize(pl.waits, n)
	clear(pl.adjAt)
	clear(pl.waits)
	for _, e := range edges {
		pl.adjAt[e.From]++
		pl.adjAt[e.To]++
		pl.waits[e.To]++
	}
	at := int32(0)
	for v := range pl.adjAt {
		at, pl.adjAt[v] = at+pl.adjAt[v], at
	}
	pl.adj = resize(pl.adj, 2*len(edges))
	for i := len(edges) - 1; i >= 0; i-- { // fills each node's part from its end
		for _, v := range [2]ieg.NodeID{edges[i].From, edges[i].To} {
			pl.adj[pl.adjAt[v]] = int32(i)
			pl.adjAt[v]++
		}
	}
	copy(pl.adjAt[1:], pl.adjAt[:n]) // the parts' ends are the next ones' starts
	pl.adjAt[0] = 0
	pl.order = pl.order[:0]
	for v := range n {
		if pl.waits[v] == 0 {
			pl.order = append(pl.order, ieg.NodeID(v))
		}
	}
	for i := 0; i < len(pl.order); i++ {
		v := pl.order[i]
		for _, e := range pl.edges(int(v)) {
			if to := edges[e].To; edges[e].From == v {
				if pl.waits[to]--; pl.waits[to] == 0 {
					pl.order = append(pl.order, to)
				}
			}
		}
	}
	if len(pl.order) < n {
		return pl.circle()
	}
	pl.dist, pl.late, pl.finish = resize(pl.dist, len(edges)), resize(pl.late, n), resize(pl.finish, n)
	return nil
}

func (pl *Planner) edges(v int) []int32 { return pl.adj[pl.adjAt[v]:pl.adjAt[v+1]] }

// greedy places the nodes in topological order, each where it adds least to
// what is placed already.
func (pl *Planner) greedy() error {
	pl.tight = false
	for _, id := range pl.order {
		v := int(id)
		pl.near(v, widen)
		best, at := value{}, int32(-1)
		for j := range pl.candidates(v) {
			c := &pl.candidates(v)[j]
			pl.evaluated++
			val := value{c.late, c.c + pl.pr.Weights.Lambda*pl.pull(v, c.place)}
			if (at < 0 || val.better(best)) && pl.fits(v, c) {
				best, at = val, int32(j)
			}
		}
		if at < 0 {
			if at = pl.anyFit(v); at < 0 {
				return pl.noRoom(v)
			}
		}
		pl.pick[v] = at
	}
	return nil
}

// anyFit looks through all options of a node for one with room beside what is
// placed, and lists it.
func (pl *Planner) anyFit(v int) int32 {
	for _, o := range pl.options(v) {
		c := pl.candidateOf(v, o)
		if pl.fits(v, &c) {
			if int(pl.candN[v]) == MaxCandidates {
				pl.candN[v]-- // the worst makes place
			}
			pl.add(v, o)
			return pl.candN[v] - 1
		}
	}
	return -1
}

// start adds everything up anew.
func (pl *Planner) start() {
	pl.sum, pl.moved, pl.lateSum = 0, 0, 0
	for i := range pl.pr.Edges {
		e := &pl.pr.Edges[i]
		pl.dist[i] = pl.between(pl.picked(int(e.From)).place, pl.picked(int(e.To)).place, float64(e.Bytes))
		pl.moved += pl.dist[i]
	}
	for v := range pl.pr.Nodes {
		pl.sum += pl.picked(v).c
		pl.late[v] = pl.lateness(v)
		pl.lateSum += pl.late[v]
	}
	pl.path()
}

// lateness is by how much queue + transfer + T miss the node's SLA.
func (pl *Planner) lateness(v int) float64 {
	sla := pl.pr.Nodes[v].SLA.Seconds()
	if sla == 0 {
		return 0
	}
	c := pl.picked(v)
	in := c.src
	for _, e := range pl.edges(v) {
		if int(pl.pr.Edges[e].To) == v {
			in = max(in, pl.dist[e])
		}
	}
	return max(c.q+in+c.t-sla, 0)
}

// path computes the critical path: a node starts when its inputs are there
// and the work ahead of it is done.
func (pl *Planner) path() {
	pl.critical = 0
	if pl.pr.Bound == 0 {
		return
	}
	for _, id := range pl.order {
		v := int(id)
		c := pl.picked(v)
		begin := max(c.q, c.src)
		for _, e := range pl.edges(v) {
			if edge := &pl.pr.Edges[e]; edge.To == id {
				begin = max(begin, pl.finish[edge.From]+pl.dist[e])
			}
		}
		pl.finish[v] = begin + c.t
		pl.critical = max(pl.critical, pl.finish[v])
	}
}

// set moves a node to another candidate and updates the sums.
func (pl *Planner) set(v int, to int32) {
	pl.sum -= pl.picked(v).c
	pl.pick[v] = to
	pl.sum += pl.picked(v).c
	for _, i := range pl.edges(v) {
		e := &pl.pr.Edges[i]
		d := pl.between(pl.picked(int(e.From)).place, pl.picked(int(e.To)).place, float64(e.Bytes))
		pl.moved += d - pl.dist[i]
		pl.dist[i] = d
		if int(e.From) == v {
			pl.relate(int(e.To))
		}
	}
	pl.relate(v)
}

// relate updates the lateness of a node.
func (pl *Planner) relate(v int) {
	if pl.pr.Nodes[v].SLA == 0 {
		return
	}
	l := pl.lateness(v)
	pl.lateSum += l - pl.late[v]
	pl.late[v] = l
}
