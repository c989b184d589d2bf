package grammar

import "slices"

// compileMerged turns a conjunction of keywords into an expression.
func (c *compiler) compileMerged(m *merged, depth int) (expr, error) {
	if m.alts != nil {
		return c.alternatives(*m.alts, m, depth)
	}
	if _, ok := m.kw["enum"]; ok {
		return c.enumerate(m)
	}
	if _, ok := m.kw["const"]; ok {
		return c.enumerate(m)
	}
	types := m.types
	if types == nil {
		types = m.inferred()
	}
	if types == nil {
		return c.any(), nil
	}
	if slices.Contains(types, "number") {
		types = slices.DeleteFunc(slices.Clone(types), func(s string) bool { return s == "integer" })
	}
	out := make([]expr, 0, len(types))
	for _, name := range types {
		e, err := c.compileType(m, name, depth)
		if err != nil {
			return expr{}, err
		}
		out = append(out, e)
	}
	return alt(out...), nil
}

// inferred are the types that the keywords speak of, where "type" is missing.
func (m *merged) inferred() []string {
	found := map[string]bool{}
	for name := range m.kw {
		if name == "properties" || name == "required" {
			found["object"] = true
		} else {
			found[plain[name]] = true
		}
	}
	var out []string
	for _, name := range typeNames {
		if found[name] {
			out = append(out, name)
		}
	}
	return out
}

func (c *compiler) compileType(m *merged, name string, depth int) (expr, error) {
	switch name {
	case "null":
		return lit("null"), nil
	case "boolean":
		return boolean(), nil
	case "integer", "number":
		return c.numeric(m, name == "integer")
	case "string":
		return c.str(m)
	case "array":
		return c.array(m, depth)
	}
	return c.object(m, depth)
}

// enumerate compiles enum and const.
func (c *compiler) enumerate(m *merged) (expr, error) {
	list, isEnum := m.kw["enum"]
	one, isConst := m.kw["const"]
	if !isEnum {
		list = one
	}
	if other := m.firstOther(); other != "" {
		return expr{}, errAt(m.kw[other].at, "can't be combined with %s", list.at)
	}
	values := []*value{one.val}
	if isEnum {
		if list.val.kind != vArray || len(list.val.items) == 0 || len(list.val.items) > MaxEnum {
			return expr{}, errAt(list.at, "must be a list of 1 to %d values", MaxEnum)
		}
		values = list.val.items
	}
	var out []expr
	for _, v := range values {
		if m.types != nil && !m.admits(v.typeName()) || isEnum && isConst && !v.equal(one.val) {
			continue
		}
		if v.kind == vNumber && len(v.text) > MaxIntegerDigits+MaxFractionDigits+2 {
			return expr{}, errAt(list.at, "the number %.40s is too long", v.text)
		}
		out = append(out, c.constant(v))
	}
	if len(out) == 0 {
		return expr{}, errAt(list.at, "no value is left")
	}
	return alt(out...), nil
}

func (m *merged) admits(typeName string) bool {
	return slices.Contains(m.types, typeName) || typeName == "integer" && slices.Contains(m.types, "number")
}

