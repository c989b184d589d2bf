package place

import (
	"math"
	"slices"

	"ieg"
	"ieg/kernel/cost"
)

// Choice is where one node goes, and the seconds that decided it.
type Choice struct {
	Devices []int32 // one, or the members of a group
	L, Q, M float64 // unweighted
	Cost    float64 // α·L + β·Q + γ·M + λ·D of its sources
	// Violation is by how many seconds queue + transfer + T miss the SLA.
	Violation float64
}

// Plan is a complete placement. It belongs to its Planner and is valid until
// the next call of Plan.
type Plan struct {
	Choices   []Choice // by node
	Cost      float64  // the objective
	Transfers float64  // Σ D over edges, seconds
	Critical  float64  // seconds along the critical path; 0 without a bound
	Violation float64  // Σ of missed bounds, seconds
	Evaluated int
	Site      string
}

// Planner makes plans. It holds the working memory and may be used for any
// pool and problem, one at a time. The zero value is ready.
type Planner struct {
	pool *Pool
	pr   *Problem
	ix   *index
	site int32
	devs []int32 // of the site

	hot     []hot
	models  []modelRow // by distinct model of the problem
	modelOf []int32    // by node
	req     []int32    // required device by node, −1: none
	srcs    []source   // resolved sources of all nodes
	srcAt   []int32    // by node: where its sources start

	opts    []option // feasible places of all nodes
	optAt   []span   // by node
	scanned []bool
	members []int32 // of groups
	groups  []group
	sorted  []int32 // groups by their members
	fast    []fast  // by node
	cands   []candidate
	left    []leftOut // by node

	search
	best   Plan
	result []int32 // members of the chosen places
}

// hot is what changes per plan of one device.
type hot struct {
	queue float64
	free  int64
	up    bool
}

// modelRow is a model's standing on each device.
type modelRow struct {
	name string
	on   []hostedOn
}

type hostedOn struct {
	resident int64
	scale    float64
	speed    *Hosted // with a measured speed, else nil
	path     bool
}

type source struct {
	device int32
	bytes  float64
}

// option is a feasible place of a node: a device, or a group as ^index.
type option struct {
	c     float64 // α·L + β·Q + γ·M + λ·D(sources)
	late  float64 // violation of the SLA if nothing else had to be moved
	place int32
}

// span is a part of a slice.
type span struct{ lo, hi int32 }

// group is a set of devices that are used together, in rising order.
type group struct {
	at       span // in members
	q, price float64
	listed   int32 // 1 + the node that it was offered to last
}

// candidate is an option with what the joint search needs.
type candidate struct {
	option
	t, q, src float64
	weights   int64 // missing weights, per device
	own       int64 // other memory, per device
}

// reason says why a device was left out.
type reason uint8

const (
	isDown reason = iota
	wrongKind
	noPrecision
	noModelPath
	notRequired
	noMemory
	numReasons
)

var reasonNames = [numReasons]string{"down", "wrong kind of device", "precision not supported",
	"no execution path for the model", "not the required device", "memory"}

// leftOut counts the devices that a node can't use.
type leftOut struct {
	n [numReasons]int32
	// near is the device that lacks the least memory.
	near  int32
	lacks int64
}

