package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"
)

// gbnf is an interpreter of the grammar language, written from llama.cpp's
// description of it and independent of the code that prints grammars.
type gbnf struct {
	rules map[string]*gNode
	cost  map[string]int // least number of characters and levels to finish
}

type gKind int

const (
	gChar gKind = iota
	gRule
	gSeq
	gAlt
	gRep
)

type gNode struct {
	kind     gKind
	ranges   []rune
	negated  bool
	name     string
	subs     []*gNode
	min, max int // max -1: unbounded
}

type gParser struct {
	in  string
	pos int
	err error
}

// parseGBNF reads a grammar and checks that every rule is defined once.
func parseGBNF(text string) (*gbnf, error) {
	g := &gbnf{rules: map[string]*gNode{}}
	for n, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		p := &gParser{in: line}
		name := p.name()
		p.space()
		if !strings.HasPrefix(p.in[p.pos:], "::=") {
			return nil, fmt.Errorf("line %d: no ::= in %q", n+1, line)
		}
		p.pos += 3
		body := p.alternatives()
		if p.err == nil && p.pos < len(p.in) {
			p.fail("text is left")
		}
		if p.err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, p.err)
		}
		if g.rules[name] != nil {
			return nil, fmt.Errorf("rule %q is defined twice", name)
		}
		g.rules[name] = body
	}
	if g.rules["root"] == nil {
		return nil, fmt.Errorf("no root")
	}
	for name, body := range g.rules {
		if missing := g.undefined(body); missing != "" {
			return nil, fmt.Errorf("rule %q uses %q, which is not defined", name, missing)
		}
	}
	g.costs()
	return g, nil
}

func (g *gbnf) undefined(n *gNode) string {
	if n.kind == gRule && g.rules[n.name] == nil {
		return n.name
	}
	for _, s := range n.subs {
		if m := g.undefined(s); m != "" {
			return m
		}
	}
	return ""
}

func (p *gParser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("at %d of %q: %s", p.pos, p.in, fmt.Sprintf(format, args...))
	}
	p.pos = len(p.in)
}

func (p *gParser) space() {
	for p.pos < len(p.in) && p.in[p.pos] == ' ' {
		p.pos++
	}
}

func (p *gParser) peek() byte {
	if p.pos < len(p.in) {
		return p.in[p.pos]
	}
	return 0
}

func (p *gParser) name() string {
	start := p.pos
	for p.pos < len(p.in) {
		c := p.in[p.pos]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			break
		}
		p.pos++
	}
	if start == p.pos {
		p.fail("a name is missing")
	}
	return p.in[start:p.pos]
}

func (p *gParser) alternatives() *gNode {
	n := &gNode{kind: gAlt, subs: []*gNode{p.sequence()}}
	for p.peek() == '|' {
		p.pos++
		n.subs = append(n.subs, p.sequence())
	}
	return n
}

func (p *gParser) sequence() *gNode {
	n := &gNode{kind: gSeq}
	for {
		p.space()
		switch c := p.peek(); {
		case c == 0, c == '|', c == ')':
			return n
		case c == '"':
			n.subs = append(n.subs, p.literal())
		case c == '[':
			n.subs = append(n.subs, p.class())
		case c == '(':
			p.pos++
			n.subs = append(n.subs, p.alternatives())
			if p.peek() != ')' {
				p.fail("missing )")
			}
			p.pos++
		default:
			n.subs = append(n.subs, &gNode{kind: gRule, name: p.name()})
		}
		last := len(n.subs) - 1
		if lo, hi, ok := p.repetition(); ok {
			if k := n.subs[last].kind; k != gChar && k != gRule {
				p.fail("a group or literal is repeated")
			}
			if lo >= 2000 || hi >= 2000 {
				p.fail("a count that the sampler refuses")
			}
			n.subs[last] = &gNode{kind: gRep, subs: []*gNode{n.subs[last]}, min: lo, max: hi}
		}
		if p.err != nil {
			return n
		}
	}
}

