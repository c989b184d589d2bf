package place

// improve searches from the plan as it stands: moves of one node, of the two
// ends of an edge, of nodes that are together, and swaps where memory is
// tight, until none helps or the budget is spent.
func (pl *Planner) improve() {
	for pl.spare() > 0 {
		if !(pl.singles() || pl.pairs() || pl.blocks() || pl.swaps()) {
			return
		}
	}
}

// spare is what is left of the budget.
func (pl *Planner) spare() int { return pl.budget - pl.evaluated }

// try applies pl.changes and keeps them if they help.
func (pl *Planner) try() bool {
	sum, moved, late, critical := pl.sum, pl.moved, pl.lateSum, pl.critical
	for i := range pl.changes {
		c := &pl.changes[i]
		c.from = pl.pick[c.node]
		pl.set(int(c.node), c.to)
		pl.evaluated++
	}
	pl.path()
	if v := pl.value(); v.better(pl.now) && pl.changesFit() {
		pl.now = v
		return true
	}
	for i := len(pl.changes) - 1; i >= 0; i-- {
		pl.set(int(pl.changes[i].node), pl.changes[i].from)
	}
	pl.sum, pl.moved, pl.lateSum, pl.critical = sum, moved, late, critical
	return false
}

func (pl *Planner) changesFit() bool {
	for _, c := range pl.changes {
		if !pl.fits(int(c.node), pl.picked(int(c.node))) {
			return false
		}
	}
	return true
}

func (pl *Planner) singles() bool {
	helped := false
	for v := range pl.pr.Nodes {
		for j := range pl.candN[v] {
			if pl.spare() <= 0 {
				return helped
			}
			if j == pl.pick[v] {
				continue
			}
			pl.changes = append(pl.changes[:0], change{node: int32(v), to: j})
			helped = pl.try() || helped
		}
	}
	return helped
}

// pairs brings both ends of an edge that costs time to one place.
func (pl *Planner) pairs() bool {
	helped := false
	for i := range pl.pr.Edges {
		if pl.dist[i] == 0 {
			continue
		}
		u, v := int(pl.pr.Edges[i].From), int(pl.pr.Edges[i].To)
		for j := range pl.candN[u] {
			if pl.spare() <= 1 {
				return helped
			}
			k := pl.candidateAt(v, pl.candidates(u)[j].place)
			if k < 0 || j == pl.pick[u] || k == pl.pick[v] {
				continue
			}
			pl.changes = append(pl.changes[:0], change{node: int32(u), to: j}, change{node: int32(v), to: k})
			helped = pl.try() || helped
		}
	}
	return helped
}

// blocks moves nodes that are connected and together to another place.
func (pl *Planner) blocks() bool {
	helped := false
	for v := range pl.pr.Nodes {
		for j := range pl.candN[v] {
			if j == pl.pick[v] || !pl.block(v, j) || len(pl.changes) > pl.spare() {
				continue
			}
			helped = pl.try() || helped
		}
	}
	return helped
}

// block collects in changes the block of v, all bound for v's candidate j;
// false if a node of it has no such candidate, or v stands alone.
func (pl *Planner) block(v int, j int32) bool {
	here, there := pl.picked(v).place, pl.candidates(v)[j].place
	pl.changes = append(pl.changes[:0], change{node: int32(v), to: j})
	for i := 0; i < len(pl.changes); i++ {
		u := pl.changes[i].node
		for _, e := range pl.edges(int(u)) {
			w := int32(pl.pr.Edges[e].From)
			if w == u {
				w = int32(pl.pr.Edges[e].To)
			}
			if pl.picked(int(w)).place != here || pl.changing(w) {
				continue
			}
			k := pl.candidateAt(int(w), there)
			if k < 0 {
				return false
			}
			pl.changes = append(pl.changes, change{node: w, to: k})
		}
	}
	return len(pl.changes) > 1
}

func (pl *Planner) changing(v int32) bool {
	for _, c := range pl.changes {
		if c.node == v {
			return true
		}
	}
	return false
}

// swaps exchanges the places of two nodes, which single moves can't where
// there is room for one of them only.
func (pl *Planner) swaps() bool {
	if !pl.tight {
		return false
	}
	helped := false
	for u := range pl.pr.Nodes {
		for v := range u {
			a, b := pl.picked(u).place, pl.picked(v).place
			if a == b {
				continue
			}
			j, k := pl.candidateAt(u, b), pl.candidateAt(v, a)
			if j < 0 || k < 0 {
				continue
			}
			if pl.spare() <= 1 {
				return helped
			}
			pl.changes = append(pl.changes[:0], change{node: int32(u), to: j}, change{node: int32(v), to: k})
			helped = pl.try() || helped
		}
	}
	return helped
}
