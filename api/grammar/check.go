package grammar

import "strings"

// finish checks the grammar and prints it, root first.
func (b *builder) finish(root expr) (string, error) {
	b.define("root", root)
	b.prune()
	if err := b.check(); err != nil {
		return "", err
	}
	var w strings.Builder
	for _, r := range b.rules {
		w.WriteString(r.name)
		w.WriteString(" ::= ")
		r.body.write(&w, false)
		w.WriteByte('\n')
		if w.Len() > MaxGrammarBytes {
			return "", errAt("", "the grammar would be longer than %d bytes", MaxGrammarBytes)
		}
	}
	return w.String(), nil
}

// prune drops the rules that root doesn't reach.
func (b *builder) prune() {
	reached := make([]bool, len(b.rules))
	reached[0] = true
	for todo := []int{0}; len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = b.rules[i].body.refs(b, reached, todo[:len(todo)-1])
	}
	kept := b.rules[:0]
	for i, r := range b.rules {
		if reached[i] {
			kept = append(kept, r)
		}
	}
	b.rules = kept
	b.index = make(map[string]int, len(kept))
	for i, r := range kept {
		b.index[r.name] = i
	}
}

// refs appends the rules that e mentions and that were not reached before.
func (e expr) refs(b *builder, reached []bool, out []int) []int {
	if e.op == opRef {
		if i := b.index[e.text]; !reached[i] {
			reached[i] = true
			out = append(out, i)
		}
	}
	for _, s := range e.subs {
		out = s.refs(b, reached, out)
	}
	return out
}

// within tells whether the grammar is still small enough to go on.
func (b *builder) within(pointer string, more int) error {
	b.nodes += more
	if b.nodes > MaxNodes || len(b.rules) > MaxRules {
		return errAt(pointer, "the schema is too large for a grammar (limits: %d parts, %d rules)", MaxNodes, MaxRules)
	}
	return nil
}

func (b *builder) check() error {
	size := 0
	for _, r := range b.rules {
		size += r.body.size()
	}
	if size > MaxNodes || len(b.rules) > MaxRules {
		return errAt("", "the grammar is too large (limits: %d parts, %d rules)", MaxNodes, MaxRules)
	}
	nullable := b.fixpoint(func(e expr, known []bool) bool { return b.nullable(e, known) })
	ends := b.fixpoint(func(e expr, known []bool) bool { return b.ends(e, known) })
	endless := b.where(func(i int) bool { return !ends[i] })
	if endless != nil {
		return errAt(*endless, "no finite text matches: let the recursion be optional")
	}
	if at := b.where(func(i int) bool { return b.emptyLoop(b.rules[i].body, nullable) }); at != nil {
		return errAt(*at, "what may be empty can't be repeated without bound")
	}
	onCycle := b.leftRecursive(nullable)
	if at := b.where(func(i int) bool { return onCycle[i] }); at != nil {
		return errAt(*at, "a schema that refers to itself without anything between has no meaning")
	}
	return nil
}

// where is the pointer of a rule that f finds, if it finds one: of the last
// with a pointer, which is the innermost.
func (b *builder) where(f func(rule int) bool) *string {
	var at *string
	for i := range b.rules {
		if !f(i) {
			continue
		}
		origin, known := b.origin[b.rules[i].name]
		if known || at == nil {
			at = &origin
		}
	}
	return at
}

// size counts the elements of an expression, repetitions written out as
// llama.cpp does.
func (e expr) size() int {
	n := 1 + len(e.ranges)/2
	if e.op == opLit {
		n = len(e.text)
	}
	for _, s := range e.subs {
		n += s.size()
	}
	if e.op == opRep {
		n *= max(e.min, e.max, 1)
	}
	return n
}

// fixpoint computes the least property of rules that f derives.
func (b *builder) fixpoint(f func(e expr, known []bool) bool) []bool {
	known := make([]bool, len(b.rules))
	for changed := true; changed; {
		changed = false
		// Rules mostly refer to earlier ones, or to later ones when reserved:
		// both directions keep the number of rounds small.
		for i := range b.rules {
			for _, j := range [2]int{i, len(b.rules) - 1 - i} {
				if !known[j] && f(b.rules[j].body, known) {
					known[j], changed = true, true
				}
			}
		}
	}
	return known
}

func (b *builder) nullable(e expr, known []bool) bool {
	switch e.op {
	case opRef:
		return known[b.index[e.text]]
	case opSeq:
		for _, s := range e.subs {
			if !b.nullable(s, known) {
				return false
			}
		}
		return true
	case opAlt:
		for _, s := range e.subs {
			if b.nullable(s, known) {
				return true
			}
		}
		return false
	case opRep:
		return e.min == 0 || b.nullable(e.subs[0], known)
	}
	return false
}

// ends tells whether some finite text matches.
func (b *builder) ends(e expr, known []bool) bool {
	switch e.op {
	case opRef:
		return known[b.index[e.text]]
	case opSeq:
		for _, s := range e.subs {
			if !b.ends(s, known) {
				return false
			}
		}
	case opAlt:
		for _, s := range e.subs {
			if b.ends(s, known) {
				return true
			}
		}
		return false
	case opRep:
		return e.min == 0 || b.ends(e.subs[0], known)
	}
	return true
}

func (b *builder) emptyLoop(e expr, nullable []bool) bool {
	if e.op == opRep && e.max < 0 && b.nullable(e.subs[0], nullable) {
		return true
	}
	for _, s := range e.subs {
		if b.emptyLoop(s, nullable) {
			return true
		}
	}
	return false
}

// leftRecursive marks the rules that can begin with themselves, and those
// that begin only after such.
func (b *builder) leftRecursive(nullable []bool) []bool {
	edges := make([][]int, len(b.rules))
	indegree := make([]int, len(b.rules))
	for i := range b.rules {
		edges[i] = b.firsts(b.rules[i].body, nullable, nil)
		for _, j := range edges[i] {
			indegree[j]++
		}
	}
	// Rules that nothing begins with are taken away until none is left; what
	// remains lies on or behind a cycle.
	var free []int
	for i, n := range indegree {
		if n == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, j := range edges[i] {
			if indegree[j]--; indegree[j] == 0 {
				free = append(free, j)
			}
		}
	}
	left := make([]bool, len(b.rules))
	for i, n := range indegree {
		left[i] = n > 0
	}
	return left
}

// firsts appends the rules that e may begin with.
func (b *builder) firsts(e expr, nullable []bool, out []int) []int {
	switch e.op {
	case opRef:
		return append(out, b.index[e.text])
	case opSeq:
		for _, s := range e.subs {
			out = b.firsts(s, nullable, out)
			if !b.nullable(s, nullable) {
				break
			}
		}
	case opAlt:
		for _, s := range e.subs {
			out = b.firsts(s, nullable, out)
		}
	case opRep:
		out = b.firsts(e.subs[0], nullable, out)
	}
	return out
}
