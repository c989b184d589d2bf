package spec

import (
	"errors"
	"strings"
)

// part is one entry of the register of what is built.
type part struct {
	path    string
	missing string // the part that is not built; "": it is
}

// register says for each block, and for keys where they differ from their
// block, whether the part that they configure is built. Whoever builds a part
// empties its text here.
var register = []part{
	{"node_specs", "user graphs at the door"},
	{"resource_specs", ""},
	{"dag_constraints", ""},
	{"termination_policy", ""},
	{"preemption_config", ""},
	{"state_transitions", ""},
	{"kv_transfer_config", "the transfer engine"},
	{"profiling_matrix", "off-line profiling"},
	{"execution_path_registry", "unlike hardware: execution paths and fallback"},
	{"fallback_policy", "unlike hardware: execution paths and fallback"},
}

// ErrNotYet: a key is known, but the part that it configures is not built.
var ErrNotYet = errors.New("not yet")

// Missing tells which part a key waits for; "" if it takes effect.
func Missing(path string) string {
	best, missing := -1, ""
	for _, p := range register {
		if len(p.path) > best && (path == p.path || strings.HasPrefix(path, p.path+".") || strings.HasPrefix(path, p.path+"[")) {
			best, missing = len(p.path), p.missing
		}
	}
	return missing
}

// notYet is an Error that is also ErrNotYet.
type notYet struct{ at Error }

func (e *notYet) Error() string   { return e.at.Error() }
func (e *notYet) Unwrap() []error { return []error{&e.at, ErrNotYet} }

// Effective prints the blocks that take effect; a node reads it back without
// a refusal.
func (c *Config) Effective() string {
	var fields []Field
	for _, f := range c.Fields() {
		if Missing(f.Key) == "" {
			fields = append(fields, f)
		}
	}
	return Print(fields...)
}

// NotYet refuses the keys that a text sets although their part is not built,
// one error per block. A node calls it before it uses a configuration;
// reading and printing don't.
func (c *Config) NotYet() error {
	var errs []error
	last := ""
	for _, g := range c.Given {
		missing := Missing(g.Path)
		block, _, _ := strings.Cut(g.Path, ".")
		block, _, _ = strings.Cut(block, "[")
		if missing == "" || block == last {
			continue
		}
		last = block
		errs = append(errs, &notYet{Error{Line: g.Line, Column: g.Column, Path: g.Path, Msg: "not yet: " + missing + " is not built"}})
	}
	return errors.Join(errs...)
}
