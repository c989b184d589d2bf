package graph

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ieg"
)

// TestArrows compares the table with the specification's text, and tries all
// pairs of states: what the text does not allow is refused, and panics.
func TestArrows(t *testing.T) {
	want := map[string]bool{}
	for _, a := range strings.Fields(`
		INIT>READY READY>SCHEDULED SCHEDULED>RUNNING RUNNING>COMPLETED
		RUNNING>BLOCKED BLOCKED>RUNNING BLOCKED>FAILED RUNNING>PREEMPTED PREEMPTED>READY
		RUNNING>FAILED FAILED>READY FAILED>TERMINAL
		INIT>CANCELLED READY>CANCELLED SCHEDULED>CANCELLED RUNNING>CANCELLED BLOCKED>CANCELLED
		PREEMPTED>CANCELLED FAILED>CANCELLED
		SCHEDULED>READY SCHEDULED>FAILED BLOCKED>PREEMPTED COMPLETED>READY`) {
		want[a] = true
	}
	if len(Arrows()) != len(want) {
		t.Errorf("%d arrows in the table, %d in the text", len(Arrows()), len(want))
	}
	for from := ieg.NodeInit; from <= ieg.NodeCancelled; from++ {
		for to := ieg.NodeInit; to <= ieg.NodeCancelled; to++ {
			name := fmt.Sprintf("%v>%v", from, to)
			any := false
			for guard := range numGuards {
				any = any || Allowed(from, to, guard)
			}
			if any != want[name] {
				t.Errorf("%s: allowed %v, in the text %v", name, any, want[name])
			}
			for guard := range numGuards {
				if Allowed(from, to, guard) {
					continue
				}
				g := Build(&ieg.Request{ID: 7, N: 1, MaxTokens: 4, Deadline: ieg.Never}, smol(), &Config{MaxRetries: 3}, 0, 1)
				g.Nodes[2].State = from
				before := g.Clone()
				if err := g.Try(2, to, guard, 5); !errors.Is(err, ErrArrow) {
					t.Fatalf("%s by %q: error %v", name, guard, err)
				}
				if !reflect.DeepEqual(before, g) {
					t.Fatalf("%s by %q changed the graph although it was refused", name, guard)
				}
				if !panics(func() { g.Transition(2, to, guard, 5) }) {
					t.Fatalf("%s by %q did not panic", name, guard)
				}
			}
		}
	}
	for guard := Guard(1); guard < numGuards; guard++ {
		var back Guard
		if text, _ := guard.MarshalText(); back.UnmarshalText(text) != nil || back != guard {
			t.Errorf("guard %q does not read back", guard)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// agent is a graph in the middle of its second round.
func agent(t testing.TB) *Graph {
	cfg := DefaultConfig()
	req := &ieg.Request{
		ID: 3, Model: "smol", N: 1, MaxTokens: 100, Prompt: make([]ieg.Token, 50), Tools: []string{"a", "b"},
		Deadline: ieg.Never, Tokenize: ieg.Span{Start: 10, End: 20},
	}
	g := Build(req, smol(), &cfg, 30, 20)
	g.Admit(30)
	for _, id := range []ieg.NodeID{1, 2} {
		g.Schedule(id, &ieg.Decision{Device: "gpu0", Predicted: time.Second, Terms: []ieg.CostTerm{{Name: "α·L", Seconds: 1}}}, 30)
		g.Run(id, 40)
		g.Complete(id, 50)
	}
	if _, err := g.GrowTools(2, []Call{{Tool: "a"}, {Tool: "b", Retrieval: true}}, smol(), 80, 60); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestEncoding(t *testing.T) {
	g := agent(t)
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(g); err != nil {
		t.Fatal(err)
	}
	var viaGob Graph
	if err := gob.NewDecoder(&buf).Decode(&viaGob); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var viaJSON Graph
	if err := json.Unmarshal(text, &viaJSON); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*Graph{"gob": &viaGob, "json": &viaJSON} {
		if !reflect.DeepEqual(g, got) {
			t.Errorf("%s changed the graph:\n%+v\n%+v", name, g, got)
		}
	}
}

func TestCloneIsIndependent(t *testing.T) {
	g := agent(t)
	c := g.Clone()
	if !reflect.DeepEqual(g, c) {
		t.Fatal("the clone differs")
	}
	before, _ := json.Marshal(g)
	c.Schedule(c.Ready(nil)[0], &ieg.Decision{Device: "cpu0"}, 70)
	c.Cancel("x", 80)
	c.Edges[0].Bytes = 1
	if after, _ := json.Marshal(g); !bytes.Equal(before, after) {
		t.Error("changing the clone changed the graph")
	}
}

// TestBranchAndJoin runs a user's graph: of two ways only one is taken, the
// join waits for that one only.
func TestBranchAndJoin(t *testing.T) {
	specs := []ieg.NodeSpec{
		{ID: "ask", Stage: ieg.StagePrefill}, {ID: "route", Stage: ieg.StageBranch},
		{ID: "search", Stage: ieg.StageTool}, {ID: "read", Stage: ieg.StageRetrieval},
		{ID: "think", Stage: ieg.StageDecode}, {ID: "meet", Stage: ieg.StageJoin}, {ID: "out", Stage: ieg.StageOutput},
	}
	edges := []SpecEdge{{From: "ask", To: "route"}, {From: "route", To: "search"}, {From: "search", To: "read"},
		{From: "route", To: "think"}, {From: "read", To: "meet"}, {From: "think", To: "meet"}, {From: "meet", To: "out"}}
	cfg := DefaultConfig()
	g, err := FromSpecs(1, ieg.P1, specs, edges, &cfg, ieg.Never, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func(id ieg.NodeID) {
		g.Schedule(id, &ieg.Decision{Device: "d"}, 2)
		g.Run(id, 2)
	}
	run(0)
	g.Complete(0, 3)
	run(1)
	g.Take(1, []ieg.NodeID{4}, 4)
	var states []string
	for i := range g.Nodes {
		states = append(states, g.Nodes[i].State.String())
	}
	want := []string{"COMPLETED", "COMPLETED", "CANCELLED", "CANCELLED", "READY", "INIT", "INIT"}
	if !slices.Equal(states, want) {
		t.Fatalf("after the branch %v, want %v", states, want)
	}
	if g.Nodes[3].Guard != BranchNotTaken {
		t.Errorf("read was cancelled by %v", g.Nodes[3].Guard)
	}
	run(4)
	g.Complete(4, 5)
	if ready := g.Ready(nil); !slices.Equal(ready, []ieg.NodeID{5}) {
		t.Errorf("ready %v, want the join", ready)
	}
	g.Pass(5, "host", ieg.Span{Start: 5, End: 6})
	g.Pass(6, "host", ieg.Span{Start: 6, End: 7})
	if !g.Done() {
		t.Error("the graph is not done")
	}
	if s := g.Spec(4); s.ID != "think" {
		t.Errorf("spec of node 4 is %q", s.ID)
	}
}

func TestUserGraphRefused(t *testing.T) {
	cfg := DefaultConfig()
	chain := func(n int) (specs []ieg.NodeSpec, edges []SpecEdge) {
		for i := range n {
			specs = append(specs, ieg.NodeSpec{ID: fmt.Sprint(i), Stage: ieg.StageDecode})
			if i > 0 {
				edges = append(edges, SpecEdge{From: fmt.Sprint(i - 1), To: fmt.Sprint(i)})
			}
		}
		return specs, edges
	}
	three, line := chain(3)
	many, long := chain(60)
	for _, c := range []struct {
		name  string
		specs []ieg.NodeSpec
		edges []SpecEdge
		want  error
	}{
		{"circle", three, append(slices.Clone(line), SpecEdge{From: "2", To: "0"}), ErrCycle},
		{"self", three, []SpecEdge{{From: "1", To: "1"}}, ErrCycle},
		{"unknown end", three, []SpecEdge{{From: "1", To: "x"}}, ErrSpec},
		{"id twice", append(slices.Clone(three), three[0]), nil, ErrSpec},
		{"too many", many, long, ErrLimit},
	} {
		if _, err := FromSpecs(1, ieg.P2, c.specs, c.edges, &cfg, ieg.Never, 1); !errors.Is(err, c.want) || !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestConnectRefusesCircles(t *testing.T) {
	g := agent(t)
	last := ieg.NodeID(len(g.Nodes) - 1)
	if err := g.Connect(ieg.Edge{From: last, To: last - 1}); !errors.Is(err, ErrCycle) {
		t.Errorf("an edge back gives %v", err)
	}
	edges := len(g.Edges)
	if err := g.Connect(ieg.Edge{From: 1, To: last}); err != nil || len(g.Edges) != edges+1 {
		t.Errorf("an edge forward gives %v", err)
	}
}

func TestDemands(t *testing.T) {
	g := Build(&ieg.Request{Prompt: make([]ieg.Token, 1000), N: 1, MaxTokens: 200, Deadline: ieg.Never}, smol(), &Config{MaxRetries: 3}, 50, 1)
	prefill, decode := g.Find(ieg.StagePrefill, -1), g.Find(ieg.StageDecode, 0)
	if want := 2 * 135e6 * 1000.0; prefill.Demand.FLOPs != want {
		t.Errorf("prefill %g FLOPs, want %g", prefill.Demand.FLOPs, want)
	}
	if want := int64(23040 * 1000); prefill.Demand.KV != want || g.Edges[1].Bytes != want {
		t.Errorf("prefill KV %d, δ %d, want %d", prefill.Demand.KV, g.Edges[1].Bytes, want)
	}
	if want := int64(23040 * 1050); decode.Demand.KV != want {
		t.Errorf("decode KV %d, want %d for 50 expected tokens", decode.Demand.KV, want)
	}
	prefill.Cached = 600
	if w := prefill.Work(); w.Tokens != 400 || w.Past != 600 {
		t.Errorf("work with 600 cached is %+v", w)
	}
	s := g.Spec(prefill.ID)
	if s.Priority != "high" || s.Memory.KVCache != 23040*1000 || s.Compute.Precision != "Q4_1" {
		t.Errorf("node spec %+v", s)
	}
}

// TestRandomLives drives graphs by random actions and checks after each what
// must hold whatever happens.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := DefaultConfig()
		cfg.Limits.MaxTokens = 2000
		req := &ieg.Request{ID: 1, N: 1 + r.IntN(3), MaxTokens: 50, Prompt: make([]ieg.Token, 1+r.IntN(900)), Deadline: ieg.Never, Tokenize: ieg.Span{Start: 1, End: 1}}
		if r.IntN(2) == 0 {
			req.Tools = []string{"a"}
		}
		now := ieg.Time(1)
		g := Build(req, smol(), &cfg, 20, now)
		g.Admit(now)
		for range 300 {
			now = now.Add(time.Duration(r.IntN(2e9)))
			randomAction(g, r, now)
			check(t, g, seed)
			if g.Done() {
				break
			}
		}
		if !g.Done() {
			g.Cancel("end", now)
		}
		if !g.Done() || g.Next() != ieg.Never {
			t.Fatalf("seed %d: after a cancel the graph is not done", seed)
		}
	}
}

func randomAction(g *Graph, r *rand.Rand, now ieg.Time) {
	if hit := g.Check(now); hit.Limit != NoLimit {
		g.Stop(nil, hit, now)
	}
	g.Expire(nil, now)
	n := &g.Nodes[r.IntN(len(g.Nodes))]
	switch n.State {
	case ieg.NodeReady:
		if slices.Contains(g.Ready(nil), n.ID) {
			g.Schedule(n.ID, &ieg.Decision{Device: "d", Predicted: time.Second}, now)
		}
	case ieg.NodeScheduled:
		switch r.IntN(6) {
		case 0:
			g.Unschedule(n.ID, Refused, now)
		case 1:
			g.Fail(n.ID, "x", true, now)
		default:
			g.Run(n.ID, now)
		}
	case ieg.NodeRunning:
		switch r.IntN(9) {
		case 0:
			g.Block(n.ID, now)
		case 1:
			g.Preempt(n.ID, now)
		case 2:
			if g.Fail(n.ID, "x", r.IntN(8) > 0, now) {
				g.Reexecute(nil, n.ID, g.Before(nil, n.ID), now)
			}
		case 3:
			g.GrowTools(n.ID, []Call{{Tool: "a", Retrieval: r.IntN(2) == 0}}, smol(), 100, now)
		default:
			g.SetTokens(n.ID, n.Tokens+r.Int32N(30), 0)
			g.Complete(n.ID, now)
		}
	case ieg.NodeBlocked:
		g.Unblock(n.ID, nil, now)
	case ieg.NodePreempted:
		g.Requeue(n.ID, r.IntN(2) == 0, now)
	}
}

func check(t *testing.T, g *Graph, seed uint64) {
	t.Helper()
	if len(g.Order(nil)) != len(g.Nodes) {
		t.Fatalf("seed %d: order is incomplete", seed)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		in := g.satisfied(n)
		switch {
		case n.State == ieg.NodeInit && in == inputsDone:
			t.Fatalf("seed %d: %s waits although its inputs are there", seed, n.Label())
		case n.State == ieg.NodeInit && in != inputsOpen:
			t.Fatalf("seed %d: %s waits for what never comes", seed, n.Label())
		case n.State == ieg.NodeRunning && in == inputsDead:
			t.Fatalf("seed %d: %s runs without its input", seed, n.Label())
		case n.Retries > g.Retries:
			t.Fatalf("seed %d: %s was retried %d times", seed, n.Label(), n.Retries)
		case n.State.Final() != (n.End != 0):
			t.Fatalf("seed %d: %s is %v with end %d", seed, n.Label(), n.State, n.End)
		}
	}
	// Someone must be able to act unless the graph is done.
	active := len(g.Ready(nil)) > 0
	for i := range g.Nodes {
		active = active || g.Nodes[i].Active() || g.Nodes[i].State == ieg.NodePreempted
	}
	if !active && !g.Done() {
		t.Fatalf("seed %d: nothing can happen any more\n%s", seed, strings.Join(g.History(), "\n"))
	}
	if len(g.Journal) > JournalChanges {
		t.Fatalf("seed %d: journal of %d", seed, len(g.Journal))
	}
}

func TestJournalIsBounded(t *testing.T) {
	g := agent(t)
	for i := range ieg.Time(1000) {
		id := g.Ready(nil)[0]
		g.Schedule(id, &ieg.Decision{}, 100+i)
		g.Unschedule(id, Replanned, 100+i)
	}
	if len(g.Journal) != JournalChanges || g.Dropped < 1700 || !strings.Contains(g.History()[0], "not kept") {
		t.Errorf("journal of %d, %d dropped", len(g.Journal), g.Dropped)
	}
}

func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for i, spoil := range []func(*Config){
		func(c *Config) { c.Limits.MaxNodes = MaxNodes + 1 },
		func(c *Config) { c.Limits.Timeout = -1 },
		func(c *Config) { c.MaxRetries = 256 },
		func(c *Config) { c.Blocked = 0 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("case %d is accepted", i)
		}
	}
}

// BenchmarkBuild makes the graph of a plain chat; the bound is 5 µs and 2 KB.
func BenchmarkBuild(b *testing.B) {
	cfg := DefaultConfig()
	m := smol()
	req := &ieg.Request{ID: 1, N: 1, MaxTokens: 100, Prompt: make([]ieg.Token, 500), Deadline: ieg.Never}
	b.ReportAllocs()
	for b.Loop() {
		Build(req, m, &cfg, 50, 1)
	}
}

// BenchmarkLife runs a plain chat from arrival to delivery.
func BenchmarkLife(b *testing.B) {
	cfg := DefaultConfig()
	m := smol()
	req := &ieg.Request{ID: 1, N: 1, MaxTokens: 100, Prompt: make([]ieg.Token, 500), Deadline: ieg.Never}
	d := &ieg.Decision{Device: "cpu0"}
	b.ReportAllocs()
	for b.Loop() {
		g := Build(req, m, &cfg, 50, 1)
		for _, id := range [...]ieg.NodeID{1, 2} {
			g.Schedule(id, d, 2)
			g.Run(id, 3)
			g.Complete(id, 4)
		}
		g.Pass(3, "host", ieg.Span{Start: 5, End: 6})
	}
}

func BenchmarkClone(b *testing.B) {
	g := agent(b)
	b.ReportAllocs()
	for b.Loop() {
		g.Clone()
	}
}
