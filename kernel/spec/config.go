package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ieg"
	"ieg/kernel/graph"
)

// Config holds the nine blocks as values that others read.
type Config struct {
	NodeSpecs     []ieg.NodeSpec
	ResourceSpecs []ieg.ResourceSpec
	// Limits are dag_constraints and termination_policy.
	Limits           graph.Limits
	BudgetExhaustion string
	Preemption       ieg.Preemption
	// Transitions is state_transitions as given; it must equal the built-in
	// table, which is printed.
	Transitions []Transition
	KVTransfer  ieg.KVTransfer
	Profiling   ieg.ProfilingMatrix
	Paths       []ieg.ExecutionPaths
	Fallback    ieg.FallbackPolicy

	// Given lists the keys that the text set, in its order.
	Given []Given
}

// Default has the values of the specification.
func Default() Config {
	return Config{
		Limits:           graph.DefaultLimits,
		BudgetExhaustion: "abort",
		Preemption: ieg.Preemption{
			Enabled: true, MinPriorityGap: 1, Overhead: 50 * time.Millisecond, Resume: "immediate", MaxPerRequest: 3,
		},
		Transitions: builtinTransitions(),
		KVTransfer:  ieg.KVTransfer{ChunkSize: 256e6, PipelineDepth: 4, OverlapCompute: true, Compression: ieg.CompressAuto},
		Profiling: ieg.ProfilingMatrix{
			Precisions: []string{"fp16", "bf16", "int8", "fp8"},
			Batches:    []int{1, 2, 4, 8, 16, 32, 64},
			Lengths:    []int{512, 1024, 2048, 4096, 8192},
			Prefill:    slices.Clone(prefillMetrics),
			Decode:     slices.Clone(decodeMetrics),
		},
		Fallback: ieg.FallbackPolicy{Order: slices.Clone(fallbackSteps), MaxLatencyIncrease: 0.5},
	}
}

// Parse reads the blocks of a text over the defaults. extra binds further
// top-level keys of the same file. All errors carry line, column and path.
func Parse(text []byte, extra ...Field) (Config, error) {
	c := Default()
	c.Transitions = nil
	given, err := Read(text, append(c.Fields(), extra...)...)
	c.Given = given
	if err == nil {
		err = c.validate()
	}
	if c.Transitions == nil {
		c.Transitions = builtinTransitions()
	}
	return c, err
}

// String prints all blocks; Parse reads it back to the same values.
func (c *Config) String() string { return Print(c.Fields()...) }

// validate checks what goes beyond a single key.
func (c *Config) validate() error {
	errs := []error{c.checkTransitions(), c.checkIDs(), c.checkTermination()}
	for i := range c.NodeSpecs {
		s := &c.NodeSpecs[i]
		if err := finishNode(s); err != nil {
			errs = append(errs, c.at(fmt.Sprintf("node_specs[%d]", i), err.Error()))
		}
	}
	for i := range c.ResourceSpecs {
		s := &c.ResourceSpecs[i]
		if s.ID == "" {
			errs = append(errs, c.at(fmt.Sprintf("resource_specs[%d]", i), "a device needs an id"))
		}
	}
	limits := graph.Config{Limits: c.Limits, MaxRetries: graph.DefaultRetries, Blocked: graph.DefaultBlocked}
	if err := limits.Validate(); err != nil {
		errs = append(errs, c.at("dag_constraints", err.Error()))
	}
	return errors.Join(errs...)
}

// checkTermination refuses the policy in both of its places.
func (c *Config) checkTermination() error {
	var inside, beside bool
	for _, g := range c.Given {
		inside = inside || g.Path == "dag_constraints.termination_policy"
		beside = beside || g.Path == "termination_policy"
	}
	if inside && beside {
		return c.at("dag_constraints.termination_policy", "given beside dag_constraints as well; write it once")
	}
	return nil
}

func (c *Config) checkIDs() error {
	var ids []string
	for i := range c.NodeSpecs {
		if slices.Contains(ids, c.NodeSpecs[i].ID) {
			return c.at(fmt.Sprintf("node_specs[%d]", i), fmt.Sprintf("id %q is used twice", c.NodeSpecs[i].ID))
		}
		ids = append(ids, c.NodeSpecs[i].ID)
	}
	ids = ids[:0]
	for i := range c.ResourceSpecs {
		if slices.Contains(ids, c.ResourceSpecs[i].ID) {
			return c.at(fmt.Sprintf("resource_specs[%d]", i), fmt.Sprintf("id %q is used twice", c.ResourceSpecs[i].ID))
		}
		ids = append(ids, c.ResourceSpecs[i].ID)
	}
	return nil
}

// at makes an error at the first given key under a path.
func (c *Config) at(path, msg string) error {
	e := &Error{Line: 1, Column: 1, Path: path, Msg: msg}
	for _, g := range c.Given {
		if g.Path == path || strings.HasPrefix(g.Path, path+".") || strings.HasPrefix(g.Path, path+"[") {
			e.Line, e.Column = g.Line, g.Column
			break
		}
	}
	return e
}

// Overlay completes what was found of a device with what a Resource Spec of
// the same id says: every value that the spec states wins.
func Overlay(found, given ieg.ResourceSpec) ieg.ResourceSpec {
	text := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	number := func(to *float64, v float64) {
		if v != 0 {
			*to = v
		}
	}
	text(&found.Type, given.Type)
	text(&found.Vendor, given.Vendor)
	text(&found.Model, given.Model)
	text(&found.Series, given.Series)
	number(&found.Compute.FP16, given.Compute.FP16)
	number(&found.Compute.INT8, given.Compute.INT8)
	if len(given.Compute.Precisions) > 0 {
		found.Compute.Precisions = given.Compute.Precisions
	}
	if given.Memory.VRAM != 0 {
		found.Memory.VRAM = given.Memory.VRAM
	}
	number(&found.Memory.Bandwidth, given.Memory.Bandwidth)
	number(&found.IO.Read, given.IO.Read)
	number(&found.IO.Write, given.IO.Write)
	number(&found.IO.Net, given.IO.Net)
	text(&found.Interconnect.Type, given.Interconnect.Type)
	number(&found.Interconnect.Bandwidth, given.Interconnect.Bandwidth)
	text(&found.Topology.Host, given.Topology.Host)
	text(&found.Topology.NVLinkDomain, given.Topology.NVLinkDomain)
	text(&found.Topology.Rack, given.Topology.Rack)
	text(&found.Topology.Site, given.Topology.Site)
	number(&found.Price, given.Price)
	return found
}

// FreeBytes is what a Resource Spec's memory utilisation leaves.
func FreeBytes(s *ieg.ResourceSpec) int64 {
	return s.Memory.VRAM - int64(float64(s.Memory.VRAM)*s.Utilization.Memory+0.5)
}
