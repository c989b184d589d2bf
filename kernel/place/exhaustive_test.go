package place

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/kernel/cost"
)

// naive is the reference: every assignment of feasible devices and groups,
// valued by a direct reading of the specification.
type naive struct {
	pool  *Pool
	pr    *Problem
	order []int
	best  value
	found bool
	pick  [][]int32
	opts  [][][]int32
}

func exhaustive(t *testing.T, pool *Pool, pr *Problem) (value, bool) {
	t.Helper()
	pool.index()
	sites := map[string]bool{}
	n := &naive{pool: pool, pr: pr}
	n.order = naiveOrder(pr)
	for i := range pool.Devices {
		site := pool.Devices[i].Spec.Topology.Site
		if sites[site] || (pr.Site != "" && pr.Site != site) {
			continue
		}
		sites[site] = true
		n.opts = nil
		for v := range pr.Nodes {
			n.opts = append(n.opts, n.feasible(v, site))
		}
		n.pick = make([][]int32, len(pr.Nodes))
		n.walk(0)
	}
	return n.best, n.found
}

func naiveOrder(pr *Problem) []int {
	var out []int
	done := make([]bool, len(pr.Nodes))
	for len(out) < len(pr.Nodes) {
	next:
		for v := range pr.Nodes {
			if done[v] {
				continue
			}
			for _, e := range pr.Edges {
				if int(e.To) == v && !done[e.From] {
					continue next
				}
			}
			done[v] = true
			out = append(out, v)
		}
	}
	return out
}

func (n *naive) hosted(v int, d int32) (h Hosted, path bool) {
	name := n.pr.Nodes[v].Model
	if name == "" {
		return Hosted{}, true
	}
	for _, h := range n.pool.Devices[d].Hosted {
		if h.Model == name {
			return h, true
		}
	}
	return Hosted{}, n.pool.Devices[d].AnyModel
}

// feasible lists all devices, or all subsets of a host or domain.
func (n *naive) feasible(v int, site string) [][]int32 {
	node := &n.pr.Nodes[v]
	var ok []int32
	for i := range n.pool.Devices {
		d := &n.pool.Devices[i]
		h, path := n.hosted(v, int32(i))
		missing := max(node.Weights-h.Resident, 0) + max(node.Demand.Memory-node.Weights, 0)
		cpuOnly := node.Stage.Type() != ieg.ComputeNode && node.Stage.Type() != ieg.MemoryNode
		switch {
		case d.Down, d.Spec.Topology.Site != site, !path, missing > 0 && missing > d.Free,
			cpuOnly && d.Spec.Type != "CPU", node.Precision != "" && !cost.Supports(&d.Spec, node.Precision):
		default:
			ok = append(ok, int32(i))
		}
	}
	k := max(node.Degree, 1)
	var out [][]int32
	for set := range 1 << len(ok) {
		var members []int32
		for b, d := range ok {
			if set&(1<<b) != 0 {
				members = append(members, d)
			}
		}
		if len(members) != k || !n.together(members) {
			continue
		}
		if node.Required != "" {
			has := false
			for _, d := range members {
				has = has || n.pool.Devices[d].Spec.ID == node.Required
			}
			if !has {
				continue
			}
		}
		out = append(out, members)
	}
	return out
}

func (n *naive) together(members []int32) bool {
	a := n.pool.Devices[members[0]].Spec.Topology
	host, domain := true, a.NVLinkDomain != ""
	for _, d := range members {
		b := n.pool.Devices[d].Spec.Topology
		host, domain = host && b.Host == a.Host, domain && b.NVLinkDomain == a.NVLinkDomain
	}
	return host || domain
}

func (n *naive) walk(v int) {
	if v == len(n.pick) {
		if val, ok := n.value(); ok && (!n.found || val.better(n.best)) {
			n.best, n.found = val, true
		}
		return
	}
	for _, o := range n.opts[v] {
		n.pick[v] = o
		n.walk(v + 1)
	}
}

