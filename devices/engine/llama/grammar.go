package llama

import (
	"fmt"
	"slices"

	"ieg"
	"ieg/devices/engine/llama/gbnf"
	"ieg/devices/engine/llama/text"
)

// grammars keeps compiled grammars: requests of one kind share theirs.
type grammars struct {
	byText map[string]*gbnf.Grammar
	order  []string // oldest first
}

func (c *grammars) get(src string) (*gbnf.Grammar, error) {
	if g := c.byText[src]; g != nil {
		return g, nil
	}
	g, err := gbnf.Parse(src)
	if err != nil {
		return nil, err
	}
	if c.byText == nil {
		c.byText = map[string]*gbnf.Grammar{}
	}
	if len(c.order) == grammarsKept {
		delete(c.byText, c.order[0])
		c.order = slices.Delete(c.order, 0, 1)
	}
	c.byText[src], c.order = g, append(c.order, src)
	return g, nil
}

// guard holds one sequence to its grammar. Asleep, it lets everything pass
// until a trigger string appears in the text; from the trigger's first byte
// on, the text must follow the grammar.
type guard struct {
	v       *vocab
	g       *gbnf.Grammar
	st      *gbnf.State
	asleep  *text.Finder // nil: awake
	special bool         // control tokens show as text
}

func (c *grammars) guard(v *vocab, p *ieg.Sampling) (*guard, error) {
	if p.Grammar == "" {
		return nil, nil
	}
	g, err := c.get(p.Grammar)
	if err != nil {
		return nil, err
	}
	d := &guard{v: v, g: g, st: g.NewState(), special: p.KeepSpecial}
	if len(p.GrammarTriggers) > maxTriggers {
		return nil, fmt.Errorf("%w: %d grammar triggers, at most %d", ieg.ErrUnsupported, len(p.GrammarTriggers), maxTriggers)
	}
	for _, t := range p.GrammarTriggers {
		if t != "" && !d.st.Accepts([]byte(t)) {
			return nil, fmt.Errorf("%w: its text can't begin with its trigger %q", gbnf.ErrGrammar, t)
		}
	}
	if len(p.GrammarTriggers) > 0 {
		d.asleep = text.NewFinder(p.GrammarTriggers)
	}
	return d, nil
}

// allows tells whether the token may be drawn next.
func (d *guard) allows(t ieg.Token) bool {
	if d.asleep != nil {
		if d.v.end[t] {
			return true
		}
		needle, rest := d.asleep.Find(d.v.shown(t, d.special))
		return needle == nil || d.begins(needle, rest) != nil
	}
	if d.v.end[t] {
		return d.st.Complete()
	}
	return d.st.Accepts(d.v.shown(t, d.special))
}

// begins is the state after a trigger and what came with it in one token, nil
// if the grammar refuses that.
func (d *guard) begins(needle, rest []byte) *gbnf.State {
	st := d.g.NewState()
	if !st.Advance(needle) || len(rest) > 0 && !st.Advance(rest) {
		return nil
	}
	return st
}

// take moves on over a token that allows let pass.
func (d *guard) take(t ieg.Token) {
	if d.v.end[t] {
		return
	}
	p := d.v.shown(t, d.special)
	if d.asleep == nil {
		d.st.Advance(p)
		return
	}
	needle, rest := d.asleep.Find(p)
	if needle == nil {
		d.asleep.Push(p)
		return
	}
	if st := d.begins(needle, rest); st != nil {
		d.st, d.asleep = st, nil
	}
}

// ended tells that the grammar's text is whole and nothing may follow.
func (d *guard) ended() bool { return d.asleep == nil && d.st.Ended() }

// lost tells that the grammar is too ambiguous to go on.
func (d *guard) lost() bool { return d.asleep == nil && d.st.Overflow() }

// all appends the tokens that may be drawn next.
func (d *guard) all(dst []ieg.Token) []ieg.Token {
	if d.asleep != nil {
		for t := range ieg.Token(d.v.n) {
			if d.allows(t) {
				dst = append(dst, t)
			}
		}
		return dst
	}
	// Cut short, the list is still right, only not whole.
	dst, _ = d.v.sorted().Allowed(d.st, dst)
	if d.special {
		for t, hidden := range d.v.hidden {
			if hidden && !d.v.end[t] && d.allows(ieg.Token(t)) {
				dst = append(dst, ieg.Token(t))
			}
		}
	}
	if d.st.Complete() {
		dst = append(dst, d.v.eog...)
	}
	return dst
}
