package grammar

import (
	"slices"
	"strconv"
)

func indexed(at string, i int) string { return at + "/" + strconv.Itoa(i) }

// object compiles properties, required and additionalProperties.
func (c *compiler) object(m *merged, depth int) (expr, error) {
	extra, err := c.additional(m, depth)
	if err != nil {
		return expr{}, err
	}
	props, err := c.properties(m, extra)
	if err != nil {
		return expr{}, err
	}
	entries := make([]expr, len(props))
	for i, p := range props {
		e, err := c.compile(p.schema, p.at, depth+1)
		if err != nil {
			return expr{}, err
		}
		// A rule for what is more than a name keeps each entry small.
		entries[i] = c.rule(p.key+"-entry", seq(lit(quote(p.key)+":"), c.ws(), c.rule(p.key, e)))
	}
	var more *expr
	if extra.open {
		names := make([]string, len(props))
		for i, p := range props {
			names[i] = p.key
		}
		entry := c.rule("entry", seq(c.otherKey(names), lit(":"), c.ws(), extra.schema))
		more = &entry
	}
	body, optional := c.entries(props, entries, more)
	if body == nil {
		return seq(lit("{"), c.ws(), lit("}")), nil
	}
	inner := seq(*body, c.ws())
	if optional {
		inner = c.opt(inner)
	}
	return c.rule("object", seq(lit("{"), c.ws(), inner, lit("}"))), nil
}

// extra is what additionalProperties says.
type extra struct {
	open   bool
	schema expr
	source keyword
	given  bool
}

func (c *compiler) additional(m *merged, depth int) (extra, error) {
	kw, ok := m.kw["additionalProperties"]
	if !ok {
		_, declared := m.kw["properties"]
		return extra{open: !declared, schema: c.any()}, nil
	}
	if kw.val.kind == vBool {
		return extra{open: kw.val.truth, schema: c.any(), source: kw, given: true}, m.oneSource(kw)
	}
	if err := m.oneSource(kw); err != nil {
		return extra{}, err
	}
	e, err := c.compile(kw.val, kw.at, depth+1)
	return extra{open: true, schema: c.rule("extra", e), source: kw, given: true}, err
}

// oneSource refuses additionalProperties beside properties that another
// schema of a merge declares: it would speak of those too.
func (m *merged) oneSource(kw keyword) error {
	if kw.val.kind == vBool && kw.val.truth {
		return nil
	}
	for _, p := range m.props {
		if p.source != m.from["additionalProperties"] {
			return errAt(kw.at, "can't be merged with the property %s", p.at)
		}
	}
	return nil
}

