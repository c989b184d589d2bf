package place

import (
	"cmp"
	"slices"

	"ieg"
	"ieg/kernel/cost"
)

// scanGroups makes the groups that a node of degree N could use: members of
// one NVLink domain or one host, all feasible. Of each set it takes, for every
// threshold of the queue, the N fastest devices whose queue is not longer: the
// time of a group is that of its slowest member, and it starts when the last
// is free, so no other group of the set can be better in both. Small sets,
// and those near the node's data, give all their groups.
func (pl *Planner) scanGroups(v int, prec *precision) {
	pl.fit = pl.fit[:0]
	for _, d := range pl.devs {
		on := pl.on(v, d)
		if why, ok := pl.filter(v, d, &on, prec); !ok {
			pl.left[v].n[why]++
			continue
		}
		s := &pl.ix.spots[d]
		pl.fit = append(pl.fit, member{d, pl.shared(v, d, &on), pl.hot[d].queue, s.host, s.domain})
	}
	first := len(pl.opts)
	slices.SortFunc(pl.fit, byHost)
	pl.sets(v, first, func(m *member) int32 { return m.host + 1 })
	slices.SortFunc(pl.fit, byDomain)
	pl.sets(v, first, func(m *member) int32 { return m.domain })
}

type member struct {
	device       int32
	t, q         float64
	host, domain int32
}

func byHost(a, b member) int {
	return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.t, b.t), cmp.Compare(a.q, b.q), cmp.Compare(a.device, b.device))
}

func byDomain(a, b member) int {
	return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.t, b.t), cmp.Compare(a.q, b.q), cmp.Compare(a.device, b.device))
}

// sets splits the sorted members by key; key 0 is no set.
func (pl *Planner) sets(v, first int, key func(*member) int32) {
	for lo := 0; lo < len(pl.fit); {
		hi := lo + 1
		for hi < len(pl.fit) && key(&pl.fit[hi]) == key(&pl.fit[lo]) {
			hi++
		}
		if key(&pl.fit[lo]) != 0 {
			pl.groupsOf(v, first, pl.fit[lo:hi])
		}
		lo = hi
	}
}

// groupsOf adds the groups of one set, which is sorted by time.
func (pl *Planner) groupsOf(v, first int, set []member) {
	n := pl.pr.Nodes[v].Degree
	if len(set) < n {
		return
	}
	if ways := combinations(len(set), n); ways <= MaxSubsets && (len(pl.opts)-first+ways <= MaxGroups || pl.anchored(v, set)) {
		pl.subsets(v, set)
		return
	}
	for i := range set {
		threshold := set[i].q
		lo := len(pl.members)
		if r := pl.req[v]; r >= 0 {
			at := slices.IndexFunc(set, func(m member) bool { return m.device == r })
			if at < 0 || set[at].q > threshold {
				continue
			}
			pl.members = append(pl.members, r)
		}
		for j := range set {
			if len(pl.members)-lo == n {
				break
			}
			if set[j].q <= threshold && set[j].device != pl.req[v] {
				pl.members = append(pl.members, set[j].device)
			}
		}
		if len(pl.members)-lo < n {
			pl.members = pl.members[:lo]
			continue
		}
		pl.offer(v, lo)
	}
}

// combinations is n over k, cut at MaxSubsets + 1.
func combinations(n, k int) int {
	c := 1
	for i := 1; i <= min(k, n-k); i++ {
		if c = c * (n - i + 1) / i; c > MaxSubsets {
			return MaxSubsets + 1
		}
	}
	return c
}

// anchored tells whether data that the node needs, or the best place of a
// neighbour, is near the set: then the choice of members matters beyond their
// speed.
func (pl *Planner) anchored(v int, set []member) bool {
	for _, s := range pl.srcs[pl.srcAt[v]:pl.srcAt[v+1]] {
		if set[0].host == pl.ix.spots[s.device].host {
			return true
		}
	}
	for i := range pl.pr.Edges {
		u := int(pl.pr.Edges[i].From)
		if u == v {
			u = int(pl.pr.Edges[i].To)
		} else if int(pl.pr.Edges[i].To) != v {
			continue
		}
		if pl.scanned[u] && slices.ContainsFunc(set, func(m member) bool { return pl.leader(u) == m.host }) {
			return true
		}
	}
	return false
}

// leader is the host of a scanned node's best option.
func (pl *Planner) leader(u int) int32 {
	options := pl.options(u)
	best := &options[0]
	for i := range options {
		if options[i].before(best) {
			best = &options[i]
		}
	}
	return pl.ix.spots[pl.membersOf(best.place)[0]].host
}

// subsets adds all groups of a small set.
func (pl *Planner) subsets(v int, set []member) {
	n := pl.pr.Nodes[v].Degree
	var at [MaxDegree]int
	for i := range n {
		at[i] = i
	}
	for {
		lo := len(pl.members)
		has := pl.req[v] < 0
		for _, i := range at[:n] {
			pl.members = append(pl.members, set[i].device)
			has = has || set[i].device == pl.req[v]
		}
		if has {
			pl.offer(v, lo)
		} else {
			pl.members = pl.members[:lo]
		}
		i := n - 1
		for i >= 0 && at[i] == len(set)-n+i {
			i--
		}
		if i < 0 {
			return
		}
		at[i]++
		for j := i + 1; j < n; j++ {
			at[j] = at[j-1] + 1
		}
	}
}