// firstOther is the first keyword by name beside enum and const.
func (m *merged) firstOther() string {
	var names []string
	for name := range m.kw {
		if name != "enum" && name != "const" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// count reads a count, which defaults to def.
func (m *merged) count(name string, def int) (int, error) {
	kw, ok := m.kw[name]
	if !ok {
		return def, nil
	}
	r, valid := rat(kw.val)
	if !valid || !r.IsInt() || r.Sign() < 0 {
		return 0, errAt(kw.at, "must be a whole number that is not negative")
	}
	if !r.Num().IsInt64() || r.Num().Int64() > MaxCount {
		return 0, errAt(kw.at, "larger than %d", MaxCount)
	}
	return int(r.Num().Int64()), nil
}

// counts reads a pair of bounds; max is -1 if there is none.
func (m *merged) counts(minName, maxName string) (lo, hi int, err error) {
	if lo, err = m.count(minName, 0); err != nil {
		return 0, 0, err
	}
	if hi, err = m.count(maxName, -1); err != nil {
		return 0, 0, err
	}
	if hi >= 0 && lo > hi {
		return 0, 0, errAt(m.kw[maxName].at, "less than %s", minName)
	}
	return lo, hi, nil
}

// array compiles items, prefixItems and their counts.
func (c *compiler) array(m *merged, depth int) (expr, error) {
	lo, hi, err := m.counts("minItems", "maxItems")
	if err != nil {
		return expr{}, err
	}
	prefix, err := c.prefixItems(m, depth)
	if err != nil {
		return expr{}, err
	}
	if hi >= 0 && len(prefix) > hi {
		prefix = prefix[:hi]
	}
	rest, open, err := c.restItems(m, len(prefix), lo, depth)
	if err != nil {
		return expr{}, err
	}
	if !open && (hi < 0 || hi > len(prefix)) {
		hi = len(prefix)
	}
	if hi >= 0 && lo > hi {
		return expr{}, errAt(m.kw["minItems"].at, "more than there can be items")
	}
	if hi == 0 {
		return seq(lit("["), c.ws(), lit("]")), nil
	}
	body := c.itemList(prefix, rest, lo, hi)
	if lo == 0 {
		body = c.opt(seq(body, c.ws()))
	} else {
		body = seq(body, c.ws())
	}
	return c.rule("array", seq(lit("["), c.ws(), body, lit("]"))), nil
}

func (c *compiler) prefixItems(m *merged, depth int) ([]expr, error) {
	kw, ok := m.kw["prefixItems"]
	if !ok {
		return nil, nil
	}
	if kw.val.kind != vArray || len(kw.val.items) == 0 || len(kw.val.items) > MaxProperties {
		return nil, errAt(kw.at, "must be a list of 1 to %d schemas", MaxProperties)
	}
	if items, ok := m.kw["items"]; ok && m.from["items"] != m.from["prefixItems"] {
		return nil, errAt(items.at, "can't be merged with %s", kw.at)
	}
	out := make([]expr, 0, len(kw.val.items))
	for i, s := range kw.val.items {
		e, err := c.compile(s, indexed(kw.at, i), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, c.rule("item", e))
	}
	return out, nil
}

// restItems is the schema of the items after the prefix; open tells whether
// there may be any.
func (c *compiler) restItems(m *merged, prefix, lo, depth int) (e expr, open bool, err error) {
	kw, ok := m.kw["items"]
	switch {
	case !ok && prefix > 0 && lo <= prefix:
		return empty, false, nil
	case !ok:
		return c.any(), true, nil
	case kw.val.kind == vBool && !kw.val.truth:
		return empty, false, nil
	}
	e, err = c.compile(kw.val, kw.at, depth+1)
	if err != nil {
		return expr{}, false, err
	}
	return c.rule("item", e), true, nil
}

// itemList is the items of an array that has at least one: from lo (or 1) to
// hi of them, the first after the schemas of prefix.
func (c *compiler) itemList(prefix []expr, rest expr, lo, hi int) expr {
	n := len(prefix)
	if n == 0 {
		more := -1
		if hi > 0 {
			more = hi - 1
		}
		return seq(rest, c.rep(seq(c.comma(), rest), max(lo-1, 0), more))
	}
	tail := empty
	if hi < 0 || hi > n {
		more := -1
		if hi > 0 {
			more = hi - n
		}
		tail = c.rep(seq(c.comma(), rest), max(lo-n, 0), more)
	}
	// From the last to the second: each brings those after it, if it comes.
	for i := n - 1; i > 0; i-- {
		tail = seq(c.comma(), prefix[i], tail)
		if i >= lo {
			tail = c.opt(tail)
		} else {
			tail = c.rule("items", tail)
		}
	}
	return seq(prefix[0], tail)
}