func (p *gParser) repetition() (lo, hi int, ok bool) {
	switch p.peek() {
	case '*':
		p.pos++
		return 0, -1, true
	case '+':
		p.pos++
		return 1, -1, true
	case '?':
		p.pos++
		return 0, 1, true
	case '{':
		end := strings.IndexByte(p.in[p.pos:], '}')
		if end < 0 {
			p.fail("missing }")
			return 0, 0, false
		}
		text := p.in[p.pos+1 : p.pos+end]
		p.pos += end + 1
		if n, err := fmt.Sscanf(text, "%d,%d", &lo, &hi); n == 2 && err == nil {
			return lo, hi, true
		}
		if _, err := fmt.Sscanf(text, "%d", &lo); err != nil {
			p.fail("bad count %q", text)
		}
		if strings.HasSuffix(text, ",") {
			return lo, -1, true
		}
		return lo, lo, true
	}
	return 0, 0, false
}

func (p *gParser) literal() *gNode {
	n := &gNode{kind: gSeq}
	p.pos++
	for p.peek() != '"' {
		if p.err != nil || p.pos >= len(p.in) {
			p.fail("an open literal")
			return n
		}
		r := p.char()
		n.subs = append(n.subs, &gNode{kind: gChar, ranges: []rune{r, r}})
	}
	p.pos++
	return n
}

func (p *gParser) class() *gNode {
	n := &gNode{kind: gChar}
	p.pos++
	if p.peek() == '^' {
		n.negated = true
		p.pos++
	}
	for p.peek() != ']' {
		if p.err != nil || p.pos >= len(p.in) {
			p.fail("an open class")
			return n
		}
		lo := p.char()
		hi := lo
		if p.peek() == '-' && p.pos+1 < len(p.in) && p.in[p.pos+1] != ']' {
			p.pos++
			hi = p.char()
		}
		if lo > hi {
			p.fail("an empty range")
		}
		n.ranges = append(n.ranges, lo, hi)
	}
	if len(n.ranges) == 0 {
		p.fail("an empty class")
	}
	p.pos++
	return n
}

func (p *gParser) char() rune {
	r, size := utf8.DecodeRuneInString(p.in[p.pos:])
	p.pos += size
	if r != '\\' {
		return r
	}
	c := p.peek()
	p.pos++
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if digits == 0 {
		if r, ok := map[byte]rune{'t': '\t', 'r': '\r', 'n': '\n', '\\': '\\', '"': '"', '[': '[', ']': ']'}[c]; ok {
			return r
		}
		p.fail("unknown escape %q", c)
		return 0
	}
	if p.pos+digits > len(p.in) {
		p.fail("a short escape")
		return 0
	}
	if _, err := fmt.Sscanf(p.in[p.pos:p.pos+digits], "%x", &r); err != nil {
		p.fail("a bad escape")
	}
	p.pos += digits
	return r
}

// accepts tells whether the whole text matches root.
func (g *gbnf) accepts(text string) bool {
	m := &matcher{g: g, in: []rune(text), memo: map[memoKey][]int{}}
	return slices.Contains(m.ends(&gNode{kind: gRule, name: "root"}, 0), len(m.in))
}

type memoKey struct {
	rule string
	pos  int
}

type matcher struct {
	g    *gbnf
	in   []rune
	memo map[memoKey][]int
}

