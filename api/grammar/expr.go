package grammar

import (
	"fmt"
	"strings"
)

type op uint8

const (
	opLit   op = iota // text
	opClass           // one character out of ranges
	opRef             // a rule
	opSeq             // subs in order; none: the empty text
	opAlt             // one of subs
	opRep             // subs[0] min to max times
)

// expr is a piece of a grammar.
type expr struct {
	op       op
	text     string // of opLit; rule name of opRef
	ranges   []rune // pairs lo, hi of opClass
	subs     []expr
	min, max int // of opRep; max -1: no bound
}

var empty = expr{op: opSeq}

func lit(s string) expr {
	if s == "" {
		return empty
	}
	return expr{op: opLit, text: s}
}

// class is one character out of pairs of first and last.
func class(pairs ...rune) expr { return expr{op: opClass, ranges: pairs} }

func ref(name string) expr { return expr{op: opRef, text: name} }

// seq joins; nested sequences are flattened.
func seq(subs ...expr) expr {
	var out []expr
	for _, s := range subs {
		switch {
		case s.op == opSeq:
			out = append(out, s.subs...)
		case s.op == opLit && len(out) > 0 && out[len(out)-1].op == opLit:
			out[len(out)-1].text += s.text
		default:
			out = append(out, s)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return expr{op: opSeq, subs: out}
}

// alt is one of subs, of which there is at least one.
func alt(subs ...expr) expr {
	if len(subs) == 1 {
		return subs[0]
	}
	var out []expr
	for _, s := range subs {
		if s.op == opAlt {
			out = append(out, s.subs...)
			continue
		}
		out = append(out, s)
	}
	return expr{op: opAlt, subs: out}
}

// rule is a named expression.
type rule struct {
	name string
	body expr
}

// builder collects the rules of one grammar.
type builder struct {
	rules  []rule
	index  map[string]int
	byBody map[string]string // printed body → rule
	origin map[string]string // rule → pointer of what it stands for
	nodes  int
}

func newBuilder() *builder {
	b := &builder{index: map[string]int{}, byBody: map[string]string{}, origin: map[string]string{}}
	b.reserve("root") // the first rule, defined at the end
	return b
}

// name returns a rule name that is not taken, made of hint.
func (b *builder) name(hint string) string {
	var s []byte
	for i := 0; i < len(hint) && len(s) < 32; i++ {
		c := hint[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			s = append(s, c)
		} else if len(s) > 0 && s[len(s)-1] != '-' {
			s = append(s, '-')
		}
	}
	base := strings.TrimRight(string(s), "-")
	if base == "" {
		base = "r"
	}
	name := base
	for n := len(b.rules) + 1; ; n++ {
		if _, taken := b.index[name]; !taken {
			return name
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// reserve makes room for a rule that is defined later, so that it can be
// recursive.
func (b *builder) reserve(hint string) string {
	name := b.name(hint)
	b.index[name] = len(b.rules)
	b.rules = append(b.rules, rule{name: name})
	return name
}

func (b *builder) define(name string, body expr) { b.rules[b.index[name]].body = body }

// rule names a body and refers to it; equal bodies share a rule.
func (b *builder) rule(hint string, body expr) expr {
	if body.op == opRef {
		return body
	}
	text := body.String()
	if name, ok := b.byBody[text]; ok {
		return ref(name)
	}
	name := b.reserve(hint)
	b.define(name, body)
	b.byBody[text] = name
	return ref(name)
}

// rep repeats e. What is repeated is always a class or a rule: llama.cpp
// multiplies counts of groups.
func (b *builder) rep(e expr, min, max int) expr {
	if max == 0 {
		return empty
	}
	if min == 1 && max == 1 {
		return e
	}
	if e.op != opClass && e.op != opRef {
		e = b.rule("part", e)
	}
	if min <= MaxRepeat && max <= MaxRepeat {
		return expr{op: opRep, subs: []expr{e}, min: min, max: max}
	}
	return b.longRep(e, min, max)
}

func (b *builder) opt(e expr) expr { return b.rep(e, 0, 1) }

func (b *builder) many(e expr) expr { return b.rep(e, 0, -1) }

// longRep writes a large count as blocks of MaxRepeat/2 and a rest.
func (b *builder) longRep(e expr, min, max int) expr {
	const size = MaxRepeat / 2
	block := b.rule("block", b.rep(e, size, size))
	out := []expr{b.rep(block, min/size, min/size), b.rep(e, min%size, min%size)}
	if max < 0 {
		return seq(append(out, b.many(e))...)
	}
	more := max - min
	if q := more / size; q == 0 {
		out = append(out, b.rep(e, 0, more))
	} else {
		// Fewer than q blocks and any rest, or q blocks and what is left.
		out = append(out, alt(
			seq(b.rep(block, 0, q-1), b.rep(e, 0, size-1)),
			seq(b.rep(block, q, q), b.rep(e, 0, more%size))))
	}
	return seq(out...)
}

// String is the expression in GBNF.
func (e expr) String() string {
	var w strings.Builder
	e.write(&w, false)
	return w.String()
}

// write prints e; inside tells that alternatives need parentheses.
func (e expr) write(w *strings.Builder, inside bool) {
	switch e.op {
	case opLit:
		writeLit(w, e.text)
	case opClass:
		writeClass(w, e.ranges)
	case opRef:
		w.WriteString(e.text)
	case opSeq:
		if len(e.subs) == 0 {
			w.WriteString(`""`)
		}
		for i, s := range e.subs {
			if i > 0 {
				w.WriteByte(' ')
			}
			s.write(w, true)
		}
	case opAlt:
		if inside {
			w.WriteByte('(')
		}
		for i, s := range e.subs {
			if i > 0 {
				w.WriteString(" | ")
			}
			s.write(w, true)
		}
		if inside {
			w.WriteByte(')')
		}
	case opRep:
		e.subs[0].write(w, true)
		w.WriteString(count(e.min, e.max))
	}
}

func count(min, max int) string {
	switch {
	case min == 0 && max == 1:
		return "?"
	case min == 0 && max < 0:
		return "*"
	case min == 1 && max < 0:
		return "+"
	case max < 0:
		return fmt.Sprintf("{%d,}", min)
	case min == max:
		return fmt.Sprintf("{%d}", min)
	}
	return fmt.Sprintf("{%d,%d}", min, max)
}

func writeLit(w *strings.Builder, text string) {
	w.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"', r == '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case r == '\n':
			w.WriteString(`\n`)
		case r >= 0x20 && r < 0x7f:
			w.WriteRune(r)
		default:
			writeEscape(w, r)
		}
	}
	w.WriteByte('"')
}

func writeClass(w *strings.Builder, ranges []rune) {
	w.WriteByte('[')
	for i := 0; i < len(ranges); i += 2 {
		writeClassRune(w, ranges[i])
		if ranges[i] != ranges[i+1] {
			w.WriteByte('-')
			writeClassRune(w, ranges[i+1])
		}
	}
	w.WriteByte(']')
}

func writeClassRune(w *strings.Builder, r rune) {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		w.WriteRune(r)
		return
	}
	writeEscape(w, r)
}

func writeEscape(w *strings.Builder, r rune) {
	switch {
	case r < 0x100:
		fmt.Fprintf(w, `\x%02X`, r)
	case r < 0x10000:
		fmt.Fprintf(w, `\u%04X`, r)
	default:
		fmt.Fprintf(w, `\U%08X`, r)
	}
}
