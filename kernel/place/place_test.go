package place

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
)

// plain copies what a plan says, so that two can be compared.
func plain(p *Plan) string {
	s := fmt.Sprintf("%.12g %.12g %d %s", p.Cost, p.Violation, p.Evaluated, p.Site)
	for _, c := range p.Choices {
		s += fmt.Sprint(c.Devices)
	}
	return s
}

// TestBudgetIsEnough places 10-node graphs on 64 devices with the default
// budget and with a hundred times as much.
func TestBudgetIsEnough(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var pl Planner
	worst, over := 0.0, 0
	const count = 300
	for i := range count {
		pool, pr := fleet(r, 64), agentGraph(r, ieg.Class(i%3))
		small, err := pl.Plan(pool, pr)
		if err != nil {
			t.Fatal(err)
		}
		if small.Evaluated > Budget {
			t.Fatalf("%d placements evaluated of %d", small.Evaluated, Budget)
		}
		cost, late := small.Cost, small.Violation
		pr.Budget = 100 * Budget
		large, err := pl.Plan(pool, pr)
		if err != nil {
			t.Fatal(err)
		}
		if late > large.Violation*1.02+1e-6 || late <= large.Violation+1e-9 && cost > large.Cost*1.02 {
			over++
			t.Logf("graph %d (%v): cost %.4f late %.4f, with a large budget %.4f, %.4f", i, ieg.Class(i%3), cost, late, large.Cost, large.Violation)
		}
		if late <= large.Violation+1e-9 {
			worst = max(worst, cost/large.Cost-1)
		}
	}
	t.Logf("worst %.2f %% above a search with a hundred times the budget, %d of %d beyond 2 %%", worst*100, over, count)
	if over > 0 {
		t.Errorf("%d of %d plans are more than 2 %% above", over, count)
	}
}

// TestRepeatable: the same pool and problem give the same plan, from a fresh
// planner, a used one, and on a pool that was encoded and decoded.
func TestRepeatable(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	var used Planner
	for i := range 30 {
		pool, pr := fleet(r, 24), agentGraph(r, ieg.Class(i%3))
		for j := range 5 {
			if err := pool.Assume(Reservation{Key: Key{Request: 1, Node: ieg.NodeID(j)}, Devices: []int32{int32(j)}, Work: time.Duration(r.Int64N(1e9)), Bytes: 1e9}); err != nil {
				t.Fatal(err)
			}
		}
		pool.SetLink(0, 3, ieg.Link{Bandwidth: 1e9, Latency: time.Millisecond})
		if err := pool.Forget(Key{Request: 1, Node: 2}); err != nil {
			t.Fatal(err)
		}
		a, err := used.Plan(pool, pr)
		if err != nil {
			t.Fatal(err)
		}
		first := plain(a)
		b, _ := new(Planner).Plan(pool, pr)
		if plain(b) != first {
			t.Fatalf("a fresh planner gives\n%s, not\n%s", plain(b), first)
		}
		var buf bytes.Buffer
		if err := gob.NewEncoder(&buf).Encode(pool); err != nil {
			t.Fatal(err)
		}
		var copied Pool
		if err := gob.NewDecoder(&buf).Decode(&copied); err != nil {
			t.Fatal(err)
		}
		c, err := used.Plan(&copied, pr)
		if err != nil || plain(c) != first {
			t.Fatalf("the decoded pool gives %v\n%s, not\n%s", err, plain(c), first)
		}
	}
}