// offer makes the members from lo on an option of the node, once.
func (pl *Planner) offer(v, lo int) {
	slices.Sort(pl.members[lo:])
	id := pl.groupOf(lo)
	if g := &pl.groups[id]; g.listed != int32(v)+1 {
		g.listed = int32(v) + 1
		pl.addGroup(v, id)
	}
}

// groupOf numbers the group at the end of members: equal members, equal
// number, for all nodes of the plan.
func (pl *Planner) groupOf(lo int) int32 {
	members := pl.members[lo:]
	at, found := slices.BinarySearchFunc(pl.sorted, members, func(id int32, m []int32) int {
		return slices.Compare(pl.membersOf(^id), m)
	})
	if found {
		pl.members = pl.members[:lo]
		return pl.sorted[at]
	}
	g := group{at: span{int32(lo), int32(len(pl.members))}}
	for _, d := range members {
		g.q = max(g.q, pl.hot[d].queue)
		g.price += pl.ix.inv[d].price
	}
	id := int32(len(pl.groups))
	pl.groups = append(pl.groups, g)
	pl.sorted = slices.Insert(pl.sorted, at, id)
	return id
}

func (pl *Planner) addGroup(v int, id int32) {
	n, w, g := &pl.pr.Nodes[v], &pl.pr.Weights, &pl.groups[id]
	t := pl.groupTime(v, pl.membersOf(^id))
	longest, sum := pl.transfer(v, ^id)
	o := option{c: w.Alpha*t + w.Beta*g.q + w.Gamma*g.price*t + w.Lambda*sum, place: ^id}
	if sla := n.SLA.Seconds(); sla > 0 {
		o.late = max(g.q+longest+t-sla, 0)
	}
	pl.opts = append(pl.opts, o)
	pl.fastest(v, o.place, g.q+longest+t)
}

// groupTime is T of a group: the engine's measured speed, else the slowest
// member's share and the traffic inside.
func (pl *Planner) groupTime(v int, members []int32) float64 {
	if t, ok := pl.measured(v, members); ok {
		return t
	}
	t := 0.0
	for _, d := range members {
		on := pl.on(v, d)
		t = max(t, pl.shared(v, d, &on))
	}
	return t + pl.pr.Nodes[v].Sync.Seconds(pl.inside(members))
}

// measured is the time of a group whose members all belong to an engine that
// was measured: its speed is that of the whole group.
func (pl *Planner) measured(v int, members []int32) (seconds float64, ok bool) {
	for _, d := range members {
		on := pl.on(v, d)
		if on.speed == nil {
			return 0, false
		}
		e, ok := on.speed.Speed.Estimate(pl.pr.Nodes[v].Work, on.speed.Chunk)
		if !ok {
			return 0, false
		}
		seconds = max(seconds, e.Seconds)
	}
	return seconds, true
}

// shared is the time of one member's share: compute and bandwidth are split,
// but for a pipeline, IO is not.
func (pl *Planner) shared(v int, d int32, on *hostedOn) float64 {
	n := &pl.pr.Nodes[v]
	k, inv := float64(n.Degree), &pl.ix.inv[d]
	if n.Strategy == cost.Pipeline {
		k = 1
	}
	prec := pl.pool.precision(n.Precision)
	return max(n.Demand.FLOPs*prec.inv[d]/k, n.Demand.Bytes*inv.bandwidth/k, n.Demand.IO*inv.io) * on.scale
}

// inside is the slowest link between the members of a group.
func (pl *Planner) inside(members []int32) ieg.Link {
	var worst ieg.Link
	for i, a := range members {
		for _, b := range members[:i] {
			l := pl.pool.Link(int(a), int(b))
			if worst.Bandwidth == 0 || l.Bandwidth < worst.Bandwidth {
				worst = l
			}
		}
	}
	return worst
}

// between is D of an edge from one place to another. A group moves its parts
// in as many streams as the smaller side has members, at the mean of the links
// between the members.
func (pl *Planner) between(from, to int32, bytes float64) float64 {
	if from >= 0 && to >= 0 {
		return pl.pool.move(from, to, bytes)
	}
	if from == to || bytes == 0 {
		return 0
	}
	return pl.spread(pl.side(from, 0), pl.side(to, 1), bytes)
}

func (pl *Planner) spread(from, to []int32, bytes float64) float64 {
	part, sum := bytes/float64(min(len(from), len(to))), 0.0
	for _, a := range from {
		for _, b := range to {
			sum += pl.pool.move(a, b, part)
		}
	}
	return sum / float64(len(from)*len(to))
}

// side is membersOf with room for both ends of an edge.
func (pl *Planner) side(place int32, end int) []int32 {
	if place >= 0 {
		pl.ends[end] = place
		return pl.ends[end : end+1]
	}
	return pl.membersOf(place)
}
