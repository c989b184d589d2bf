package place

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/spec"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs the stories in testdata:
//
//	devices    resource_specs as YAML: a new pool
//	set        DEVICE load=SECONDS hosted=MODEL:RESIDENT down penalty=X
//	link       from=A to=B bandwidth=2GB/s latency=1ms
//	assume | confirm | forget   node=N device=A seconds=S bytes=40GB
//	plan       class=P0 [edges=a>b:1GB+b>c:2GB] [weights=MODEL:35GB] [refuse] [bound=5s]
//	           node_specs as YAML: places them and explains
//	pool       loads and free memory
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t, s.d = t, d
			switch d.Cmd {
			case "devices":
				return s.devices()
			case "set":
				return s.set()
			case "link":
				a, b := s.device("from"), s.device("to")
				bw, err := spec.ParseRate(s.arg("bandwidth"))
				s.fatal(err)
				s.pool.SetLink(a, b, ieg.Link{Bandwidth: bw, Latency: s.span("latency")})
				return ""
			case "assume":
				bytes, err := spec.ParseBytes(s.arg("bytes"))
				s.fatal(err)
				return s.said(s.pool.Assume(Reservation{Key: s.key(), Devices: []int32{int32(s.device("device"))}, Work: s.span("work"), Bytes: bytes}))
			case "confirm":
				return s.said(s.pool.Confirm(s.key()))
			case "forget":
				return s.said(s.pool.Forget(s.key()))
			case "pool":
				return s.loads()
			case "plan":
				return s.plan()
			}
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		})
	})
}

type story struct {
	t    *testing.T
	d    *datadriven.TestData
	pool *Pool
	pl   Planner
}

func (s *story) fatal(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.d.Pos, err)
	}
}

func (s *story) said(err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	return s.loads()
}

func (s *story) arg(key string) string {
	var v string
	s.d.MaybeScanArgs(s.t, key, &v)
	return v
}

func (s *story) span(key string) time.Duration {
	text := s.arg(key)
	if text == "" {
		return 0
	}
	d, err := spec.ParseSpan(text)
	s.fatal(err)
	return d
}

func (s *story) device(key string) int {
	i, found := s.pool.Index(s.arg(key))
	if !found {
		s.t.Fatalf("%s: no device %q", s.d.Pos, s.arg(key))
	}
	return i
}

func (s *story) key() Key {
	var n int
	s.d.MaybeScanArgs(s.t, "node", &n)
	return Key{Request: 1, Node: ieg.NodeID(n)}
}

func (s *story) devices() string {
	c, err := spec.Parse([]byte("resource_specs:\n" + s.d.Input))
	s.fatal(err)
	var devs []Device
	for _, r := range c.ResourceSpecs {
		devs = append(devs, Device{Spec: r, Free: spec.FreeBytes(&r), AnyModel: r.Type != "CPU"})
	}
	s.pool, err = NewPool(devs)
	s.fatal(err)
	return s.loads()
}

func (s *story) loads() string {
	var out strings.Builder
	for i := range s.pool.Devices {
		fmt.Fprintf(&out, "%-12s Q %-8v free %s\n", s.pool.Devices[i].Spec.ID, s.pool.Queue(i), spec.FormatBytes(s.pool.FreeBytes(i)))
	}
	return out.String()
}

func (s *story) set() string {
	i := s.device("device")
	d := &s.pool.Devices[i]
	if load := s.span("load"); load > 0 {
		s.pool.Report(i, load.Seconds(), d.Free)
	}
	if h := s.arg("hosted"); h != "" {
		model, size, _ := strings.Cut(h, ":")
		resident, err := spec.ParseBytes(size)
		s.fatal(err)
		s.pool.SetHosted(i, Hosted{Model: model, Resident: resident})
	}
	if s.d.HasArg("only-hosted") {
		d.AnyModel = false
		s.fatal(s.pool.Set(*d))
	}
	s.pool.SetDown(i, s.d.HasArg("down"))
	return s.loads()
}

func (s *story) plan() string {
	c, err := spec.Parse([]byte("node_specs:\n" + s.d.Input))
	s.fatal(err)
	class := map[string]ieg.Class{"P0": ieg.P0, "P1": ieg.P1, "P2": ieg.P2, "": ieg.P0}[s.arg("class")]
	pr := &Problem{Weights: cost.WeightsOf(cost.GoalOf(class)), Bound: s.span("bound"), Refuse: s.d.HasArg("refuse"), Site: s.arg("site")}
	index := map[string]int{}
	for i := range c.NodeSpecs {
		var weights int64
		model, size, _ := strings.Cut(s.arg("weights"), ":")
		if model != "" && model == c.NodeSpecs[i].Model {
			weights, err = spec.ParseBytes(size)
			s.fatal(err)
		}
		index[c.NodeSpecs[i].ID] = i
		pr.Nodes = append(pr.Nodes, FromSpec(&c.NodeSpecs[i], weights))
	}
	for e := range strings.SplitSeq(s.arg("edges"), "+") {
		ends, size, found := strings.Cut(e, ":")
		if !found {
			continue
		}
		from, to, _ := strings.Cut(ends, ">")
		bytes, err := spec.ParseBytes(size)
		s.fatal(err)
		pr.Edges = append(pr.Edges, ieg.Edge{From: ieg.NodeID(index[from]), To: ieg.NodeID(index[to]), Bytes: bytes})
	}
	plan, err := s.pl.Plan(s.pool, pr)
	if err != nil {
		return err.Error() + "\n"
	}
	return s.explain(plan, pr)
}

func (s *story) explain(plan *Plan, pr *Problem) string {
	var out strings.Builder
	fmt.Fprintf(&out, "cost %s", cost.Seconds(plan.Cost))
	if plan.Violation > 0 {
		fmt.Fprintf(&out, ", late by %s", cost.Seconds(plan.Violation))
	}
	out.WriteString("\n")
	for v := range pr.Nodes {
		d := s.pl.Decide(v)
		where := d.Device
		if len(d.Members) > 0 {
			where = fmt.Sprint(d.Members)
		}
		fmt.Fprintf(&out, "%s → %s, bound by %s\n", pr.Nodes[v].Label, where, d.Bottleneck)
		for _, term := range d.Terms {
			fmt.Fprintf(&out, "  %-18s %-9s %s\n", term.Name, cost.Seconds(term.Seconds), term.Note)
		}
		for _, c := range d.Candidates {
			fmt.Fprintf(&out, "  weighed: %s\n", c)
		}
		if d.Violated != "" {
			fmt.Fprintf(&out, "  violated: %s\n", d.Violated)
		}
	}
	return out.String()
}