func (n *naive) move(from, to int32, bytes float64) float64 {
	if from == to || bytes == 0 {
		return 0
	}
	l := n.pool.Link(int(from), int(to))
	return bytes/l.Bandwidth + l.Latency.Seconds()
}

// moves is the mean over all pairs of members, in parallel streams.
func (n *naive) moves(from, to []int32, bytes float64) float64 {
	if slices.Equal(from, to) {
		return 0
	}
	sum := 0.0
	for _, a := range from {
		for _, b := range to {
			sum += n.move(a, b, bytes/float64(min(len(from), len(to))))
		}
	}
	return sum / float64(len(from)*len(to))
}

func (n *naive) value() (value, bool) {
	if !n.memory() {
		return value{}, false
	}
	var val value
	w := n.pr.Weights
	finish := make([]float64, len(n.pick))
	critical := 0.0
	for _, v := range n.order {
		node, members := &n.pr.Nodes[v], n.pick[v]
		var caps []cost.Capacity
		var q, price, measured float64
		for _, d := range members {
			dev := &n.pool.Devices[d]
			h, _ := n.hosted(v, d)
			scale := h.Scale
			if scale == 0 {
				scale = 1
			}
			c := cost.CapacityOf(&dev.Spec, node.Precision, dev.efficiency())
			caps = append(caps, cost.Capacity{Compute: c.Compute / scale, Bandwidth: c.Bandwidth / scale, IO: c.IO / scale})
			q = max(q, n.pool.queue(d))
			price += dev.Spec.Price
			if e, ok := h.Speed.Estimate(node.Work, h.Chunk); ok {
				measured = max(measured, e.Seconds)
			} else {
				measured = math.Inf(1)
			}
		}
		t := cost.Group(caps, node.Strategy).Time(node.Demand).Seconds
		if !math.IsInf(measured, 1) {
			t = measured // the members' engine was measured as a whole
		} else if len(members) > 1 {
			var worst ieg.Link
			for i, a := range members {
				for _, b := range members[:i] {
					if l := n.pool.Link(int(a), int(b)); worst.Bandwidth == 0 || l.Bandwidth < worst.Bandwidth {
						worst = l
					}
				}
			}
			t += node.Sync.Seconds(worst)
		}
		in, begin := 0.0, q
		for _, s := range node.Sources {
			if from, found := n.pool.Index(s.Device); found {
				d := n.moves([]int32{int32(from)}, members, float64(s.Bytes))
				val.cost += w.Lambda * d
				in, begin = max(in, d), max(begin, d)
			}
		}
		for _, e := range n.pr.Edges {
			if int(e.To) == v {
				d := n.moves(n.pick[e.From], members, float64(e.Bytes))
				val.cost += w.Lambda * d
				in, begin = max(in, d), max(begin, finish[e.From]+d)
			}
		}
		val.cost += w.Node(t, q, cost.Price(price, t))
		finish[v] = begin + t
		critical = max(critical, finish[v])
		if node.SLA > 0 {
			val.late += max(q+in+t-node.SLA.Seconds(), 0)
		}
	}
	if n.pr.Bound > 0 {
		val.cost += w.Alpha * critical
		val.late += max(critical-n.pr.Bound.Seconds(), 0)
	}
	if val.late < 1e-12 {
		val.late = 0
	}
	return val, true
}

// memory adds up each device: a model's missing weights once, a sequence's KV
// once.
func (n *naive) memory() bool {
	for d := range n.pool.Devices {
		weights, seqs, sum := map[string]int64{}, map[int32]int64{}, int64(0)
		for v, members := range n.pick {
			for _, m := range members {
				if int(m) != d {
					continue
				}
				node := &n.pr.Nodes[v]
				h, _ := n.hosted(v, m)
				weights[node.Model] = max(weights[node.Model], node.Weights-h.Resident)
				own := max(node.Demand.Memory-node.Weights, 0)
				if node.Seq > 0 {
					seqs[node.Seq] = max(seqs[node.Seq], own)
				} else {
					sum += own
				}
			}
		}
		for _, w := range weights {
			sum += w
		}
		for _, s := range seqs {
			sum += s
		}
		if sum > 0 && sum > n.pool.Devices[d].Free {
			return false
		}
	}
	return true
}

