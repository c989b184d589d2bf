package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ieg"
	"ieg/api/admin"
	"ieg/cmd/ieg/node"
)

func (a *app) explainCmd() *cobra.Command {
	var watch bool
	c := a.client(&cobra.Command{
		Use: "explain [ID]", Short: "Draw the graph of a request, and why it ran so", GroupID: "look", Args: cobra.MaximumNArgs(1),
		Long: `Draw the graph of a request: each node with its state and the reason for it, its
device, what bounds it there, each term of its cost, and predicted beside actual
time. ID is the request's number as shown by 'ieg ps' (r12), or the id that its
client was given (chatcmpl-…); without it, the last request is drawn. Running requests and the last 1,000 finished ones
can be explained.`,
		Example: "  ieg explain\n  ieg explain r12\n  ieg explain r12 --watch\n  ieg explain chatcmpl-3f9a --json",
		RunE: func(c *cobra.Command, args []string) error {
			cl := a.dial()
			ex, err := cl.Explain(c.Context(), append(args, node.Last)[0])
			if err != nil {
				return err
			}
			if watch && !a.json {
				return a.watchExplain(c.Context(), cl, ex.ID.String())
			}
			if a.json {
				return a.printJSON(ex)
			}
			printExplain(a.out, ex)
			return nil
		},
	})
	c.Flags().BoolVarP(&watch, "watch", "w", false, "draw again until the request has ended")
	return c
}