// Plan places all nodes of a problem on a pool. Errors: ErrNoFit (a node has
// no feasible device at any site, or the nodes don't fit together), ErrMiss,
// ErrProblem. Neither pool nor problem is changed or kept.
func (pl *Planner) Plan(pool *Pool, pr *Problem) (*Plan, error) {
	if err := pr.validate(); err != nil {
		return nil, err
	}
	pl.pool, pl.pr, pl.ix = pool, pr, pool.index()
	pl.prepare()
	if err := pl.resolve(); err != nil {
		return nil, err
	}
	pl.best = Plan{Choices: pl.best.Choices[:0], Cost: math.Inf(1), Violation: math.Inf(1)}
	pl.budget = max(pr.Budget, 0)
	if pr.Budget == 0 {
		pl.budget = Budget
	}
	sites := len(pl.ix.sites)
	if pr.Site == "" && sites > 1 {
		pl.budget = max(pl.budget/sites, 1)
	}
	var missing error
	found, evaluated := false, 0
	for s := range pl.ix.sites {
		if pr.Site != "" && pl.ix.sites[s] != pr.Site {
			continue
		}
		pl.site, pl.devs = int32(s), pl.ix.bySite[s]
		if err := pl.planSite(); err != nil {
			missing = err
			continue
		}
		evaluated += pl.evaluated
		if v := pl.value(); !found || v.better(value{pl.best.Violation, pl.best.Cost}) {
			found = true
			pl.keep()
		}
	}
	if !found {
		if missing == nil {
			missing = pl.noSite()
		}
		return nil, missing
	}
	pl.best.Evaluated = evaluated
	if pl.ix.sites[pl.site] != pl.best.Site {
		// Leave the working memory at the chosen site, for Decide.
		pl.site = int32(slices.Index(pl.ix.sites, pl.best.Site))
		pl.devs = pl.ix.bySite[pl.site]
		if err := pl.planSite(); err != nil {
			panic("place: a site that had a plan has none: " + err.Error())
		}
		pl.keep()
	}
	if pr.Refuse && pl.best.Violation > 0 {
		return nil, pl.miss()
	}
	return &pl.best, nil
}

// planSite runs both stages on one site.
func (pl *Planner) planSite() error {
	if err := pl.scan(); err != nil {
		return err
	}
	return pl.join()
}

// prepare gathers what depends on the pool's present load.
func (pl *Planner) prepare() {
	n := len(pl.pool.Devices)
	pl.hot = resize(pl.hot, n)
	for i := range pl.hot {
		pl.hot[i] = hot{pl.pool.queue(int32(i)), pl.pool.free(int32(i)), !pl.pool.Devices[i].Down}
	}
}

// resolve turns the names of the problem into numbers.
func (pl *Planner) resolve() error {
	nodes := pl.pr.Nodes
	pl.modelOf, pl.req = resize(pl.modelOf, len(nodes)), resize(pl.req, len(nodes))
	pl.srcs, pl.srcAt = pl.srcs[:0], append(pl.srcAt[:0], 0)
	pl.models = pl.models[:0]
	for i := range nodes {
		n := &nodes[i]
		pl.modelOf[i], pl.req[i] = pl.model(n.Model), -1
		if n.Required != "" {
			d, found := pl.pool.Index(n.Required)
			if !found {
				return pl.noRequired(i)
			}
			pl.req[i] = int32(d)
		}
		for _, s := range n.Sources {
			if d, found := pl.pool.Index(s.Device); found && s.Bytes > 0 {
				pl.srcs = append(pl.srcs, source{int32(d), float64(s.Bytes)})
			}
		}
		pl.srcAt = append(pl.srcAt, int32(len(pl.srcs)))
	}
	return nil
}

// model gathers a model's standing on all devices, once per plan; −1 is a
// node without a model.
func (pl *Planner) model(name string) int32 {
	if name == "" {
		return -1
	}
	for i := range pl.models {
		if pl.models[i].name == name {
			return int32(i)
		}
	}
	if len(pl.models) < cap(pl.models) {
		pl.models = pl.models[:len(pl.models)+1]
	} else {
		pl.models = append(pl.models, modelRow{})
	}
	row := &pl.models[len(pl.models)-1]
	row.name, row.on = name, resize(row.on, len(pl.pool.Devices))
	id, known := pl.ix.models[name]
	for d := range row.on {
		dev := &pl.pool.Devices[d]
		at := noPath
		if known {
			at = pl.ix.hosted[id][d]
		} else if dev.AnyModel {
			at = anyPath
		}
		on := hostedOn{scale: 1, path: at != noPath}
		if at >= 0 {
			h := &dev.Hosted[at]
			on.resident = h.Resident
			if h.Scale > 0 {
				on.scale = h.Scale
			}
			if !h.Speed.Zero() {
				on.speed = h
			}
		}
		row.on[d] = on
	}
	return int32(len(pl.models) - 1)
}

// on is the standing of a node's model on a device.
func (pl *Planner) on(v int, d int32) hostedOn {
	if m := pl.modelOf[v]; m >= 0 {
		return pl.models[m].on[d]
	}
	return hostedOn{scale: 1, path: true}
}