// shape makes random instances of a kind.
type shape struct {
	devices, nodes int
	fan            bool // DAG with several predecessors instead of a chain
	tight          bool // memory for about two nodes a device
	groups         bool
	sites          int
	sla, bound     bool
	heavy          float64 // mean δ in bytes
}

func (s shape) instance(r *rand.Rand) (*Pool, *Problem) {
	gpus := []struct {
		fp16, bw, vram, price float64
	}{{312e12, 2e12, 80e9, 2}, {990e12, 3.35e12, 80e9, 4}, {121e12, 0.3e12, 24e9, 0.8}, {362e12, 0.864e12, 48e9, 1.2}}
	var devs []Device
	for i := range s.devices {
		g := gpus[r.IntN(len(gpus))]
		d := Device{Free: int64(g.vram), Load: r.ExpFloat64() * 0.3, AnyModel: true}
		d.Spec.ID, d.Spec.Type = fmt.Sprintf("d%d", i), "GPU"
		d.Spec.Compute.FP16, d.Spec.Memory.Bandwidth, d.Spec.Price = g.fp16, g.bw, g.price
		t := &d.Spec.Topology
		t.Host = fmt.Sprintf("h%d", r.IntN(max(s.devices/3, 1)))
		t.Rack = "r" + t.Host[1:2]
		if r.IntN(2) == 0 {
			t.NVLinkDomain = "n" + t.Host
		}
		t.Site = fmt.Sprintf("s%d", int(t.Host[1]-'0')%max(s.sites, 1))
		if r.IntN(3) == 0 {
			d.Hosted = []Hosted{{Model: "m0", Resident: 10e9, Scale: 0.8 + r.Float64()*0.6}}
		}
		if r.IntN(6) == 0 {
			d.Hosted = append(d.Hosted, Hosted{Model: "m1", Resident: 10e9, Speed: cost.Speed{Base: 0.01 * r.Float64(), Prefill: 1e-4 * r.Float64(), Seq: 1e-3}})
		}
		devs = append(devs, d)
	}
	for i := range 2 {
		d := Device{Free: 100e9, Load: r.Float64() * 0.1}
		d.Spec.ID, d.Spec.Type, d.Spec.IO.Net = fmt.Sprintf("cpu%d", i), "CPU", 1e9
		d.Spec.Topology.Host, d.Spec.Topology.Rack = fmt.Sprintf("h%d", i), "r0"
		d.Spec.Topology.Site = fmt.Sprintf("s%d", i%max(s.sites, 1))
		devs = append(devs, d)
	}
	pool, err := NewPool(devs)
	if err != nil {
		panic(err)
	}
	return pool, s.problem(r)
}

func (s shape) problem(r *rand.Rand) *Problem {
	pr := &Problem{Weights: cost.WeightsOf(cost.Goal(r.IntN(int(cost.NumGoals))))}
	stages := []ieg.Stage{ieg.StagePrefill, ieg.StageDecode, ieg.StageDecode, ieg.StageTool}
	for i := range s.nodes {
		n := Node{Label: fmt.Sprintf("v%d", i), Stage: stages[r.IntN(len(stages))], Seq: int32(r.IntN(2))}
		if n.Stage == ieg.StageTool {
			n.Demand.IO = r.ExpFloat64() * 1e8
		} else {
			n.Model, n.Precision = fmt.Sprintf("m%d", r.IntN(2)), "fp16"
			n.Demand = ieg.Demand{FLOPs: r.ExpFloat64() * 5e13, Bytes: r.ExpFloat64() * 5e11, Memory: 16e9 + r.Int64N(10e9)}
			n.Weights = 14e9
			n.Work = cost.Work{Stage: n.Stage, Tokens: 100 + r.Int32N(900)}
			if s.tight {
				n.Demand.Memory += 12e9
			}
			if s.groups && r.IntN(2) == 0 {
				n.Degree, n.Sync = 2, cost.Sync{Bytes: 1e9 * r.Float64(), Hops: 100}
			}
		}
		if s.sla && r.IntN(2) == 0 {
			n.SLA = time.Duration(r.ExpFloat64() * 4e8)
		}
		if r.IntN(4) == 0 {
			n.Sources = []Source{{fmt.Sprintf("d%d", r.IntN(s.devices)), int64(r.ExpFloat64() * s.heavy)}}
		}
		pr.Nodes = append(pr.Nodes, n)
		from := []int{i - 1}
		if s.fan && i > 0 {
			from = []int{r.IntN(i), r.IntN(i)}
		}
		for j, f := range from {
			if f >= 0 && (j == 0 || f != from[0]) {
				pr.Edges = append(pr.Edges, ieg.Edge{From: ieg.NodeID(f), To: ieg.NodeID(i), Bytes: int64(r.ExpFloat64() * s.heavy)})
			}
		}
	}
	if s.bound && r.IntN(2) == 0 {
		pr.Bound = time.Duration(r.ExpFloat64() * 2e9)
	}
	return pr
}