// properties are the declared ones, and required ones that are not declared.
func (c *compiler) properties(m *merged, extra extra) ([]property, error) {
	props := slices.Clone(m.props)
	index := make(map[string]int, len(props))
	for i, p := range props {
		index[p.key] = i
	}
	for _, r := range m.required {
		i, ok := index[r.val.text]
		if !ok {
			p := property{key: r.val.text, schema: &value{kind: vBool, truth: true}, at: r.at}
			if extra.given && !extra.open {
				return nil, errAt(r.at, "%q is required, but not allowed", r.val.text)
			}
			if extra.given {
				p.schema, p.at = extra.source.val, extra.source.at
			}
			i = len(props)
			index[p.key] = i
			props = append(props, p)
		}
		props[i].required = true
	}
	// false as a schema forbids a property.
	kept := props[:0]
	for _, p := range props {
		if p.schema.kind == vBool && !p.schema.truth {
			if p.required {
				return nil, errAt(p.at, "is required, but false allows nothing")
			}
			if extra.open {
				return nil, errAt(p.at, "false is supported only where additionalProperties is false")
			}
			continue
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// entries joins the entries of an object in order. With rest(i) for what may
// follow once something stands, an object is rest(1) after entry 0, or rest(2)
// after entry 1 if 0 is optional, and so on: linear in their number. body is
// nil if there can be none; optional tells that there may be none.
func (c *compiler) entries(props []property, entries []expr, more *expr) (body *expr, optional bool) {
	rest := empty
	var starts []expr
	optional = true
	if more != nil {
		rest = c.many(seq(c.comma(), *more))
		starts = append(starts, seq(*more, rest))
	}
	for i := len(props) - 1; i >= 0; i-- {
		start := seq(entries[i], rest)
		if props[i].required {
			starts, optional = []expr{start}, false
		} else {
			starts = append(starts, start)
		}
		if i == 0 {
			break
		}
		next := seq(c.comma(), entries[i])
		if !props[i].required {
			next = c.opt(next)
		}
		rest = c.rule("rest", seq(next, rest))
	}
	if len(starts) == 0 {
		return nil, true
	}
	slices.Reverse(starts)
	e := alt(starts...)
	return &e, optional
}

// keyUnit is one spelled character of a key: itself or its short escape.
type keyUnit string

func keyUnits(key string) []keyUnit {
	spelled := []rune(quote(key))
	spelled = spelled[1 : len(spelled)-1]
	var out []keyUnit
	for i := 0; i < len(spelled); i++ {
		n := 1
		if spelled[i] == '\\' {
			n = 2
			if spelled[i+1] == 'u' {
				n = 6
			}
		}
		out = append(out, keyUnit(spelled[i:i+n]))
		i += n - 1
	}
	return out
}

// keyTree holds the names that an additional property may not have.
type keyTree struct {
	units []keyUnit
	next  map[keyUnit]*keyTree
	whole bool
}

func (t *keyTree) add(units []keyUnit) {
	for _, u := range units {
		if t.next == nil {
			t.next = map[keyUnit]*keyTree{}
		}
		if t.next[u] == nil {
			t.next[u] = &keyTree{}
			t.units = append(t.units, u)
		}
		t = t.next[u]
	}
	t.whole = true
}

// keyEscapes are the escapes that additional keys use: one spelling for each
// character, so that a name can be excluded.
const keyEscapes = `"\bfnrt`

// otherKey is a quoted key that is none of names.
func (c *compiler) otherKey(names []string) expr {
	if len(names) == 0 {
		return c.text(0, -1)
	}
	root := &keyTree{}
	for _, name := range names {
		root.add(keyUnits(name))
	}
	unit := c.rule("key-char", alt(class(0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, 0x10ffff),
		seq(lit(`\`), escapeClass(nil))))
	return seq(lit(`"`), c.notIn(root, unit), lit(`"`))
}

// notIn matches what leads out of the tree, or ends inside it where no name
// does.
func (c *compiler) notIn(t *keyTree, unit expr) expr {
	var alts []expr
	for _, u := range t.units {
		alts = append(alts, seq(lit(string(u)), c.notIn(t.next[u], unit)))
	}
	var chars []rune
	var escapes []byte
	for _, u := range t.units {
		if len(u) == 2 && u[0] == '\\' {
			escapes = append(escapes, u[1])
		} else if len([]rune(u)) == 1 {
			chars = append(chars, []rune(u)[0])
		}
	}
	first := exclude([]rune{0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, 0x10ffff}, chars)
	alts = append(alts, seq(class(first...), c.many(unit)))
	if len(escapes) < len(keyEscapes) {
		alts = append(alts, seq(lit(`\`), escapeClass(escapes), c.many(unit)))
	}
	if !t.whole {
		alts = append(alts, empty)
	}
	return c.rule("other-key", alt(alts...))
}

// escapeClass is the letters of keyEscapes without some.
func escapeClass(without []byte) expr {
	var pairs []rune
	for _, r := range keyEscapes {
		if !slices.Contains(without, byte(r)) {
			pairs = append(pairs, r, r)
		}
	}
	return class(pairs...)
}

// exclude takes single characters out of sorted ranges.
func exclude(ranges, chars []rune) []rune {
	slices.Sort(chars)
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for _, r := range chars {
			if r < lo || r > hi {
				continue
			}
			if r > lo {
				out = append(out, lo, r-1)
			}
			lo = r + 1
		}
		if lo <= hi {
			out = append(out, lo, hi)
		}
	}
	return out
}
