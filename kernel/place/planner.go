package place

import (
	"math"
	"slices"

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

// candidate is an option with what the joint search needs.
type candidate struct {
	option
	t, q, src float64
	weights   int64 // missing weights, per device
	own       int64 // other memory, per device
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
