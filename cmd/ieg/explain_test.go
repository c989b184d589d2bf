package main

import (
	"strings"
	"testing"
	"time"

	"ieg"
)

// A fork and a join: each node is drawn once, under its last predecessor.
func TestExplainDrawsForks(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	var b strings.Builder
	printExplain(&b, ieg.Explain{
		ID: 7, Name: "chatcmpl-x", Model: "m", Class: ieg.P1, State: "running", Prompt: 40, Cached: 8,
		Nodes: []ieg.NodeExplain{
			{ID: 0, Label: "tokenize", State: ieg.NodeCompleted, Device: "host", Actual: ms(1)},
			{ID: 1, Label: "prefill", Stage: ieg.StagePrefill, State: ieg.NodeCompleted, After: []ieg.NodeID{0}, Device: "cpu", Bottleneck: "compute",
				Predicted: ms(50), Actual: ms(40), Terms: []ieg.CostTerm{{Name: "α·L", Seconds: 0.04, Note: "why"}, {Name: "β·Q"}}},
			{ID: 2, Label: "decode 0", State: ieg.NodeRunning, After: []ieg.NodeID{1}, Attempts: 2, Predicted: ms(500)},
			{ID: 3, Label: "decode 1", State: ieg.NodeReady, After: []ieg.NodeID{1}, Candidates: []string{"gpu0: 3 s"}},
			{ID: 4, Label: "output", State: ieg.NodeInit, After: []ieg.NodeID{2, 3}},
		},
		Limits: []string{"max_depth 3 of 10"},
	})
	got := b.String()
	want := `request r7  chatcmpl-x  model m  class P1  running
prompt 40 tokens (8 cached), output 0
queue –   TTFT –   worst gap –   E2E –

● 0 tokenize  COMPLETED  on host
│   actual      1.00 ms  ▊
│
● 1 prefill  COMPLETED  on cpu, bound by compute
│   cost        40.0 ms  α·L: why
│   cost              0  β·Q
│   predicted   50.0 ms  ████████████████████████████████▸
│   actual      40.0 ms  ████████████████████████████████
│
├─◑ 2 decode 0  RUNNING, attempt 2
│     predicted    500 ms  ████████████████████████████████▸
│
└─○ 3 decode 1  READY
  │   weighed   gpu0: 3 s
  │
  ○ 4 output  INIT
      also after 2

limits
  max_depth 3 of 10
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// Whatever edges a node claims, drawing ends and shows each node once.
func FuzzExplain(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 3})
	f.Fuzz(func(t *testing.T, edges []byte) {
		ex := ieg.Explain{}
		for i, e := range edges {
			if i == 40 {
				break
			}
			ex.Nodes = append(ex.Nodes, ieg.NodeExplain{ID: ieg.NodeID(i), Label: "node" + string(rune('A'+i)) + ";", State: ieg.NodeState(int(e) % 10),
				After: []ieg.NodeID{ieg.NodeID(e % 41), ieg.NodeID(e / 7)}})
		}
		var b strings.Builder
		printExplain(&b, ex)
		for _, n := range ex.Nodes {
			if strings.Count(b.String(), n.Label) != 1 {
				t.Fatalf("%s is drawn %d times:\n%s", n.Label, strings.Count(b.String(), n.Label), b.String())
			}
		}
	})
}

func TestFigures(t *testing.T) {
	for _, row := range []struct{ got, want string }{
		{span(0), "–"}, {span(1500), "2 µs"}, {span(3 * time.Millisecond), "3.00 ms"}, {span(61 * time.Millisecond), "61.0 ms"},
		{span(250 * time.Millisecond), "250 ms"}, {span(2 * time.Second), "2.00 s"}, {span(time.Hour), "1h0m0s"},
		{size(0), "0 B"}, {size(999), "999 B"}, {size(1000), "1.00 kB"}, {size(98_123_456), "98.1 MB"}, {size(999_999), "1.00 MB"},
		{scaled(5.7e14, "FLOP"), "570 TFLOP"}, {seconds(-0.5), "-500 ms"},
		{bar(1, 2, 4), "██"}, {bar(1, 1000, 4), "▏"}, {bar(5, 2, 4), "████"}, {bar(1, 0, 4), ""},
	} {
		if row.got != row.want {
			t.Errorf("%q, want %q", row.got, row.want)
		}
	}
}

func TestExplainTellsTheTiers(t *testing.T) {
	for _, row := range []struct {
		ex   ieg.Explain
		want string
	}{
		{ieg.Explain{}, "0 cached"},
		{ieg.Explain{Cached: 8, Tiers: [ieg.NumTiers]int32{8}}, "8 cached"},
		{ieg.Explain{Cached: 700, Tiers: [ieg.NumTiers]int32{0, 512, 188}}, "700 cached: 512 from host, 188 from nvme"},
		{ieg.Explain{Cached: 700, Tiers: [ieg.NumTiers]int32{100, 0, 600}}, "700 cached: 100 from device, 600 from nvme"},
	} {
		if got := cachedOf(&row.ex); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	var b strings.Builder
	printExplain(&b, ieg.Explain{KV: []string{"tokens 0 to 5 brought"}})
	if !strings.Contains(b.String(), "\nKV: tokens 0 to 5 brought\n\n") {
		t.Errorf("%q", b.String())
	}
}
