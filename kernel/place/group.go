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
// is free, so no other group of the set can be better in both.
func (pl *Planner) scanGroups(v int, prec *precision) {
	pl.fit = pl.fit[:0]
	for _, d := range pl.devs {
		on := pl.on(v, d)
		if why, ok := pl.filter(v, d, &on, prec); !ok {
			pl.left[v].n[why]++
			continue
		}
		s := &pl.ix.spots[d]
		pl.fit = append(pl.fit, member{d, pl.seconds(v, d, &on, prec), pl.hot[d].queue, s.host, s.domain})
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
		if len(pl.members)-lo < n || pl.known(first, lo) {
			pl.members = pl.members[:lo]
			continue
		}
		pl.addGroup(v, lo)
	}
}

// known tells whether the group at the end of members is an option already.
func (pl *Planner) known(first, lo int) bool {
	slices.Sort(pl.members[lo:])
	for _, o := range pl.opts[first:] {
		if g := &pl.groups[^o.place]; slices.Equal(pl.members[g.lo:g.lo+g.n], pl.members[lo:]) {
			return true
		}
	}
	return false
}

func (pl *Planner) addGroup(v, lo int) {
	n, w := &pl.pr.Nodes[v], &pl.pr.Weights
	g := group{lo: int32(lo), n: int32(len(pl.members) - lo)}
	members := pl.members[lo:]
	for _, d := range members {
		on := pl.on(v, d)
		t := pl.seconds(v, d, &on, pl.pool.precision(n.Precision))
		if on.speed == nil && n.Strategy != cost.Pipeline {
			t = pl.shared(v, d, &on)
		}
		g.t, g.q = max(g.t, t), max(g.q, pl.hot[d].queue)
		g.price += pl.ix.inv[d].price
	}
	g.t += n.Sync.Seconds(pl.inside(members))
	longest, sum := pl.transfer(v, members[0])
	o := option{c: w.Alpha*g.t + w.Beta*g.q + w.Gamma*g.price*g.t + w.Lambda*sum, place: ^int32(len(pl.groups))}
	if sla := n.SLA.Seconds(); sla > 0 {
		o.late = max(g.q+longest+g.t-sla, 0)
	}
	pl.groups, pl.opts = append(pl.groups, g), append(pl.opts, o)
}

// shared is the time of one member's share: compute and bandwidth are split,
// IO is not.
func (pl *Planner) shared(v int, d int32, on *hostedOn) float64 {
	n := &pl.pr.Nodes[v]
	k, inv := float64(n.Degree), &pl.ix.inv[d]
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

// between is D of an edge from one place to another. Groups move their parts
// in parallel, member by member.
func (pl *Planner) between(from, to int32, bytes float64) float64 {
	if from >= 0 && to >= 0 {
		return pl.pool.move(from, to, bytes)
	}
	if from == to {
		return 0
	}
	a, b := pl.side(from, 0), pl.side(to, 1)
	n := min(len(a), len(b))
	worst := 0.0
	for i := range n {
		worst = max(worst, pl.pool.move(a[i], b[i], bytes/float64(n)))
	}
	return worst
}

// side is membersOf with room for both ends of an edge.
func (pl *Planner) side(place int32, end int) []int32 {
	if place >= 0 {
		pl.ends[end] = place
		return pl.ends[end : end+1]
	}
	return pl.membersOf(place)
}
