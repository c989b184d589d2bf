package graph

import (
	"errors"
	"fmt"
	"time"

	"ieg"
)

// ErrLimit: a limit of the graph was reached; Hit has the numbers.
var ErrLimit = errors.New("limit of the graph reached")

// Limits bound one graph that can grow (dag_constraints and
// termination_policy). Zero switches a limit off.
type Limits struct {
	// MaxDepth counts edges on the longest way from the first prefill (or
	// embed) to the output; an edge into a control node other than the output
	// is free.
	MaxDepth int
	MaxNodes int // all types
	// MaxToolCalls counts tool nodes, MaxAgentRounds generations: the first
	// is round 1.
	MaxToolCalls, MaxAgentRounds int
	// MaxTokens counts prompt and generated tokens, each once: what a later
	// round finds in the KV is not counted again.
	MaxTokens int64
	MaxKV     int64 // bytes held by the graph's sequences
	// MaxCompute is device time: a group of 4 counts four times.
	MaxCompute time.Duration

	// Timeout starts at the first admission.
	Timeout time.Duration
	// Graceful lets running nodes go on until the deadline when a limit is
	// reached; else they are cancelled at once.
	Graceful bool
}

// DefaultLimits are those of the specification for graphs that grow.
var DefaultLimits = Limits{
	MaxDepth: 10, MaxNodes: 50, MaxToolCalls: 5, MaxAgentRounds: 3,
	MaxTokens: 32768, MaxKV: 20e9, MaxCompute: 60 * time.Second,
	Timeout: 120 * time.Second, Graceful: true,
}

// Config says how graphs are built.
type Config struct {
	// Limits of graphs that can grow; a request without tools or user graph
	// has none but its model's context and max_tokens.
	Limits Limits
	// MaxRetries of a failed node.
	MaxRetries int
	// Blocked is the longest wait for a resource.
	Blocked time.Duration
}

// DefaultConfig has the defaults of the specification.
func DefaultConfig() Config {
	return Config{Limits: DefaultLimits, MaxRetries: DefaultRetries, Blocked: DefaultBlocked}
}

// Validate checks the ranges.
func (c *Config) Validate() error {
	l := &c.Limits
	switch {
	case l.MaxDepth < 0 || l.MaxNodes < 0 || l.MaxToolCalls < 0 || l.MaxAgentRounds < 0 ||
		l.MaxTokens < 0 || l.MaxKV < 0 || l.MaxCompute < 0 || l.Timeout < 0:
		return errors.New("dag_constraints: limits must not be negative (0 switches one off)")
	case l.MaxNodes > MaxNodes:
		return fmt.Errorf("dag_constraints: max_nodes %d is above %d", l.MaxNodes, MaxNodes)
	case c.MaxRetries < 0 || c.MaxRetries > 255:
		return fmt.Errorf("max_retries %d is not in 0 … 255", c.MaxRetries)
	case c.Blocked <= 0:
		return errors.New("the blocked timeout must be positive")
	}
	return nil
}

// Limit names one limit.
type Limit uint8

// The limits.
const (
	NoLimit Limit = iota
	LimitDepth
	LimitNodes
	LimitToolCalls
	LimitRounds
	LimitTokens
	LimitKV
	LimitCompute
	LimitTimeout
	LimitDeadline
)

var limitNames = [...]string{"", "max_depth", "max_nodes", "max_tool_calls", "max_agent_rounds",
	"max_token_budget", "max_kv_cache_size", "max_compute_time", "timeout", "deadline"}

// String is the limit's key in the configuration.
func (l Limit) String() string { return limitNames[l] }

// MarshalText writes the key.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads the key.
func (l *Limit) UnmarshalText(b []byte) error {
	for i, name := range limitNames {
		if name == string(b) {
			*l = Limit(i)
			return nil
		}
	}
	return fmt.Errorf("%w: limit %q is not known", ErrLimit, b)
}

// Hit is a limit with what was, or would have been, used of it. Spans are in
// nanoseconds, KV in bytes. As an error it wraps ErrLimit.
type Hit struct {
	Limit     Limit
	Used, Max int64
}

// Error is the reason shown to people.
func (h Hit) Error() string {
	show := func(v int64) string {
		switch h.Limit {
		case LimitCompute, LimitTimeout, LimitDeadline:
			return time.Duration(v).String()
		case LimitKV:
			return fmt.Sprintf("%.4g GB", float64(v)/1e9)
		}
		return fmt.Sprint(v)
	}
	if h.Limit == LimitDeadline {
		return "deadline of the request passed after " + show(h.Used)
	}
	return fmt.Sprintf("%v: %s of %s", h.Limit, show(h.Used), show(h.Max))
}

// Unwrap gives the error its identity.
func (h Hit) Unwrap() error { return ErrLimit }

// Usage is what a graph has used of its limits.
type Usage struct {
	Depth, Nodes, ToolCalls, Rounds int
	Tokens, KV                      int64
	Compute                         time.Duration
}

// Usage counts the graph as it is now.
func (g *Graph) Usage() Usage {
	u := Usage{Depth: depth(g.Nodes, g.Edges), Nodes: len(g.Nodes), KV: g.KV}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		u.Compute += n.Busy
		u.Rounds = max(u.Rounds, int(n.Round))
		switch n.Stage {
		case ieg.StagePrefill, ieg.StageDecode, ieg.StageEmbed:
			if n.Ran || n.Round <= 1 { // later rounds are expectations until they run
				u.Tokens += int64(n.Tokens)
			}
		case ieg.StageTool:
			u.ToolCalls++
		}
	}
	return u
}

// depth is the longest way from a first prefill or embed to an output, by the
// counting rule of MaxDepth.
func depth(nodes []Node, edges []ieg.Edge) int {
	var buf [64]ieg.NodeID
	sorted, _ := order(buf[:0], len(nodes), edges)
	var far [64]int16
	at := far[:0]
	if len(nodes) > len(far) {
		at = make([]int16, 0, len(nodes))
	}
	at = at[:len(nodes)]
	for i := range at {
		at[i] = -1 // not reached from a first prefill
	}
	longest := 0
	for _, id := range sorted {
		n := &nodes[id]
		if at[id] < 0 && (n.Stage == ieg.StagePrefill || n.Stage == ieg.StageEmbed) {
			at[id] = 0
		}
		if at[id] < 0 {
			continue
		}
		longest = max(longest, int(at[id]))
		for _, e := range edges {
			if e.From != id {
				continue
			}
			step := int16(1)
			if to := nodes[e.To].Stage; to.Type() == ieg.ControlNode && to != ieg.StageOutput {
				step = 0
			}
			at[e.To] = max(at[e.To], at[id]+step)
		}
	}
	return longest
}

// structural compares the counts that only growth changes.
func (l *Limits) structural(u *Usage) Hit {
	switch {
	case l.MaxToolCalls > 0 && u.ToolCalls > l.MaxToolCalls:
		return Hit{LimitToolCalls, int64(u.ToolCalls), int64(l.MaxToolCalls)}
	case l.MaxAgentRounds > 0 && u.Rounds > l.MaxAgentRounds:
		return Hit{LimitRounds, int64(u.Rounds), int64(l.MaxAgentRounds)}
	case l.MaxNodes > 0 && u.Nodes > l.MaxNodes:
		return Hit{LimitNodes, int64(u.Nodes), int64(l.MaxNodes)}
	case l.MaxDepth > 0 && u.Depth > l.MaxDepth:
		return Hit{LimitDepth, int64(u.Depth), int64(l.MaxDepth)}
	}
	return Hit{}
}