// seconds is T(v,d): the engine's measured speed, else the semantic model.
func (pl *Planner) seconds(v int, d int32, on *hostedOn, prec *precision) float64 {
	n := &pl.pr.Nodes[v]
	if on.speed != nil {
		if e, ok := on.speed.Speed.Estimate(n.Work, on.speed.Chunk); ok {
			return e.Seconds
		}
	}
	inv := &pl.ix.inv[d]
	return max(n.Demand.FLOPs*prec.inv[d], n.Demand.Bytes*inv.bandwidth, n.Demand.IO*inv.io) * on.scale
}

// needs splits the memory that a node adds to a device.
func needs(n *Node, on *hostedOn) (weights, own int64) {
	return max(n.Weights-on.resident, 0), max(n.Demand.Memory-n.Weights, 0)
}

// runsOn tells whether a kind of device can run a stage: models run anywhere
// that has a path for them, tools, retrieval and control on a host's CPU.
func runsOn(s ieg.Stage, cpu bool) bool {
	switch s.Type() {
	case ieg.ComputeNode, ieg.MemoryNode:
		return true
	}
	return cpu
}

// transfer is the longest D of a node's sources, and their sum.
func (pl *Planner) transfer(v int, place int32) (longest, sum float64) {
	for _, s := range pl.srcs[pl.srcAt[v]:pl.srcAt[v+1]] {
		t := pl.between(s.device, place, s.bytes)
		longest, sum = max(longest, t), sum+t
	}
	return longest, sum
}

// filter tells why a device can't run a node; ok if it can.
func (pl *Planner) filter(v int, d int32, on *hostedOn, prec *precision) (why reason, ok bool) {
	n := &pl.pr.Nodes[v]
	switch {
	case !pl.hot[d].up:
		return isDown, false
	case !runsOn(n.Stage, pl.ix.cpu[d]):
		return wrongKind, false
	case n.Precision != "" && !prec.ok[d]:
		return noPrecision, false
	case !on.path:
		return noModelPath, false
	}
	w, own := needs(n, on)
	if lacks := w + own - pl.hot[d].free; lacks > 0 && w+own > 0 {
		l := &pl.left[v]
		if l.near < 0 || lacks < l.lacks {
			l.near, l.lacks = d, lacks
		}
		return noMemory, false
	}
	return 0, true
}

