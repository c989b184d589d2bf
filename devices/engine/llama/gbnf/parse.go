package gbnf

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrGrammar is the identity of all errors of Parse.
var ErrGrammar = errors.New("bad grammar")

// parser reads the text into a builder. Errors are panics of type fault, which
// Parse recovers.
type parser struct {
	src   string
	pos   int
	depth int
	b     *builder
}

type fault struct{ err error }

// Parse reads and checks a grammar, whose first rule to match is "root".
func Parse(src string) (g *Grammar, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(fault)
			if !ok {
				panic(r)
			}
			g, err = nil, f.err
		}
	}()
	if len(src) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrGrammar, len(src), MaxBytes)
	}
	if !utf8.ValidString(src) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrGrammar)
	}
	p := &parser{src: src, b: newBuilder()}
	p.space(true)
	for p.pos < len(p.src) {
		p.rule()
	}
	return p.b.finish()
}

func (p *parser) failf(format string, args ...any) {
	line := 1
	for _, c := range p.src[:min(p.pos, len(p.src))] {
		if c == '\n' {
			line++
		}
	}
	panic(fault{fmt.Errorf("%w: line %d: %s", ErrGrammar, line, fmt.Sprintf(format, args...))})
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

// space skips blanks and comments, and with newlines line ends too.
func (p *parser) space(newlines bool) {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\t', newlines && (c == '\n' || c == '\r'):
			p.pos++
		case c == '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' && p.src[p.pos] != '\r' {
				p.pos++
			}
		default:
			return
		}
	}
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

func (p *parser) name() string {
	from := p.pos
	for wordByte(p.peek()) {
		p.pos++
	}
	if p.pos == from {
		p.failf("a rule's name is missing")
	}
	return p.src[from:p.pos]
}

func (p *parser) rule() {
	name := p.name()
	p.space(false)
	if len(p.src)-p.pos < 3 || p.src[p.pos:p.pos+3] != "::=" {
		p.failf("\"::=\" is missing after %q", name)
	}
	p.pos += 3
	p.space(true)
	id := p.b.ruleID(name)
	if p.b.defined(id) {
		p.failf("rule %q is defined twice", name)
	}
	alts := p.alternatives(false)
	p.b.define(id, alts)
	if c := p.peek(); p.pos < len(p.src) && c != '\n' && c != '\r' {
		p.failf("unexpected %q", c)
	}
	p.space(true)
}

// alternatives reads sequences separated by "|".
func (p *parser) alternatives(nested bool) [][]node {
	alts := [][]node{p.sequence(nested)}
	for p.peek() == '|' {
		p.pos++
		p.space(true)
		alts = append(alts, p.sequence(nested))
	}
	return alts
}

func (p *parser) sequence(nested bool) []node {
	var seq, last []node // last is the latest symbol, not yet in seq
	for p.pos < len(p.src) {
		c := p.peek()
		switch {
		case c == '"' || c == '[' || c == '.' || c == '(' || wordByte(c):
			seq = append(seq, last...)
			last = p.symbol(c, nested)
		case c == '*' || c == '+' || c == '?' || c == '{':
			if len(last) == 0 {
				p.failf("nothing stands before %q", c)
			}
			lo, hi := p.times(c, nested)
			last = p.b.repeat(last, lo, hi, p)
		case c == '<' || c == '!':
			p.failf("elements that name tokens are not supported")
		default:
			return append(seq, last...)
		}
		p.b.count(p, len(seq)+len(last))
	}
	return append(seq, last...)
}