// TestJointSearch compares the planner with the exhaustive reference on random
// instances of many shapes: as little late, and within 2 % of the cost.
func TestJointSearch(t *testing.T) {
	shapes := []struct {
		name string
		shape
		count int
	}{
		{"chain", shape{devices: 5, nodes: 4, heavy: 1e9}, 600},
		{"chain heavy", shape{devices: 5, nodes: 5, heavy: 2e10}, 300},
		{"chain light", shape{devices: 6, nodes: 4, heavy: 1e7}, 400},
		{"fan", shape{devices: 5, nodes: 5, fan: true, heavy: 3e9}, 300},
		{"wide pool", shape{devices: 12, nodes: 3, fan: true, heavy: 3e9}, 400},
		{"tight memory", shape{devices: 4, nodes: 5, fan: true, tight: true, heavy: 2e9}, 300},
		{"groups", shape{devices: 6, nodes: 3, groups: true, heavy: 2e9}, 300},
		{"sites", shape{devices: 6, nodes: 4, sites: 2, heavy: 2e9}, 400},
		{"slas", shape{devices: 5, nodes: 4, sla: true, heavy: 2e9}, 400},
		{"bound", shape{devices: 5, nodes: 4, fan: true, bound: true, sla: true, heavy: 2e9}, 400},
	}
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(len(s.name))))
			var pl Planner
			worst, sum, solved := 0.0, 0.0, 0
			for i := range s.count {
				pool, pr := s.instance(r)
				want, feasible := exhaustive(t, pool, pr)
				plan, err := pl.Plan(pool, pr)
				if !feasible {
					if err == nil {
						t.Fatalf("instance %d: a plan where none exists", i)
					}
					continue
				}
				if err != nil {
					t.Errorf("instance %d: %v, where the reference has a plan", i, err)
					continue
				}
				solved++
				if plan.Violation > want.late*1.02+1e-6 {
					t.Errorf("instance %d: late by %.4f s, reference %.4f s", i, plan.Violation, want.late)
					continue
				}
				gap := plan.Cost/want.cost - 1
				if math.Abs(plan.Violation-want.late) < 1e-9*(1+want.late) {
					worst, sum = max(worst, gap), sum+gap
					if gap > 0.02 {
						t.Errorf("instance %d: cost %.5f, reference %.5f: %.1f %% above", i, plan.Cost, want.cost, gap*100)
					}
					if gap < -1e-9 {
						t.Errorf("instance %d: cost %.9f is below the reference %.9f", i, plan.Cost, want.cost)
					}
				}
				if plan.Evaluated > Budget {
					t.Errorf("instance %d: %d placements evaluated of %d", i, plan.Evaluated, Budget)
				}
			}
			if solved == 0 {
				t.Fatal("no instance had a solution")
			}
			t.Logf("%d solved, worst %.2f %%, mean %.3f %% above the reference", solved, worst*100, sum/float64(solved)*100)
		})
	}
}
