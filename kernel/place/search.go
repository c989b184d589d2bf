package place

import (
	"slices"

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

// fits tells whether node v has room as candidate c beside the other placed
// nodes: weights of a model count once a device, KV of a sequence once.
func (pl *Planner) fits(v int, c *candidate) bool {
	if c.weights+c.own == 0 {
		return true
	}
	for _, d := range pl.side(c.place, 0) {
		if pl.needAll > pl.hot[d].free && !pl.room(v, d) {
			pl.tight = true
			return false
		}
	}
	return true
}

// room adds up a device with node v on it.
func (pl *Planner) room(v int, d int32) bool {
	total := pl.adds(v, v, d)
	for u := range pl.pr.Nodes {
		if u != v && pl.holds(u, d) {
			total += pl.adds(u, v, d)
		}
	}
	return total <= pl.hot[d].free
}

// adds is what node u needs on a device beyond v and the nodes before u.
func (pl *Planner) adds(u, v int, d int32) int64 {
	nodes := pl.pr.Nodes
	on := pl.on(u, d)
	weights, own := needs(&nodes[u], &on)
	if u == v {
		return weights + own
	}
	var shared int64 // the most KV of the same sequence that is counted
	for t := range u + 1 {
		if t == u {
			t = v // counted first
		}
		if t == u || t != v && !pl.holds(t, d) {
			continue
		}
		on := pl.on(t, d)
		w, o := needs(&nodes[t], &on)
		if pl.modelOf[t] == pl.modelOf[u] {
			weights = max(weights-w, 0)
		}
		if s := nodes[u].Seq; s > 0 && s == nodes[t].Seq {
			shared = max(shared, o)
		}
	}
	return weights + max(own-shared, 0)
}

// holds tells whether a node is placed on a device.
func (pl *Planner) holds(u int, d int32) bool {
	if pl.pick[u] < 0 {
		return false
	}
	place := pl.picked(u).place
	return place == d || place < 0 && slices.Contains(pl.membersOf(place), d)
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