// symbol reads a literal, a class, a reference or a group.
func (p *parser) symbol(c byte, nested bool) (nodes []node) {
	switch {
	case c == '"':
		p.pos++
		for p.peek() != '"' {
			r := p.char()
			nodes = append(nodes, p.b.char(newClass([]span{{r, r}}, false)))
		}
		p.pos++
	case c == '[':
		nodes = []node{p.b.char(p.class())}
	case c == '.':
		p.pos++
		nodes = []node{p.b.char(newClass(nil, true))}
	case c == '(':
		if p.depth++; p.depth > maxNesting {
			p.failf("parentheses nest deeper than %d", maxNesting)
		}
		p.pos++
		p.space(true)
		id := p.b.fresh()
		p.b.define(id, p.alternatives(true))
		if p.peek() != ')' {
			p.failf("a \")\" is missing")
		}
		p.pos++
		p.depth--
		nodes = []node{{kind: nodeRef, arg: id}}
	default:
		nodes = []node{{kind: nodeRef, arg: p.b.ruleID(p.name())}}
	}
	p.space(nested)
	return nodes
}

// class reads "[…]".
func (p *parser) class() class {
	p.pos++
	not := p.peek() == '^'
	if not {
		p.pos++
	}
	var spans []span
	for p.peek() != ']' {
		lo := p.char()
		hi := lo
		if p.peek() == '-' && p.pos+1 < len(p.src) && p.src[p.pos+1] != ']' {
			p.pos++
			hi = p.char()
		}
		if hi < lo {
			p.failf("the range %q-%q is the wrong way round", lo, hi)
		}
		spans = append(spans, span{lo, hi})
	}
	p.pos++
	if len(spans) == 0 {
		p.failf("a class of characters is empty")
	}
	return newClass(spans, not)
}

// char reads one character, which may be escaped.
func (p *parser) char() rune {
	if p.pos >= len(p.src) {
		p.failf("the text ends inside a literal")
	}
	if p.src[p.pos] != '\\' {
		r, n := utf8.DecodeRuneInString(p.src[p.pos:])
		p.pos += n
		return r
	}
	p.pos += 2
	if p.pos > len(p.src) {
		p.failf("the text ends inside an escape")
	}
	switch c := p.src[p.pos-1]; c {
	case 'x':
		return p.hex(2)
	case 'u':
		return p.hex(4)
	case 'U':
		return p.hex(8)
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'n':
		return '\n'
	case '\\', '"', '[', ']', '-':
		return rune(c)
	default:
		p.failf("unknown escape \\%c", c)
	}
	return 0
}

func (p *parser) hex(digits int) rune {
	v := uint32(0)
	for range digits {
		c := p.peek()
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		case c >= 'A' && c <= 'F':
			v = v<<4 | uint32(c-'A'+10)
		default:
			p.failf("an escape needs %d hexadecimal digits", digits)
		}
		p.pos++
	}
	if v > lastRune {
		p.failf("U+%X is no character", v)
	}
	return rune(v)
}

// unbounded is the upper end of a repetition without one.
const unbounded = -1

// times reads a repetition sign.
func (p *parser) times(c byte, nested bool) (lo, hi int) {
	p.pos++
	switch c {
	case '*':
		lo, hi = 0, unbounded
	case '+':
		lo, hi = 1, unbounded
	case '?':
		lo, hi = 0, 1
	default:
		p.space(nested)
		lo = p.number()
		hi = lo
		p.space(nested)
		if p.peek() == ',' {
			p.pos++
			p.space(nested)
			hi = unbounded
			if c := p.peek(); c >= '0' && c <= '9' {
				hi = p.number()
			}
			p.space(nested)
		}
		if p.peek() != '}' {
			p.failf("a \"}\" is missing")
		}
		p.pos++
		if hi != unbounded && hi < lo {
			p.failf("{%d,%d} is the wrong way round", lo, hi)
		}
	}
	p.space(nested)
	return lo, hi
}

func (p *parser) number() int {
	from, n := p.pos, 0
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		if n = n*10 + int(c-'0'); n > maxRepeat {
			p.failf("a repetition of more than %d", maxRepeat)
		}
		p.pos++
	}
	if p.pos == from {
		p.failf("a number is missing")
	}
	return n
}
