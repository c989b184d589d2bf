package place

import "slices"

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