// TestVendorsAreNotLookedAt renames all vendors; no plan changes.
func TestVendorsAreNotLookedAt(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 11))
	var pl Planner
	for i := range 20 {
		pool, pr := fleet(r, 16), agentGraph(r, ieg.Class(i%3))
		a, err := pl.Plan(pool, pr)
		if err != nil {
			t.Fatal(err)
		}
		want := plain(a)
		for j := range pool.Devices {
			pool.Devices[j].Spec.Vendor = []string{"NVIDIA", "AMD", "Intel", "Huawei"}[r.IntN(4)]
		}
		if b, _ := pl.Plan(pool, pr); plain(b) != want {
			t.Fatalf("vendors changed the plan from %s to %s", want, plain(b))
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	pool, pr := fleet(r, 64), agentGraph(r, ieg.P1)
	var pl Planner
	if n := testing.AllocsPerRun(50, func() {
		if _, err := pl.Plan(pool, pr); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%g allocations a plan", n)
	}
}

// host is this host: a CPU and one GPU, each with the model's engine measured.
func host(t *testing.T) *Pool {
	cpu := Device{Free: 8e9, Hosted: []Hosted{{Model: "smol", Resident: 98e6, Speed: cost.Speed{Base: 0.004, Seq: 0.001, Prefill: 0.002}}}}
	cpu.Spec.ID, cpu.Spec.Type = "cpu0", "CPU"
	gpu := Device{Free: 4e9, Hosted: []Hosted{{Model: "smol", Resident: 98e6, Speed: cost.Speed{Base: 0.003, Seq: 0.0001, Prefill: 1e-5}}}}
	gpu.Spec.ID, gpu.Spec.Type = "gpu0", "GPU"
	gpu.Spec.Topology.Host, cpu.Spec.Topology.Host = "here", "here"
	p, err := NewPool([]Device{cpu, gpu})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func smol() *ieg.ModelInfo {
	return &ieg.ModelInfo{Name: "smol", Quant: "Q4_1", Params: 135e6, ActiveParams: 135e6, WeightBytes: 98e6, Layers: 30, DModel: 576,
		KV: []ieg.KVGroup{{Layers: 30, KVHeads: 3, HeadDim: 64, ElemBytes: 2}}}
}

// TestFromGraph places a request's graph as it goes on: first all of it, then
// the decode whose prefill ran elsewhere.
func TestFromGraph(t *testing.T) {
	cfg := graph.DefaultConfig()
	req := &ieg.Request{ID: 4, Model: "smol", N: 2, MaxTokens: 100, Prompt: make([]ieg.Token, 2000), Deadline: ieg.Never, Tokenize: ieg.Span{Start: 1, End: 2}}
	g := graph.Build(req, smol(), &cfg, 50, 2)
	pool := host(t)
	var pr Problem
	var pl Planner
	ids := pr.FromGraph(g, smol(), cost.WeightsOf(cost.Chat), nil)
	if !slices.Equal(ids, []ieg.NodeID{1, 2, 3}) || len(pr.Edges) != 2 || pr.Nodes[0].SLA != 200*time.Millisecond {
		t.Fatalf("ids %v, edges %v, SLA %v", ids, pr.Edges, pr.Nodes[0].SLA)
	}
	if pr.Nodes[1].Seq == pr.Nodes[2].Seq {
		t.Error("two choices share a sequence")
	}
	plan, err := pl.Plan(pool, &pr)
	if err != nil {
		t.Fatal(err)
	}
	for v := range plan.Choices {
		if plan.Choices[v].Devices[0] != 1 {
			t.Errorf("%s is on device %d, not on the GPU", pr.Nodes[v].Label, plan.Choices[v].Devices[0])
		}
	}
	d := pl.Decide(0)
	if d.Device != "gpu0" || d.Bottleneck != "compute" || len(d.Candidates) == 0 || d.Predicted != 23*time.Millisecond {
		t.Errorf("decision %+v", d)
	}
	g.Schedule(1, d, 3)
	g.Run(1, 4)
	g.Complete(1, 5)
	// The GPU's queue is now long: the decode weighs its KV against the wait.
	pool.Report(1, 30, 4e9)
	ids = pr.FromGraph(g, smol(), cost.WeightsOf(cost.Chat), ids[:0])
	if len(ids) != 2 || len(pr.Nodes[0].Sources) != 1 || pr.Nodes[0].Sources[0] != (Source{"gpu0", 2000 * 23040}) {
		t.Fatalf("ids %v, sources %+v", ids, pr.Nodes[0].Sources)
	}
	plan, err = pl.Plan(pool, &pr)
	if err != nil || plan.Choices[0].Devices[0] != 0 {
		t.Errorf("the decode waits 30 s for its KV: %+v, %v", plan, err)
	}
}

// TestClassBounds: a class with an end-to-end bound pays for a shorter
// critical path, and a plan beyond it is marked or refused.
func TestClassBounds(t *testing.T) {
	slow := Device{Free: 8e9, AnyModel: true}
	slow.Spec.ID, slow.Spec.Type, slow.Spec.Compute.FP16, slow.Spec.Memory.Bandwidth, slow.Spec.Price = "slow", "GPU", 10e12, 1e12, 0.1
	fast := slow
	fast.Spec.ID, fast.Spec.Compute.FP16, fast.Spec.Price = "fast", 100e12, 40
	pool, err := NewPool([]Device{slow, fast})
	if err != nil {
		t.Fatal(err)
	}
	n := Node{Label: "prefill", Stage: ieg.StagePrefill, Model: "m", Precision: "fp16", Demand: ieg.Demand{FLOPs: 4e12}}
	pr := &Problem{Nodes: []Node{n}, Weights: cost.WeightsOf(cost.Offline)}
	var pl Planner
	name := func(p *Plan) string { return pool.Devices[p.Choices[0].Devices[0]].Spec.ID }
	if p, err := pl.Plan(pool, pr); err != nil || name(p) != "slow" {
		t.Errorf("off-line work goes to %s, %v", name(p), err)
	}
	pr.Bound = 500 * time.Millisecond
	p, err := pl.Plan(pool, pr)
	if err != nil || name(p) != "fast" || p.Violation != 0 {
		t.Errorf("with a bound it goes to %s, late %g, %v", name(p), p.Violation, err)
	}
	pr.Bound = 10 * time.Millisecond
	p, err = pl.Plan(pool, pr)
	if err != nil || name(p) != "fast" || p.Violation == 0 || pl.Decide(0).Violated == "" {
		t.Errorf("beyond the bound: %s, late %g, %v", name(p), p.Violation, err)
	}
	pr.Refuse = true
	if _, err := pl.Plan(pool, pr); !errors.Is(err, ErrMiss) {
		t.Errorf("a class that refuses gets %v", err)
	}
}

func TestProblemRefused(t *testing.T) {
	pool := host(t)
	node := Node{Label: "a", Stage: ieg.StageTool}
	var pl Planner
	for name, pr := range map[string]*Problem{
		"edge out of range": {Nodes: []Node{node}, Edges: []ieg.Edge{{From: 0, To: 1}}},
		"self edge":         {Nodes: []Node{node}, Edges: []ieg.Edge{{From: 0, To: 0}}},
		"circle":            {Nodes: []Node{node, node}, Edges: []ieg.Edge{{From: 0, To: 1}, {From: 1, To: 0}}},
		"degree":            {Nodes: []Node{{Degree: MaxDegree + 1}}},
		"too many":          {Nodes: make([]Node, MaxNodes+1)},
	} {
		if _, err := pl.Plan(pool, pr); !errors.Is(err, ErrProblem) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty, _ := NewPool(nil)
	if _, err := pl.Plan(empty, &Problem{Nodes: []Node{node}}); !errors.Is(err, ErrNoFit) {
		t.Errorf("an empty pool gives %v", err)
	}
	if p, err := pl.Plan(pool, &Problem{}); err != nil || len(p.Choices) != 0 {
		t.Errorf("an empty problem gives %v", err)
	}
}

func TestPool(t *testing.T) {
	p := host(t)
	if _, err := NewPool([]Device{p.Devices[0], p.Devices[0]}); err == nil {
		t.Error("an id used twice is accepted")
	}
	d := p.Devices[1]
	d.Spec.ID = "gpu1"
	if err := p.Set(d); err != nil {
		t.Fatal(err)
	}
	if i, ok := p.Index("gpu1"); !ok || i != 2 {
		t.Errorf("gpu1 is %d, %v", i, ok)
	}
	p.SetHosted(2, Hosted{Model: "other", Resident: 1})
	p.DropHosted(2, "smol")
	if h := p.Devices[2].Hosted; len(h) != 1 || h[0].Model != "other" {
		t.Errorf("hosted %+v", h)
	}
	group := Reservation{Key: Key{Request: 9}, Devices: []int32{0, 1}, Work: time.Second, Bytes: 5e9}
	if err := p.Assume(group); !errors.Is(err, ieg.ErrOutOfMemory) {
		t.Errorf("a group that does not fit one member gives %v", err)
	}
	if p.FreeBytes(0) != 8e9 || p.Queue(0) != 0 {
		t.Error("a refused group left a part of itself behind")
	}
	for i := range ieg.NodeID(4) {
		if err := p.Assume(Reservation{Key: Key{Request: 9, Node: i}, Devices: []int32{0}, Work: time.Second, Bytes: 1e9}); err != nil {
			t.Fatal(err)
		}
	}
	if p.Queue(0) != 4*time.Second || p.FreeBytes(0) != 4e9 {
		t.Errorf("queue %v, free %d", p.Queue(0), p.FreeBytes(0))
	}
	if n := p.ForgetRequest(9); n != 4 || p.Queue(0) != 0 || p.FreeBytes(0) != 8e9 || len(p.Reservations) != 0 {
		t.Errorf("forgot %d, queue %v, free %d", n, p.Queue(0), p.FreeBytes(0))
	}
	p.Devices[0].Penalty = 2
	p.Report(0, 3, 8e9)
	if p.Queue(0) != 6*time.Second {
		t.Errorf("a penalty of 2 makes 3 s %v", p.Queue(0))
	}
	if l := p.Link(0, 1); !reflect.DeepEqual(l, DefaultLadder.Host) {
		t.Errorf("link on one host %+v", l)
	}
}
