package place

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ieg"
	"ieg/kernel/cost"
)

// Decide turns node v of the newest plan into a decision that explains itself.
// It must be called before the next Plan, with the pool unchanged.
func (pl *Planner) Decide(v int) *ieg.Decision {
	ch := &pl.best.Choices[v]
	e := pl.estimate(v, ch.Devices)
	d := &ieg.Decision{
		Device:     pl.name(ch.Devices[0]),
		Predicted:  seconds(ch.L),
		Queue:      seconds(ch.Q),
		Bottleneck: e.Bottleneck.String(),
		Terms:      pl.terms(v, ch, &e),
		Candidates: pl.weighed(v, ch),
	}
	for _, m := range ch.Devices {
		if len(ch.Devices) > 1 {
			d.Members = append(d.Members, pl.name(m))
		}
	}
	over := seconds(pl.best.Critical) - pl.pr.Bound
	switch {
	case ch.Violation > 0:
		d.Violated = fmt.Sprintf("latency_sla %v by %v", pl.pr.Nodes[v].SLA, seconds(ch.Violation).Round(time.Microsecond))
	case pl.pr.Bound > 0 && over > 0:
		d.Violated = fmt.Sprintf("end to end %v by %v", pl.pr.Bound, over.Round(time.Microsecond))
	}
	return d
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

func (pl *Planner) name(d int32) string { return pl.pool.Devices[d].Spec.ID }

// terms lists what the node pays, weighted, and what memory allowed it.
func (pl *Planner) terms(v int, ch *Choice, e *cost.Estimate) []ieg.CostTerm {
	w := &pl.pr.Weights
	terms := []ieg.CostTerm{
		{Name: "α·L", Seconds: w.Alpha * ch.L, Note: latencyNote(e, ch.L)},
		{Name: "β·Q", Seconds: w.Beta * ch.Q, Note: cost.Seconds(ch.Q) + " of uncached work ahead"},
		{Name: "γ·M", Seconds: w.Gamma * ch.M, Note: fmt.Sprintf("price %.3g/h", pl.pricePerHour(ch.Devices))},
	}
	for _, s := range pl.srcs[pl.srcAt[v]:pl.srcAt[v+1]] {
		terms = append(terms, pl.edgeTerm("λ·D from "+pl.name(s.device), []int32{s.device}, ch.Devices, s.bytes))
	}
	for i := range pl.pr.Edges {
		if edge := &pl.pr.Edges[i]; int(edge.To) == v && edge.Bytes > 0 {
			from := pl.best.Choices[edge.From].Devices
			terms = append(terms, pl.edgeTerm("λ·D from "+pl.pr.Nodes[edge.From].Label, from, ch.Devices, float64(edge.Bytes)))
		}
	}
	return append(terms, ieg.CostTerm{Name: "memory", Note: pl.memory(v, ch.Devices)})
}

func latencyNote(e *cost.Estimate, l float64) string {
	if e.Source != cost.FromModel {
		return fmt.Sprintf("T = %s, %s", cost.Seconds(l), "measured "+e.Source.String())
	}
	note := fmt.Sprintf("T = max(compute %s, bandwidth %s, io %s)",
		cost.Seconds(e.Compute), cost.Seconds(e.Bandwidth), cost.Seconds(e.IO))
	if e.Scale != 1 {
		note += fmt.Sprintf(" × %.3g", e.Scale)
	}
	if e.Sync > 0 {
		note += " + sync " + cost.Seconds(e.Sync)
	}
	return note
}

func (pl *Planner) edgeTerm(name string, from, to []int32, bytes float64) ieg.CostTerm {
	d := 0.0
	if !slices.Equal(from, to) {
		d = pl.spread(from, to, bytes)
	}
	return ieg.CostTerm{
		Name: name, Seconds: pl.pr.Weights.Lambda * d,
		Note: fmt.Sprintf("%s, %s", cost.SI(bytes, "B"), pl.pool.Rung(int(from[0]), int(to[0]))),
	}
}

func (pl *Planner) pricePerHour(devices []int32) float64 {
	sum := 0.0
	for _, d := range devices {
		sum += pl.pool.Devices[d].Spec.Price
	}
	return sum
}

// memory explains the fit on the member that has the least room.
func (pl *Planner) memory(v int, devices []int32) string {
	n := &pl.pr.Nodes[v]
	least := devices[0]
	for _, d := range devices {
		if pl.hot[d].free < pl.hot[least].free {
			least = d
		}
	}
	on := pl.on(v, least)
	resident := min(on.resident, n.Weights)
	note := cost.MemoryNote(n.Demand.Memory, resident, pl.hot[least].free)
	if resident > 0 && n.Demand.Memory > pl.hot[least].free {
		note += ": fits only because its weights are resident"
	}
	if len(devices) > 1 {
		note = "each: " + note
	}
	return note
}

// weighed lists the other candidates with their cost, then what was left out.
func (pl *Planner) weighed(v int, ch *Choice) []string {
	var out []string
	if ch.Devices[0] >= 0 && pl.ix.spots[ch.Devices[0]].site == pl.site {
		out = append(out, pl.others(v, ch)...)
	}
	if s := pl.leftOutText(v); s != "" {
		out = append(out, s)
	}
	return out
}

func (pl *Planner) others(v int, ch *Choice) []string {
	var out []string
	for j := range pl.candidates(v) {
		c := &pl.candidates(v)[j]
		members := pl.membersOf(c.place)
		if slices.Equal(members, ch.Devices) {
			continue
		}
		s := fmt.Sprintf("%s: c = %s (L %s, Q %s, M %s)", pl.names(members),
			cost.Seconds(c.c), cost.Seconds(c.t), cost.Seconds(c.q), cost.Seconds(pl.price(c)))
		if c.late > 0 {
			s += ", late by " + cost.Seconds(c.late)
		}
		out = append(out, s)
	}
	return out
}

func (pl *Planner) names(members []int32) string {
	if len(members) == 1 {
		return pl.name(members[0])
	}
	ids := make([]string, len(members))
	for i, d := range members {
		ids[i] = pl.name(d)
	}
	return "{" + strings.Join(ids, ", ") + "}"
}

// leftOutText says how many devices the filter left out, and why.
func (pl *Planner) leftOutText(v int) string {
	l := &pl.left[v]
	var parts []string
	total := int32(0)
	for r, n := range l.n {
		if n == 0 {
			continue
		}
		total += n
		s := fmt.Sprintf("%d %s", n, reasonNames[r])
		if reason(r) == noMemory && l.near >= 0 {
			on := pl.on(v, l.near)
			n := &pl.pr.Nodes[v]
			s += fmt.Sprintf(" (closest %s: %s)", pl.name(l.near),
				cost.MemoryNote(n.Demand.Memory, min(on.resident, n.Weights), pl.hot[l.near].free))
		}
		parts = append(parts, s)
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("left out %d: %s", total, strings.Join(parts, "; "))
}

// noFit explains that a node has no feasible device.
func (pl *Planner) noFit(v int) error {
	n := &pl.pr.Nodes[v]
	why := pl.leftOutText(v)
	if n.Degree > 1 {
		why = strings.TrimPrefix(fmt.Sprintf("%s; it needs %d devices of one NVLink domain or one host", why, n.Degree), "; ")
	}
	if why == "" {
		why = "the pool is empty"
	}
	return fmt.Errorf("%w %s: %s", ErrNoFit, n.Label, why)
}

func (pl *Planner) noRoom(v int) error {
	return fmt.Errorf("%w %s beside the other nodes of its graph: memory", ErrNoFit, pl.pr.Nodes[v].Label)
}

func (pl *Planner) noRequired(v int) error {
	n := &pl.pr.Nodes[v]
	return fmt.Errorf("%w %s: it requires %q: %w", ErrNoFit, n.Label, n.Required, ErrDevice)
}

func (pl *Planner) noSite() error {
	if len(pl.pool.Devices) == 0 {
		return fmt.Errorf("%w: the pool is empty", ErrNoFit)
	}
	return fmt.Errorf("%w: the pool has no site %q", ErrNoFit, pl.pr.Site)
}

func (pl *Planner) circle() error {
	return fmt.Errorf("%w: the edges close a circle", ErrProblem)
}

// miss names the bound that every plan misses.
func (pl *Planner) miss() error {
	for v := range pl.best.Choices {
		if c := &pl.best.Choices[v]; c.Violation > 0 {
			return fmt.Errorf("%w: %s on %s would miss %v by %v", ErrMiss, pl.pr.Nodes[v].Label,
				pl.name(c.Devices[0]), pl.pr.Nodes[v].SLA, seconds(c.Violation).Round(time.Microsecond))
		}
	}
	return fmt.Errorf("%w: the graph would take %v of %v end to end", ErrMiss, seconds(pl.best.Critical).Round(time.Microsecond), pl.pr.Bound)
}
