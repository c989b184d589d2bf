package graph

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ieg"

	"github.com/cockroachdb/datadriven"
)

// smol is SmolLM2-135M: 30 layers, 3 KV heads of 64, f16.
func smol() *ieg.ModelInfo {
	return &ieg.ModelInfo{
		Name: "smol", Quant: "Q4_1", Params: 135e6, ActiveParams: 135e6, WeightBytes: 98e6, Layers: 30, DModel: 576,
		KV: []ieg.KVGroup{{Layers: 30, KVHeads: 3, HeadDim: 64, ElemBytes: 2}},
	}
}

// story is one graph that the commands of a script act on. Times are
// milliseconds since the start; "at=N" moves the clock.
type story struct {
	t   *testing.T
	g   *Graph
	cfg Config
	now ieg.Time
}

// TestScripts runs the stories in testdata:
//
//	build   prompt= max= [n=] [tools=a,b] [embed] [expect=] [deadline=]
//	limits  key=value …   for the graphs built afterwards
//	do      one action a line; see act
//	show | order | history | usage
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{t: t, cfg: DefaultConfig()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			var at int
			if d.MaybeScanArgs(t, "at", &at); at > 0 {
				s.now = ms(at)
			}
			switch d.Cmd {
			case "build":
				s.build(d)
				return s.show()
			case "limits":
				s.limits(d)
				return ""
			case "do":
				return s.do(d.Input)
			case "show":
				return s.show()
			case "history":
				return strings.Join(s.g.History(), "\n") + "\n"
			case "usage":
				return strings.Join(s.g.LimitsText(), "\n") + "\n"
			case "order":
				var labels []string
				for _, id := range s.g.Order(nil) {
					labels = append(labels, s.g.Nodes[id].Label())
				}
				return strings.Join(labels, " ") + "\n"
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

func ms(n int) ieg.Time { return ieg.Time(n) * ieg.Time(time.Millisecond) }

func (s *story) build(d *datadriven.TestData) {
	req := &ieg.Request{ID: 1, Model: "smol", N: 1, MaxTokens: 64, Deadline: ieg.Never}
	var prompt, most, n, expect, deadline int
	var tools string
	d.MaybeScanArgs(s.t, "prompt", &prompt)
	d.MaybeScanArgs(s.t, "expect", &expect)
	d.MaybeScanArgs(s.t, "tools", &tools)
	if d.MaybeScanArgs(s.t, "max", &most); most > 0 {
		req.MaxTokens = int32(most)
	}
	if d.MaybeScanArgs(s.t, "n", &n); n > 0 {
		req.N = n
	}
	if d.MaybeScanArgs(s.t, "deadline", &deadline); deadline > 0 {
		req.Deadline = ms(deadline)
	}
	if tools != "" {
		req.Tools = strings.Split(tools, "+")
	}
	if d.HasArg("embed") {
		req.Kind = ieg.Embed
	}
	req.Prompt = make([]ieg.Token, prompt)
	req.Tokenize = ieg.Span{Start: s.now, End: s.now.Add(time.Millisecond)}
	s.now = s.now.Add(time.Millisecond)
	s.g = Build(req, smol(), &s.cfg, int32(expect), s.now)
}

func (s *story) limits(d *datadriven.TestData) {
	l := &s.cfg.Limits
	var v int
	for key, to := range map[string]*int{"depth": &l.MaxDepth, "nodes": &l.MaxNodes, "tool-calls": &l.MaxToolCalls, "rounds": &l.MaxAgentRounds} {
		d.MaybeScanArgs(s.t, key, to)
	}
	if d.MaybeScanArgs(s.t, "tokens", &v) {
		l.MaxTokens = int64(v)
	}
	if d.MaybeScanArgs(s.t, "compute", &v) {
		l.MaxCompute = time.Duration(ms(v))
	}
	if d.MaybeScanArgs(s.t, "timeout", &v) {
		l.Timeout = time.Duration(ms(v))
	}
	if d.HasArg("abrupt") {
		l.Graceful = false
	}
}

// do runs one action a line and prints what it answered, or its error.
func (s *story) do(input string) string {
	var out strings.Builder
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		if answer := s.act(words[0], words[1:]); answer != "" {
			fmt.Fprintf(&out, "%s: %s\n", strings.TrimSpace(line), answer)
		}
	}
	return out.String() + s.show()
}

// id finds a node by label; the newest of several.
func (s *story) id(label string) ieg.NodeID {
	for i := len(s.g.Nodes) - 1; i >= 0; i-- {
		if s.g.Nodes[i].Label() == label {
			return ieg.NodeID(i)
		}
	}
	s.t.Fatalf("no node %q", label)
	return -1
}

func (s *story) labels(ids []ieg.NodeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = s.g.Nodes[id].Label()
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, " ")
}