// scan is the first stage: all feasible places of each node with their score.
// Nodes of one device come first: where they fit best tells which groups are
// worth their while.
func (pl *Planner) scan() error {
	nodes := pl.pr.Nodes
	pl.opts, pl.groups, pl.sorted, pl.members = pl.opts[:0], pl.groups[:0], pl.sorted[:0], pl.members[:0]
	pl.fast = resize(pl.fast, len(nodes))
	pl.left, pl.optAt = resize(pl.left, len(nodes)), resize(pl.optAt, len(nodes))
	pl.scanned = resize(pl.scanned, len(nodes))
	clear(pl.scanned)
	for _, grouped := range [2]bool{false, true} {
		for v := range nodes {
			if nodes[v].Degree > 1 != grouped {
				continue
			}
			if err := pl.scanNode(v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (pl *Planner) scanNode(v int) error {
	n := &pl.pr.Nodes[v]
	pl.left[v], pl.fast[v] = leftOut{near: -1}, fast{{seconds: infinite}, {seconds: infinite}}
	prec := pl.pool.precision(n.Precision)
	lo := len(pl.opts)
	if n.Degree > 1 {
		pl.scanGroups(v, prec)
	} else {
		pl.scanDevices(v, prec)
	}
	if lo == len(pl.opts) {
		return pl.noFit(v)
	}
	pl.optAt[v], pl.scanned[v] = span{int32(lo), int32(len(pl.opts))}, true
	return nil
}

func (pl *Planner) scanDevices(v int, prec *precision) {
	n, w := &pl.pr.Nodes[v], &pl.pr.Weights
	sla, sources := n.SLA.Seconds(), pl.srcAt[v+1] > pl.srcAt[v]
	for _, d := range pl.devs {
		if pl.req[v] >= 0 && pl.req[v] != d {
			pl.left[v].n[notRequired]++
			continue
		}
		on := pl.on(v, d)
		if why, ok := pl.filter(v, d, &on, prec); !ok {
			pl.left[v].n[why]++
			continue
		}
		t, q := pl.seconds(v, d, &on, prec), pl.hot[d].queue
		o := option{c: w.Alpha*t + w.Beta*q + w.Gamma*pl.ix.inv[d].price*t, place: d}
		longest := 0.0
		if sources {
			var sum float64
			longest, sum = pl.transfer(v, d)
			o.c += w.Lambda * sum
		}
		if sla > 0 {
			o.late = max(q+longest+t-sla, 0)
		}
		pl.opts = append(pl.opts, o)
		pl.fastest(v, d, q+longest+t)
	}
}

// fast are the two places where a node would end first, whatever they cost.
type fast [2]struct {
	place   int32
	seconds float64
}

func (pl *Planner) fastest(v int, place int32, seconds float64) {
	f := &pl.fast[v]
	if seconds >= f[1].seconds {
		return
	}
	f[1].place, f[1].seconds = place, seconds
	if f[1].seconds < f[0].seconds {
		f[0], f[1] = f[1], f[0]
	}
}

// membersOf are the devices of a place.
func (pl *Planner) membersOf(place int32) []int32 {
	if place >= 0 {
		pl.one[0] = place
		return pl.one[:]
	}
	at := pl.groups[^place].at
	return pl.members[at.lo:at.hi]
}

// candidateOf completes an option for the joint search.
func (pl *Planner) candidateOf(v int, o option) candidate {
	n := &pl.pr.Nodes[v]
	c := candidate{option: o}
	if o.place < 0 {
		members := pl.membersOf(o.place)
		c.t, c.q = pl.groupTime(v, members), pl.groups[^o.place].q
		for _, d := range members {
			on := pl.on(v, d)
			w, own := needs(n, &on)
			c.weights, c.own = max(c.weights, w), own
		}
	} else {
		on := pl.on(v, o.place)
		c.t, c.q = pl.seconds(v, o.place, &on, pl.pool.precision(n.Precision)), pl.hot[o.place].queue
		c.weights, c.own = needs(n, &on)
	}
	c.src, _ = pl.transfer(v, o.place)
	return c
}

// price is M of a candidate.
func (pl *Planner) price(c *candidate) float64 {
	if c.place < 0 {
		return pl.groups[^c.place].price * c.t
	}
	return pl.ix.inv[c.place].price * c.t
}

// keep copies the search's state into the plan.
func (pl *Planner) keep() {
	nodes := pl.pr.Nodes
	pl.result = pl.result[:0]
	for v := range nodes {
		pl.result = append(pl.result, pl.membersOf(pl.picked(v).place)...)
	}
	b := &pl.best
	b.Choices = resize(b.Choices, len(nodes))
	at := 0
	for v := range nodes {
		c := pl.picked(v)
		n := len(pl.membersOf(c.place))
		b.Choices[v] = Choice{
			Devices: pl.result[at : at+n : at+n],
			L:       c.t, Q: c.q, M: pl.price(c), Cost: c.c, Violation: pl.late[v],
		}
		at += n
	}
	val := pl.value()
	b.Cost, b.Violation, b.Transfers, b.Critical = val.cost, val.late, pl.moved, pl.critical
	b.Site = pl.ix.sites[pl.site]
}

// resize returns s with length n, reusing its memory; contents are undefined.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// estimate is T(v,d) with its terms for the explanation.
func (pl *Planner) estimate(v int, members []int32) cost.Estimate {
	n := &pl.pr.Nodes[v]
	if t, ok := pl.measured(v, members); ok {
		e, _ := pl.on(v, members[0]).speed.Speed.Estimate(n.Work, 0)
		e.Seconds = t
		return e
	}
	caps := make([]cost.Capacity, len(members))
	scale := 0.0
	for i, d := range members {
		dev := &pl.pool.Devices[d]
		caps[i] = cost.CapacityOf(&dev.Spec, n.Precision, dev.efficiency())
		scale = max(scale, pl.on(v, d).scale)
	}
	e := cost.Group(caps, n.Strategy).Time(n.Demand)
	if len(members) > 1 {
		e.Sync = n.Sync.Seconds(pl.inside(members))
	}
	e.Seconds, e.Scale = e.Seconds*scale+e.Sync, scale
	return e
}
