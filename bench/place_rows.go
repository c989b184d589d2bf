package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ieg"
	"ieg/bench/report"
	"ieg/kernel/cost"
	"ieg/kernel/place"
)

// placement: time of the joint placement of a 10-node graph, and its cost
// against an exhaustive search where that is possible.
func placement(_ context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "place-64", Unit: "µs", Bound: 200, Better: report.Lower, Against: "the clock, p99 over random pools of 64 devices"},
		{Name: "place-1000", Unit: "µs", Bound: 1000, Better: report.Lower, Against: "the clock, p99 over random pools of 1,000 devices"},
		{Name: "place-cost", Unit: "×", Bound: 1.02, Better: report.Lower, Against: "exhaustive search, worst of the small cases"},
	}
	for i, devices := range []int{64, 1000} {
		var rounds []float64
		for round := range e.Rounds {
			p99, p50, err := placeTimes(devices, uint64(round), 2000)
			if err != nil {
				return rows, err
			}
			rounds = append(rounds, p99)
			rows[i].Detail = fmt.Sprintf("p50 %.0f µs", p50)
		}
		rows[i].Measure(rounds)
	}
	var worst []float64
	for round := range e.Rounds {
		w, err := placeCost(uint64(round), 150)
		if err != nil {
			return rows, err
		}
		worst = append(worst, w)
	}
	rows[2].Measure(worst)
	rows[2].Value, rows[2].OK = rows[2].High, rows[2].High <= rows[2].Bound
	return rows, nil
}

// placeTimes plans random 10-node graphs on a random pool.
func placeTimes(devices int, seed uint64, n int) (p99, p50 float64, err error) {
	r := rand.New(rand.NewPCG(seed, uint64(devices)))
	pool, err := randomPool(r, devices)
	if err != nil {
		return 0, 0, err
	}
	var planner place.Planner
	took := make([]float64, 0, n)
	for range n {
		pr := randomProblem(r, 10)
		for i := range pool.Devices {
			if r.IntN(8) == 0 {
				pool.Report(i, r.Float64()*3, pool.Devices[i].Free)
			}
		}
		t := time.Now()
		if _, err := planner.Plan(pool, pr); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(t).Seconds()*1e6)
	}
	return report.Percentile(took, 99), report.Percentile(took, 50), nil
}

// placeCost is the worst ratio of the planner's cost to the best of all
// placements of 4 nodes on 5 devices; each is priced by the planner itself,
// which is told where every node must go.
func placeCost(seed uint64, cases int) (float64, error) {
	const nodes, devices = 4, 5
	r := rand.New(rand.NewPCG(seed, 4242))
	worst := 1.0
	var planner place.Planner
	for range cases {
		pool, err := randomPool(r, devices)
		if err != nil {
			return 0, err
		}
		pr := randomProblem(r, nodes)
		plan, err := planner.Plan(pool, pr)
		if err != nil {
			return 0, err
		}
		mine, best := plan.Cost, math.Inf(1)
		for code := range int(math.Pow(devices, nodes)) {
			for i, c := 0, code; i < nodes; i, c = i+1, c/devices {
				pr.Nodes[i].Required = pool.Devices[c%devices].Spec.ID
			}
			if p, err := planner.Plan(pool, pr); err == nil && p.Violation == 0 {
				best = min(best, p.Cost)
			}
		}
		worst = max(worst, mine/best)
	}
	return worst, nil
}

func randomPool(r *rand.Rand, n int) (*place.Pool, error) {
	devs := make([]place.Device, n)
	for i := range devs {
		d := &devs[i]
		s := &d.Spec
		s.ID, s.Type = fmt.Sprintf("gpu-%d", i), "GPU"
		s.Compute.FP16 = 50e12 * (1 + 9*r.Float64())
		s.Memory.VRAM, s.Memory.Bandwidth = 80e9, 0.5e12*(1+6*r.Float64())
		s.IO.Net = 12.5e9
		s.Topology.Host = fmt.Sprintf("host-%d", i/8)
		s.Topology.NVLinkDomain = fmt.Sprintf("domain-%d", i/8)
		s.Topology.Rack = fmt.Sprintf("rack-%d", i/32)
		s.Price = 1 + 4*r.Float64()
		d.Free, d.Load, d.AnyModel = 60e9, 2*r.Float64(), true
	}
	return place.NewPool(devs)
}

// randomProblem is a chain of prefills and decodes with some side branches.
func randomProblem(r *rand.Rand, n int) *place.Problem {
	pr := &place.Problem{Weights: cost.WeightsOf(cost.Chat)}
	for i := range n {
		v := place.Node{Label: fmt.Sprint("n", i), Stage: ieg.StagePrefill, Precision: "fp16", Seq: int32(1 + i/2)}
		tokens := float64(100 + r.IntN(8000))
		v.Demand = ieg.Demand{FLOPs: 1.6e10 * tokens, Bytes: 16e9, KV: int64(131e3 * tokens), Memory: int64(16e9 + 131e3*tokens)}
		if i%2 == 1 {
			v.Stage = ieg.StageDecode
			v.Demand.FLOPs, v.Demand.Bytes = 1.6e10*300, 16e9*300
		}
		v.Weights = 16e9
		pr.Nodes = append(pr.Nodes, v)
		if i > 0 {
			from := i - 1
			if i > 3 && r.IntN(4) == 0 {
				from = i - 3
			}
			pr.Edges = append(pr.Edges, ieg.Edge{From: ieg.NodeID(from), To: ieg.NodeID(i), Bytes: pr.Nodes[from].Demand.KV})
		}
	}
	return pr
}
