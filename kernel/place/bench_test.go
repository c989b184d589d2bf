package place

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/kernel/cost"

	"golang.org/x/sys/unix"
)

// fleet is a pool of devices on hosts of 8 with an NVLink domain each, 4 hosts
// a rack, four types, and a CPU a host; loads are random.
func fleet(r *rand.Rand, devices int) *Pool {
	var devs []Device
	types := []struct {
		name           string
		fp16, bw, vram float64
		price          float64
	}{{"A100", 312e12, 2e12, 80e9, 2}, {"H100", 990e12, 3.35e12, 80e9, 4}, {"L4", 121e12, 0.3e12, 24e9, 0.8}, {"L40S", 362e12, 0.864e12, 48e9, 1.2}}
	for i := range devices {
		host := i / 8
		d := Device{Load: r.ExpFloat64(), AnyModel: true}
		t := types[host%len(types)]
		d.Spec.ID, d.Spec.Type, d.Spec.Model = fmt.Sprintf("gpu-%d", i), "GPU", t.name
		if i%8 == 7 { // the host's CPU stands for its eighth device
			d.Spec.ID, d.Spec.Type, d.AnyModel = fmt.Sprintf("cpu-%d", host), "CPU", false
			d.Spec.IO.Net = 10e9
		}
		d.Free = int64(t.vram * (0.4 + 0.6*r.Float64()))
		d.Spec.Compute.FP16, d.Spec.Memory.Bandwidth, d.Spec.Price = t.fp16, t.bw, t.price
		d.Spec.Topology.Host, d.Spec.Topology.Rack = fmt.Sprintf("host-%d", host), fmt.Sprintf("rack-%d", host/4)
		d.Spec.Topology.NVLinkDomain = d.Spec.Topology.Host
		if r.IntN(4) == 0 {
			d.Hosted = []Hosted{{Model: "m8b", Resident: 16e9, Speed: cost.Speed{Base: 0.004, Seq: 0.001, Prefill: 1e-4 * r.Float64()}}}
		}
		devs = append(devs, d)
	}
	pool, err := NewPool(devs)
	if err != nil {
		panic(err)
	}
	return pool
}

// agentGraph is a 10-node graph: prefill → decode → two tools, one with
// retrieval → prefill → decode → tool → prefill → decode.
func agentGraph(r *rand.Rand, c ieg.Class) *Problem {
	stages := []ieg.Stage{ieg.StagePrefill, ieg.StageDecode, ieg.StageTool, ieg.StageTool, ieg.StageRetrieval,
		ieg.StagePrefill, ieg.StageDecode, ieg.StageTool, ieg.StagePrefill, ieg.StageDecode}
	edges := [][2]int{{0, 1}, {1, 2}, {1, 3}, {3, 4}, {2, 5}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}, {1, 5}, {6, 8}}
	pr := &Problem{Weights: cost.WeightsOf(cost.GoalOf(c)), Bound: cost.SLOOf(c).E2E}
	context := int32(500)
	for i, s := range stages {
		n := Node{Label: fmt.Sprint(i), Stage: s, Seq: 1}
		n.Work = cost.Work{Stage: s, Tokens: 100 + r.Int32N(1000), Past: context}
		switch s.Type() {
		case ieg.ComputeNode:
			n.Model, n.Precision, n.Weights = "m8b", "fp16", 16e9
			context += n.Work.Tokens
			n.Demand = ieg.Demand{FLOPs: 16e9 * float64(n.Work.Tokens), Bytes: 16e9, Memory: 16e9 + int64(context)*131072}
			if s == ieg.StageDecode {
				n.Demand.Bytes *= float64(n.Work.Tokens)
			}
		default:
			n.Demand.IO = r.Float64() * 1e8
		}
		if s == ieg.StagePrefill && c == ieg.P0 {
			n.SLA = 200 * time.Millisecond
		}
		pr.Nodes = append(pr.Nodes, n)
	}
	for _, e := range edges {
		bytes := int64(1e4)
		if stages[e[0]].Type() == ieg.ComputeNode && stages[e[1]].Type() == ieg.ComputeNode {
			bytes = int64(context) * 131072 / 2
		}
		pr.Edges = append(pr.Edges, ieg.Edge{From: ieg.NodeID(e[0]), To: ieg.NodeID(e[1]), Bytes: bytes})
	}
	return pr
}

// cpuTime is the time that this thread has had on a core: on a shared machine
// the wall clock also counts what others did.
func cpuTime(b *testing.B) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// BenchmarkPlan reports the distribution of the time of one joint placement,
// by the wall clock and on the core.
func BenchmarkPlan(b *testing.B) {
	for _, devices := range []int{8, 64, 1000} {
		for _, class := range []ieg.Class{ieg.P0, ieg.P1, ieg.P2} {
			b.Run(fmt.Sprintf("devices=%d/%v", devices, class), func(b *testing.B) {
				r := rand.New(rand.NewPCG(7, uint64(devices)))
				pool := fleet(r, devices)
				problems := make([]*Problem, 64)
				for i := range problems {
					problems[i] = agentGraph(r, class)
				}
				var pl Planner
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				var took, busy []time.Duration
				evaluated := 0
				for _, pr := range problems { // grow the working memory
					if _, err := pl.Plan(pool, pr); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					pool.Devices[i%devices].Load = r.ExpFloat64()
					start, cpu := time.Now(), cpuTime(b)
					plan, err := pl.Plan(pool, problems[i%len(problems)])
					busy, took = append(busy, cpuTime(b)-cpu), append(took, time.Since(start))
					if err != nil {
						b.Fatal(err)
					}
					evaluated += plan.Evaluated
				}
				slices.Sort(took)
				slices.Sort(busy)
				b.ReportMetric(float64(took[len(took)/2])/1e3, "p50-µs")
				b.ReportMetric(float64(took[len(took)*99/100])/1e3, "p99-µs")
				b.ReportMetric(float64(busy[len(busy)*99/100])/1e3, "p99-cpu-µs")
				b.ReportMetric(float64(evaluated)/float64(len(took)), "evaluated/op")
			})
		}
	}
}
