package gbnf

import "fmt"

// Grammar is a compiled grammar. It is immutable and may be shared.
type Grammar struct {
	code    []node
	rules   [][]int32 // starts of the alternatives
	classes []class
	root    int32
}

// node is one element of a sequence; the next follows it in the code.
type node struct {
	kind nodeKind
	arg  int32 // class or rule
}

type nodeKind uint8

const (
	nodeEnd  nodeKind = iota // the sequence ends
	nodeChar                 // a character of a class
	nodeRef                  // a rule
)

// builder collects rules.
type builder struct {
	ids     map[string]int32
	names   []string // "" for rules made by groups and repetitions
	alts    [][][]node
	done    []bool
	classes []class
	ascii   map[rune]int32 // classes of single characters
	nodes   int
}

func newBuilder() *builder {
	return &builder{ids: map[string]int32{}, ascii: map[rune]int32{}}
}

func (b *builder) ruleID(name string) int32 {
	if id, ok := b.ids[name]; ok {
		return id
	}
	id := b.fresh()
	b.ids[name], b.names[id] = id, name
	return id
}

func (b *builder) fresh() int32 {
	b.names, b.alts, b.done = append(b.names, ""), append(b.alts, nil), append(b.done, false)
	return int32(len(b.names) - 1)
}

func (b *builder) defined(id int32) bool { return b.done[id] }

func (b *builder) define(id int32, alts [][]node) {
	b.alts[id], b.done[id] = alts, true
	for _, a := range alts {
		b.nodes += len(a) + 1
	}
}

// count fails when the grammar with pending more nodes is too large.
func (b *builder) count(p *parser, pending int) {
	if b.nodes+pending > maxNodes {
		p.failf("the grammar is too large: repetitions expand to more than %d elements", maxNodes)
	}
}

// char is a node for a class.
func (b *builder) char(c class) node {
	if len(c.spans) == 1 && c.spans[0].lo == c.spans[0].hi {
		r := c.spans[0].lo
		id, ok := b.ascii[r]
		if !ok {
			id = int32(len(b.classes))
			b.classes, b.ascii[r] = append(b.classes, c), id
		}
		return node{nodeChar, id}
	}
	b.classes = append(b.classes, c)
	return node{nodeChar, int32(len(b.classes) - 1)}
}

// repeat makes lo to hi copies of a symbol.
func (b *builder) repeat(sym []node, lo, hi int, p *parser) []node {
	if len(sym) > 1 {
		id := b.fresh()
		b.define(id, [][]node{sym})
		sym = []node{{nodeRef, id}}
	}
	b.count(p, lo+4*max(hi-lo, 0))
	var out []node
	for range lo {
		out = append(out, sym[0])
	}
	switch {
	case hi == unbounded:
		id := b.fresh() // id ::= sym id | ""
		b.define(id, [][]node{{sym[0], {nodeRef, id}}, nil})
		out = append(out, node{nodeRef, id})
	case hi > lo:
		var tail []node // tail ::= sym tail' | "", the innermost first
		for range hi - lo {
			id := b.fresh()
			b.define(id, [][]node{append([]node{sym[0]}, tail...), nil})
			tail = []node{{nodeRef, id}}
		}
		out = append(out, tail...)
	}
	if len(out) == 0 { // {0}: an empty rule keeps "nothing to repeat" strict
		id := b.fresh()
		b.define(id, [][]node{nil})
		out = []node{{nodeRef, id}}
	}
	return out
}

// finish checks the whole and lays out the code.
func (b *builder) finish() (*Grammar, error) {
	root, ok := b.ids["root"]
	if !ok || !b.done[root] {
		return nil, fmt.Errorf("%w: there is no rule \"root\"", ErrGrammar)
	}
	for id, done := range b.done {
		if !done {
			return nil, fmt.Errorf("%w: rule %q is used but not defined", ErrGrammar, b.names[id])
		}
	}
	if b.nodes > maxNodes {
		return nil, fmt.Errorf("%w: more than %d elements", ErrGrammar, maxNodes)
	}
	if name, bad := b.leftRecursive(); bad {
		return nil, fmt.Errorf("%w: rule %q begins with itself (left recursion)", ErrGrammar, name)
	}
	g := &Grammar{classes: b.classes, root: root, rules: make([][]int32, len(b.alts))}
	for id, alts := range b.alts {
		for _, a := range alts {
			g.rules[id] = append(g.rules[id], int32(len(g.code)))
			g.code = append(append(g.code, a...), node{kind: nodeEnd})
		}
	}
	return g, nil
}

// nullable tells for each rule whether it matches the empty text.
func (b *builder) nullable() []bool {
	users := make([][]int32, len(b.alts)) // rules that name a rule
	var queue []int32
	for id, alts := range b.alts {
		queue = append(queue, int32(id))
		for _, a := range alts {
			for _, n := range a {
				if n.kind == nodeRef {
					users[n.arg] = append(users[n.arg], int32(id))
				}
			}
		}
	}
	null := make([]bool, len(b.alts))
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if null[id] || !emptyAlt(b.alts[id], null) {
			continue
		}
		null[id] = true
		queue = append(queue, users[id]...)
	}
	return null
}

func emptyAlt(alts [][]node, null []bool) bool {
	for _, a := range alts {
		empty := true
		for _, n := range a {
			if n.kind != nodeRef || !null[n.arg] {
				empty = false
				break
			}
		}
		if empty {
			return true
		}
	}
	return false
}

// leftRecursive finds a rule that can begin with itself.
func (b *builder) leftRecursive() (string, bool) {
	null := b.nullable()
	first := make([][]int32, len(b.alts)) // rules a rule can begin with
	for id, alts := range b.alts {
		for _, a := range alts {
			for _, n := range a {
				if n.kind != nodeRef {
					break
				}
				first[id] = append(first[id], n.arg)
				if !null[n.arg] {
					break
				}
			}
		}
	}
	const white, grey, black = 0, 1, 2
	colour, next := make([]uint8, len(first)), make([]int, len(first))
	for start := range first {
		if colour[start] != white {
			continue
		}
		path := []int32{int32(start)}
		colour[start] = grey
		for len(path) > 0 {
			id := path[len(path)-1]
			if next[id] == len(first[id]) {
				colour[id] = black
				path = path[:len(path)-1]
				continue
			}
			to := first[id][next[id]]
			next[id]++
			switch colour[to] {
			case grey:
				return b.nameOn(path, to), true
			case white:
				colour[to] = grey
				path = append(path, to)
			}
		}
	}
	return "", false
}

// nameOn is the name of a rule on the loop from to, as the text knows it.
func (b *builder) nameOn(path []int32, to int32) string {
	name := b.names[to]
	for i := len(path) - 1; i >= 0 && name == ""; i-- {
		name = b.names[path[i]]
	}
	return name
}