// act performs one action; a panic of the state machine becomes the answer.
func (s *story) act(verb string, args []string) (answer string) {
	defer func() {
		if p := recover(); p != nil {
			answer = fmt.Sprintf("panic: %v", p)
		}
	}()
	g := s.g
	switch verb {
	case "at":
		var n int
		fmt.Sscan(args[0], &n)
		s.now = ms(n)
	case "ready":
		return s.labels(g.Ready(nil))
	case "admit":
		g.Admit(s.now)
	case "schedule":
		d := &ieg.Decision{Device: args[1]}
		if len(args) > 2 {
			fmt.Sscan(args[2], (*millis)(&d.Predicted))
		}
		g.Schedule(s.id(args[0]), d, s.now)
	case "run":
		g.Run(s.id(args[0]), s.now)
	case "start": // schedule and run
		g.Schedule(s.id(args[0]), &ieg.Decision{Device: "gpu0"}, s.now)
		g.Run(s.id(args[0]), s.now)
	case "complete":
		g.Complete(s.id(args[0]), s.now)
	case "pass":
		g.Pass(s.id(args[0]), "host", ieg.Span{Start: s.now, End: s.now.Add(time.Millisecond)})
	case "block":
		g.Block(s.id(args[0]), s.now)
	case "unblock":
		g.Unblock(s.id(args[0]), nil, s.now)
	case "moved":
		g.Unblock(s.id(args[0]), &ieg.Decision{Device: args[1]}, s.now)
	case "preempt":
		g.Preempt(s.id(args[0]), s.now)
	case "requeue":
		g.Requeue(s.id(args[0]), args[1] == "saved", s.now)
	case "refuse":
		g.Unschedule(s.id(args[0]), Refused, s.now)
	case "device-lost":
		g.Unschedule(s.id(args[0]), DeviceLost, s.now)
	case "fail":
		return fmt.Sprint("retry ", g.Fail(s.id(args[0]), "engine lost", len(args) < 2, s.now))
	case "reexecute":
		var lost []ieg.NodeID
		for _, l := range args[1:] {
			lost = append(lost, s.id(l))
		}
		return s.labels(g.Reexecute(nil, s.id(args[0]), lost, s.now))
	case "deviates":
		return fmt.Sprint(g.Deviates(s.id(args[0]), s.now))
	case "replan":
		return s.labels(g.Replan(nil, s.now))
	case "expire":
		return s.labels(g.Expire(nil, s.now))
	case "next":
		return fmt.Sprint(time.Duration(g.Next()))
	case "call":
		return s.call(args)
	case "tokens":
		var n, cached int32
		fmt.Sscan(args[1], &n)
		if len(args) > 2 {
			fmt.Sscan(args[2], &cached)
		}
		g.SetTokens(s.id(args[0]), n, cached)
	case "charge":
		var sec float64
		fmt.Sscan(args[1], &sec)
		g.Charge(s.id(args[0]), sec)
	case "check":
		if hit := g.Check(s.now); hit.Limit != NoLimit {
			return hit.Error()
		}
		return "within limits"
	case "stop":
		return "stop the work of " + s.labels(g.Stop(nil, g.Check(s.now), s.now))
	case "cancel":
		g.Cancel("client went away", s.now)
	case "cancel-node":
		g.CancelNode(s.id(args[0]), "choice cancelled", s.now)
	default:
		s.t.Fatalf("unknown action %q", verb)
	}
	return ""
}

// call grows the graph: call DECODE CONTEXT tool[+docs] …
func (s *story) call(args []string) string {
	var context int32
	fmt.Sscan(args[1], &context)
	var calls []Call
	for _, a := range args[2:] {
		tool, docs := strings.CutSuffix(a, "+docs")
		calls = append(calls, Call{Tool: tool, Retrieval: docs})
	}
	ids, err := s.g.GrowTools(s.id(args[0]), calls, smol(), context, s.now)
	if err != nil {
		return err.Error()
	}
	return "added " + s.labels(ids)
}

type millis time.Duration

func (m *millis) Scan(st fmt.ScanState, _ rune) error {
	var n int64
	_, err := fmt.Fscan(st, &n)
	*m = millis(n * int64(time.Millisecond))
	return err
}

// show prints the graph, one node a line in topological order.
func (s *story) show() string {
	var out strings.Builder
	for _, x := range s.g.Explain(s.now) {
		n := s.g.Node(x.ID)
		var after []string
		for _, id := range x.After {
			after = append(after, s.g.Nodes[id].Label())
		}
		line := fmt.Sprintf("%d %-12s %-9s %s", x.ID, x.Label, x.State, x.Reason)
		if len(after) > 0 {
			line += " ← " + strings.Join(after, ", ")
		}
		if x.Device != "" {
			line += " on " + x.Device
		}
		if x.Actual > 0 {
			line += fmt.Sprintf(" %v", x.Actual)
		}
		if x.Tokens > 0 {
			line += fmt.Sprintf(" tokens %d/%d", x.Tokens, x.Cached)
		}
		if x.Attempts > 1 {
			line += fmt.Sprintf(" attempt %d", x.Attempts)
		}
		if n.Epoch > 0 {
			line += fmt.Sprintf(" epoch %d", n.Epoch)
		}
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}
