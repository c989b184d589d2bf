package spec

import (
	"fmt"
	"slices"

	"ieg"
	"ieg/kernel/graph"
)

// Transition is one arrow of state_transitions as text.
type Transition struct {
	From, To string
	Guards   []string
}

func transitionFields(t *Transition) []Field {
	var states []string
	for s := ieg.NodeInit; s <= ieg.NodeCancelled; s++ {
		states = append(states, s.String())
	}
	return []Field{
		OneOf("from", &t.From, states...), OneOf("to", &t.To, states...), Words("guards", &t.Guards),
	}
}

// builtinTransitions is the table that the machine runs.
func builtinTransitions() []Transition {
	var out []Transition
	for _, a := range graph.Arrows() {
		t := Transition{From: a.From.String(), To: a.To.String()}
		for _, g := range a.Guards {
			t.Guards = append(t.Guards, g.String())
		}
		out = append(out, t)
	}
	return out
}

// checkTransitions compares a given table with the built-in one, arrow by
// arrow in any order. The table can't be configured: writing it down is
// documentation that is checked.
func (c *Config) checkTransitions() error {
	given := slices.ContainsFunc(c.Given, func(g Given) bool { return g.Path == "state_transitions" })
	if !given {
		return nil
	}
	builtin := builtinTransitions()
	find := func(list []Transition, t Transition) int {
		return slices.IndexFunc(list, func(u Transition) bool { return u.From == t.From && u.To == t.To })
	}
	for i, t := range c.Transitions {
		path := fmt.Sprintf("state_transitions[%d]", i)
		j := find(builtin, t)
		if j < 0 {
			return c.at(path, fmt.Sprintf("%s → %s is no arrow of the built-in table", t.From, t.To))
		}
		if first := find(c.Transitions, t); first < i {
			return c.at(path, fmt.Sprintf("%s → %s is given twice", t.From, t.To))
		}
		want, have := slices.Clone(builtin[j].Guards), slices.Clone(t.Guards)
		slices.Sort(want)
		slices.Sort(have)
		if !slices.Equal(want, have) {
			return c.at(path, fmt.Sprintf("%s → %s has the guards %q in the built-in table, not %q", t.From, t.To, builtin[j].Guards, t.Guards))
		}
	}
	for _, t := range builtin {
		if find(c.Transitions, t) < 0 {
			return c.at("state_transitions", fmt.Sprintf("the arrow %s → %s (%q) of the built-in table is missing", t.From, t.To, t.Guards))
		}
	}
	c.Transitions = builtin
	return nil
}