func (a *app) watchExplain(ctx context.Context, cl *admin.Client, id string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	tick := time.NewTicker(WatchEvery)
	defer tick.Stop()
	for {
		ex, err := cl.Explain(ctx, id)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		over := ended(ex)
		if isTerminal(a.out) {
			fmt.Fprint(a.out, "\x1b[H\x1b[2J")
			printExplain(a.out, ex)
		} else if over {
			printExplain(a.out, ex)
		}
		if over {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// ended tells whether every node of the request has come to its end.
func ended(ex ieg.Explain) bool {
	return ex.State == "finished" && !slices.ContainsFunc(ex.Nodes, func(n ieg.NodeExplain) bool { return n.State == ieg.NodeRunning })
}

func printExplain(w io.Writer, ex ieg.Explain) {
	fmt.Fprintf(w, "request %s  %s  model %s  class %s  %s", ex.ID, ex.Name, ex.Model, ex.Class, ex.State)
	if ex.Finish != "" {
		fmt.Fprintf(w, " (%s)", ex.Finish)
	}
	fmt.Fprintf(w, "\nprompt %d tokens (%s), output %d\n", ex.Prompt, cachedOf(&ex), ex.Output)
	fmt.Fprintf(w, "queue %s   TTFT %s   worst gap %s   E2E %s\n", span(ex.Queue), span(ex.TTFT), span(ex.ITLMax), span(ex.E2E))
	if ex.Error != "" {
		fmt.Fprintf(w, "error: %s\n", ex.Error)
	}
	for _, line := range ex.KV {
		fmt.Fprintf(w, "KV: %s\n", line)
	}
	fmt.Fprintln(w)
	g := drawing{w: w, nodes: ex.Nodes}
	for _, n := range ex.Nodes {
		g.longest = max(g.longest, n.Actual)
		g.farthest = max(g.farthest, n.Predicted)
	}
	if g.longest == 0 {
		g.longest = g.farthest
	}
	g.draw()
	if len(ex.Limits) > 0 {
		fmt.Fprintf(w, "\nlimits\n  %s\n", strings.Join(ex.Limits, "\n  "))
	}
	if len(ex.Journal) > 0 {
		fmt.Fprintf(w, "\njournal\n  %s\n", strings.Join(ex.Journal, "\n  "))
	}
}

// cachedOf tells how many tokens were cached, and in which tiers if not only on
// the device. A sequence that was resumed found more than its prompt.
func cachedOf(ex *ieg.Explain) string {
	text := fmt.Sprintf("%d cached", ex.Cached)
	if ex.Tiers[ieg.TierHost]+ex.Tiers[ieg.TierNVMe] == 0 {
		return text
	}
	var parts []string
	for t, n := range ex.Tiers {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d from %s", n, ieg.Tier(t)))
		}
	}
	return text + ": " + strings.Join(parts, ", ")
}

// drawing is a graph drawn as a tree: each node hangs under its last
// predecessor; further ones are named beside it.
type drawing struct {
	w     io.Writer
	nodes []ieg.NodeExplain
	// longest is the longest actual time, which fills a bar; farthest the
	// longest prediction, which does while nothing has run.
	longest, farthest time.Duration
}

func (g *drawing) draw() {
	children := map[ieg.NodeID][]int{}
	var roots []int
	for i, n := range g.nodes {
		if p, ok := g.parent(n); ok {
			children[p] = append(children[p], i)
		} else {
			roots = append(roots, i)
		}
	}
	for _, i := range roots {
		g.node(i, "", "", children)
	}
}

// parent is the predecessor under which a node is drawn: the last one that
// comes before it, so that the tree has no cycle whatever the edges say.
func (g *drawing) parent(n ieg.NodeExplain) (ieg.NodeID, bool) {
	at := -1
	for i, p := range g.nodes {
		if p.ID == n.ID {
			break
		}
		if slices.Contains(n.After, p.ID) {
			at = i
		}
	}
	if at < 0 {
		return 0, false
	}
	return g.nodes[at].ID, true
}

var stateMarks = map[ieg.NodeState]string{
	ieg.NodeInit: "○", ieg.NodeReady: "○", ieg.NodeScheduled: "◔", ieg.NodeRunning: "◑", ieg.NodeBlocked: "◫",
	ieg.NodePreempted: "◌", ieg.NodeCompleted: "●", ieg.NodeFailed: "✗", ieg.NodeTerminal: "✗", ieg.NodeCancelled: "⊘",
}

// node draws one node and what hangs under it. A chain goes straight down; a
// fork is indented.
func (g *drawing) node(i int, first, rest string, children map[ieg.NodeID][]int) {
	n := g.nodes[i]
	below := children[n.ID]
	head := fmt.Sprintf("%s%s %d %s", first, stateMarks[n.State], n.ID, n.Label)
	if n.Label == "" {
		head += n.Stage.String()
	}
	head += "  " + n.State.String()
	if n.Reason != "" {
		head += " (" + n.Reason + ")"
	}
	if n.Device != "" {
		head += "  on " + n.Device
	}
	if n.Bottleneck != "" {
		head += ", bound by " + n.Bottleneck
	}
	if n.Attempts > 1 {
		head += fmt.Sprintf(", attempt %d", n.Attempts)
	}
	fmt.Fprintln(g.w, head)
	bar := rest + "│ "
	if len(below) == 0 {
		bar = rest + "  "
	}
	g.details(n, bar)
	for k, c := range below {
		switch {
		case len(below) == 1:
			fmt.Fprintln(g.w, rest+"│")
			g.node(c, rest, rest, children)
		case k == len(below)-1:
			fmt.Fprintln(g.w, rest+"│")
			g.node(c, rest+"└─", rest+"  ", children)
		default:
			fmt.Fprintln(g.w, rest+"│")
			g.node(c, rest+"├─", rest+"│ ", children)
		}
	}
}

func (g *drawing) details(n ieg.NodeExplain, bar string) {
	line := func(key, format string, args ...any) {
		fmt.Fprintf(g.w, "%s  %-10s%s\n", bar, key, fmt.Sprintf(format, args...))
	}
	if p, ok := g.parent(n); ok && len(n.After) > 1 {
		var also []string
		for _, id := range n.After {
			if id != p {
				also = append(also, fmt.Sprint(id))
			}
		}
		line("also after", " %s", strings.Join(also, ", "))
	}
	if n.Tokens > 0 || n.Cached > 0 {
		line("tokens", "%d, %d of them cached", n.Tokens, n.Cached)
	}
	if d := n.Demand; d.FLOPs > 0 || d.Bytes > 0 || d.IO > 0 {
		line("demand", "%s  %s moved  %s io  %s KV", scaled(d.FLOPs, "FLOP"), size(int64(d.Bytes)), size(int64(d.IO)), size(d.KV))
	}
	for _, t := range n.Terms {
		note := ""
		if t.Note != "" {
			note = ": " + t.Note
		}
		line("cost", "%9s  %s%s", seconds(t.Seconds), t.Name, note)
	}
	if n.Predicted > 0 {
		line("predicted", "%9s  %s", span(n.Predicted), barOf(n.Predicted, g.longest))
	}
	if n.Actual > 0 {
		line("actual", "%9s  %s", span(n.Actual), barOf(n.Actual, g.longest))
	}
	if len(n.Candidates) > 0 {
		line("weighed", "%s", strings.Join(n.Candidates, "; "))
	}
}

// barOf draws a time; one that is longer than the scale ends in an arrow.
func barOf(d, longest time.Duration) string {
	s := bar(float64(d), float64(longest), BarCells)
	if d > longest {
		s += "▸"
	}
	return s
}

func seconds(s float64) string {
	if s == 0 {
		return "0"
	}
	if s < 0 {
		return "-" + seconds(-s)
	}
	return span(time.Duration(s * 1e9))
}