// ends lists where matches of n that begin at pos end. Left recursion would
// not return, so a rule that is entered again at the same place panics.
func (m *matcher) ends(n *gNode, pos int) []int {
	switch n.kind {
	case gChar:
		if pos < len(m.in) && contains(n.ranges, m.in[pos]) != n.negated {
			return []int{pos + 1}
		}
		return nil
	case gRule:
		key := memoKey{n.name, pos}
		if ends, ok := m.memo[key]; ok {
			if len(ends) == 1 && ends[0] == -1 {
				panic("left recursion through " + n.name)
			}
			return ends
		}
		m.memo[key] = []int{-1}
		ends := m.ends(m.g.rules[n.name], pos)
		m.memo[key] = ends
		return ends
	case gSeq:
		at := []int{pos}
		for _, s := range n.subs {
			at = m.from(at, s)
		}
		return at
	case gAlt:
		var out []int
		for _, s := range n.subs {
			out = append(out, m.ends(s, pos)...)
		}
		return unique(out)
	}
	at := []int{pos}
	for range n.min {
		at = m.from(at, n.subs[0])
	}
	out := slices.Clone(at)
	for i := n.min; (n.max < 0 || i < n.max) && len(at) > 0; i++ {
		var fresh []int
		for _, e := range m.from(at, n.subs[0]) {
			if !slices.Contains(out, e) {
				fresh = append(fresh, e)
			}
		}
		at = fresh
		out = append(out, fresh...)
	}
	return unique(out)
}

func (m *matcher) from(at []int, n *gNode) []int {
	var out []int
	for _, pos := range at {
		out = append(out, m.ends(n, pos)...)
	}
	return unique(out)
}

func unique(s []int) []int {
	slices.Sort(s)
	return slices.Compact(s)
}

const endless = 1 << 30

// costs computes the least depth at which each rule can finish.
func (g *gbnf) costs() {
	g.cost = map[string]int{}
	for name := range g.rules {
		g.cost[name] = endless
	}
	for changed := true; changed; {
		changed = false
		for name, body := range g.rules {
			if c := g.costOf(body) + 1; c < g.cost[name] {
				g.cost[name], changed = c, true
			}
		}
	}
}

func (g *gbnf) costOf(n *gNode) int {
	switch n.kind {
	case gChar:
		return 0
	case gRule:
		return g.cost[n.name]
	case gAlt:
		best := endless
		for _, s := range n.subs {
			best = min(best, g.costOf(s))
		}
		return best
	case gRep:
		if n.min == 0 {
			return 0
		}
	}
	worst := 0
	for _, s := range n.subs {
		worst = max(worst, g.costOf(s))
	}
	return worst
}

// walk writes a random text of the grammar.
func (g *gbnf) walk(r *rand.Rand) string {
	var w strings.Builder
	budget := 400
	g.write(&w, r, g.rules["root"], 0, &budget)
	return w.String()
}

func (g *gbnf) write(w *strings.Builder, r *rand.Rand, n *gNode, depth int, budget *int) {
	*budget--
	tired := depth > 40 || *budget < 0
	switch n.kind {
	case gChar:
		w.WriteRune(g.pick(r, n))
	case gRule:
		g.write(w, r, g.rules[n.name], depth+1, budget)
	case gSeq:
		for _, s := range n.subs {
			g.write(w, r, s, depth, budget)
		}
	case gAlt:
		choices := n.subs
		if tired {
			best := g.costOf(n)
			choices = slices.DeleteFunc(slices.Clone(n.subs), func(s *gNode) bool { return g.costOf(s) > best })
		}
		g.write(w, r, choices[r.IntN(len(choices))], depth, budget)
	case gRep:
		times := n.min
		if !tired && n.max != n.min {
			more := 4
			if n.max > 0 {
				more = min(more, n.max-n.min)
			}
			times += r.IntN(more + 1)
		}
		for range times {
			g.write(w, r, n.subs[0], depth, budget)
		}
	}
}

// pick chooses a character: mostly small ones, at times the ends of a range.
func (g *gbnf) pick(r *rand.Rand, n *gNode) rune {
	if n.negated {
		return 'x'
	}
	i := 2 * r.IntN(len(n.ranges)/2)
	lo, hi := n.ranges[i], n.ranges[i+1]
	switch r.IntN(6) {
	case 0:
		return lo
	case 1:
		return hi
	}
	return lo + rune(r.IntN(int(min(hi-lo, 200))+1))
}
