package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filters are set in init since some of them apply others by name.
var filters map[string]func(r *run, a args) Value

func init() {
	filters = map[string]func(r *run, a args) Value{
		"tojson": func(r *run, a args) Value { return r.toJSON(a.pos[0], a) },
		"trim":   func(r *run, a args) Value { return strip(r.text(a.pos[0]), args{pos: a.pos[1:], kw: a.kw}, true, true) },
		"length": length,
		"count":  length,
		"join": func(r *run, a args) Value {
			return joinItems(r, a.pos[0], r.text(a.at(1, "d", "")), a.str(2, "attribute", ""))
		},
		"default":    defaultFilter,
		"d":          defaultFilter,
		"list":       func(r *run, a args) Value { return &List{Items: r.items(a.pos[0])} },
		"string":     func(r *run, a args) Value { return r.text(a.pos[0]) },
		"safe":       func(r *run, a args) Value { return r.text(a.pos[0]) },
		"int":        toInt,
		"float":      toFloat,
		"abs":        absFilter,
		"round":      round,
		"lower":      func(r *run, a args) Value { return r.fresh(strings.ToLower(r.text(a.pos[0]))) },
		"upper":      func(r *run, a args) Value { return r.fresh(strings.ToUpper(r.text(a.pos[0]))) },
		"capitalize": func(r *run, a args) Value { return r.fresh(capitalize(r.text(a.pos[0]))) },
		"title":      func(r *run, a args) Value { return r.fresh(titleWords(r.text(a.pos[0]))) },
		"replace":    func(r *run, a args) Value { return replace(r, r.text(a.pos[0]), a, 1) },
		"first":      func(r *run, a args) Value { return r.element(&List{Items: r.items(a.pos[0])}, 0) },
		"last":       func(r *run, a args) Value { return r.element(&List{Items: r.items(a.pos[0])}, -1) },
		"reverse":    reverse,
		"sort":       sortFilter,
		"unique":     unique,
		"map":        mapFilter,
		"select":     func(r *run, a args) Value { return selectItems(r, a, true) },
		"reject":     func(r *run, a args) Value { return selectItems(r, a, false) },
		"selectattr": func(r *run, a args) Value { return selectAttr(r, a, true) },
		"rejectattr": func(r *run, a args) Value { return selectAttr(r, a, false) },
		"items":      itemsFilter,
		"dictsort":   dictSort,
		"indent":     indent,
		"min":        func(r *run, a args) Value { return extreme(r, a, -1) },
		"max":        func(r *run, a args) Value { return extreme(r, a, 1) },
		"sum":        sum,
		"wordcount":  func(r *run, a args) Value { return int64(len(strings.Fields(r.text(a.pos[0])))) },
		"escape":     escape,
		"e":          escape,
		"attr":       func(r *run, a args) Value { return r.member(a.pos[0], a.str(1, "name", "")) },
		"format":     func(r *run, a args) Value { return r.printf(r.text(a.pos[0]), &List{Items: a.pos[1:], tuple: true}) },
		"batch":      batch,
	}
}

// titleWords begins each word with a capital; unlike str.title, an
// apostrophe does not begin a word.
func titleWords(s string) string {
	start := true
	return strings.Map(func(c rune) rune {
		first := start
		start = unicode.IsSpace(c) || strings.ContainsRune("-({[<", c)
		if first {
			return unicode.ToTitle(c)
		}
		return unicode.ToLower(c)
	}, s)
}

func length(r *run, a args) Value {
	switch v := a.pos[0].(type) {
	case string:
		r.step(len(v)/64 + 1)
		return int64(utf8.RuneCountInString(v))
	case *List:
		return int64(len(v.Items))
	case *Dict:
		return int64(len(v.keys))
	case Undefined:
		return int64(0)
	}
	fail(ErrRender, "%s has no length", typeName(a.pos[0]))
	return nil
}

func joinItems(r *run, v Value, sep, attr string) string {
	var b strings.Builder
	for i, it := range r.items(v) {
		if i > 0 {
			b.WriteString(sep)
		}
		if attr != "" {
			it = r.path(it, attr)
		}
		b.WriteString(r.text(it))
		if b.Len() > OutputBytes {
			fail(ErrLimit, "joined text longer than %d bytes", OutputBytes)
		}
	}
	r.made(b.Len())
	return b.String()
}

// path follows a dotted name, whose parts may be numbers.
func (r *run) path(v Value, dotted string) Value {
	for _, name := range strings.Split(dotted, ".") {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			v = r.element(v, n)
		} else {
			v = r.member(v, name)
		}
	}
	return v
}

func defaultFilter(_ *run, a args) Value {
	v := a.pos[0]
	if isUndefined(v) || truthy(a.at(2, "boolean", false)) && !truthy(v) {
		return a.at(1, "default_value", "")
	}
	return v
}

func toInt(r *run, a args) Value {
	switch v := a.pos[0].(type) {
	case int64:
		return v
	case bool:
		return intOf(v)
	case float64:
		if math.Abs(v) < math.MaxInt64 {
			return int64(v)
		}
	case string:
		s := strings.TrimSpace(v)
		if n, err := strconv.ParseInt(s, int(a.num(2, "base", 10)), 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < math.MaxInt64 {
			return int64(f)
		}
	}
	return a.at(1, "default", int64(0))
}

func toFloat(_ *run, a args) Value {
	if f, ok := number(a.pos[0]); ok {
		return f
	}
	if s, ok := a.pos[0].(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f
		}
	}
	return a.at(1, "default", 0.0)
}

func absFilter(_ *run, a args) Value {
	if i, ok := whole(a.pos[0]); ok {
		return max(i, -i)
	}
	f, ok := number(a.pos[0])
	if !ok {
		fail(ErrRender, "abs needs a number, not %s", typeName(a.pos[0]))
	}
	return math.Abs(f)
}

func round(r *run, a args) Value {
	f, ok := number(a.pos[0])
	if !ok {
		fail(ErrRender, "round needs a number, not %s", typeName(a.pos[0]))
	}
	scale := math.Pow(10, float64(max(-300, min(300, a.num(1, "precision", 0)))))
	switch a.str(2, "method", "common") {
	case "ceil":
		return math.Ceil(f*scale) / scale
	case "floor":
		return math.Floor(f*scale) / scale
	}
	return math.RoundToEven(f*scale) / scale
}

func reverse(r *run, a args) Value {
	if s, ok := a.pos[0].(string); ok {
		return r.slice(s, math.MaxInt64, math.MinInt64, -1)
	}
	l := &List{Items: slices.Clone(r.items(a.pos[0]))}
	slices.Reverse(l.Items)
	return l
}

// keyOf prepares a value for ordering: its attribute, in lower case unless
// case matters.
func (r *run) keyOf(v Value, attr string, exact bool) Value {
	if attr != "" {
		v = r.path(v, attr)
	}
	if s, ok := v.(string); ok && !exact {
		return strings.ToLower(s)
	}
	return v
}

func sortFilter(r *run, a args) Value {
	attr, exact := a.str(3, "attribute", ""), truthy(a.at(2, "case_sensitive", false))
	l := &List{Items: slices.Clone(r.items(a.pos[0]))}
	slices.SortStableFunc(l.Items, func(x, y Value) int {
		c := r.compare(r.keyOf(x, attr, exact), r.keyOf(y, attr, exact))
		if truthy(a.at(1, "reverse", false)) {
			return -c
		}
		return c
	})
	return l
}

func unique(r *run, a args) Value {
	attr, exact := a.str(2, "attribute", ""), truthy(a.at(1, "case_sensitive", false))
	l, seen := &List{}, &List{}
	for _, it := range r.items(a.pos[0]) {
		if k := r.keyOf(it, attr, exact); !r.contains(seen, k) {
			seen.Items = append(seen.Items, k)
			l.Items = append(l.Items, it)
		}
	}
	return l
}

func mapFilter(r *run, a args) Value {
	l := &List{}
	attr := a.str(-1, "attribute", "")
	name := a.str(1, "", "")
	if attr == "" && filters[name] == nil {
		fail(ErrRender, "map: no filter named %q", name)
	}
	for _, it := range r.items(a.pos[0]) {
		r.step(1)
		if attr != "" {
			v := r.path(it, attr)
			if d := a.at(-1, "default", nil); d != nil && isUndefined(v) {
				v = d
			}
			l.Items = append(l.Items, v)
			continue
		}
		l.Items = append(l.Items, filters[name](r, args{pos: append([]Value{it}, a.pos[2:]...), kw: a.kw}))
	}
	return l
}

func selectItems(r *run, a args, want bool) Value {
	return choose(r, a.pos[0], a.pos[1:], want, func(v Value) Value { return v })
}

func selectAttr(r *run, a args, want bool) Value {
	attr := a.str(1, "", "")
	return choose(r, a.pos[0], a.pos[min(2, len(a.pos)):], want, func(v Value) Value { return r.path(v, attr) })
}

// choose keeps the items whose key passes the test named in how[0] (or is
// true without one) exactly when want is set.
func choose(r *run, v Value, how []Value, want bool, key func(Value) Value) Value {
	l := &List{}
	for _, it := range r.items(v) {
		r.step(1)
		ok := truthy(key(it))
		if len(how) > 0 {
			name, _ := how[0].(string)
			if tests[name] == nil {
				fail(ErrRender, "no test named %q", name)
			}
			ok = tests[name](r, args{pos: append([]Value{key(it)}, how[1:]...)})
		}
		if ok == want {
			l.Items = append(l.Items, it)
		}
	}
	return l
}

func itemsFilter(r *run, a args) Value {
	switch v := a.pos[0].(type) {
	case *Dict:
		return r.pairs(v)
	case Undefined:
		return &List{}
	}
	fail(ErrRender, "items needs a dict, not %s", typeName(a.pos[0]))
	return nil
}

func dictSort(r *run, a args) Value {
	d, ok := a.pos[0].(*Dict)
	if !ok {
		fail(ErrRender, "dictsort needs a dict, not %s", typeName(a.pos[0]))
	}
	exact, at := truthy(a.at(1, "case_sensitive", false)), int64(0)
	if a.str(2, "by", "key") == "value" {
		at = 1
	}
	l := r.pairs(d).(*List)
	slices.SortStableFunc(l.Items, func(x, y Value) int {
		c := r.compare(r.keyOf(r.element(x, at), "", exact), r.keyOf(r.element(y, at), "", exact))
		if truthy(a.at(3, "reverse", false)) {
			return -c
		}
		return c
	})
	return l
}

func indent(r *run, a args) Value {
	pad, ok := a.at(1, "width", int64(4)).(string)
	if !ok {
		pad = strings.Repeat(" ", int(max(0, min(256, a.num(1, "width", 4)))))
	}
	first, blank := truthy(a.at(2, "first", false)), truthy(a.at(3, "blank", false))
	var b strings.Builder
	for i, line := range strings.Split(r.text(a.pos[0]), "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		if (i > 0 || first) && (line != "" || blank) {
			b.WriteString(pad)
		}
		b.WriteString(line)
		if b.Len() > OutputBytes {
			fail(ErrLimit, "indented text longer than %d bytes", OutputBytes)
		}
	}
	r.made(b.Len())
	return b.String()
}

func extreme(r *run, a args, sign int) Value {
	attr := a.str(2, "attribute", "")
	var best Value = Undefined{"extreme of nothing"}
	for i, it := range r.items(a.pos[0]) {
		if i == 0 || sign*r.compare(r.keyOf(it, attr, false), r.keyOf(best, attr, false)) > 0 {
			best = it
		}
	}
	return best
}

func sum(r *run, a args) Value {
	total := a.at(2, "start", int64(0))
	for _, it := range r.items(a.pos[0]) {
		if attr := a.str(1, "attribute", ""); attr != "" {
			it = r.path(it, attr)
		}
		total = arith("+", total, it)
	}
	return total
}

func escape(r *run, a args) Value {
	return r.fresh(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(r.text(a.pos[0])))
}

func batch(r *run, a args) Value {
	n := int(max(1, a.num(1, "linecount", 1)))
	out := &List{}
	for part := range slices.Chunk(r.items(a.pos[0]), n) {
		row := &List{Items: slices.Clone(part)}
		for fill := a.at(2, "fill_with", nil); fill != nil && len(row.Items) < n && n <= 1024; {
			row.Items = append(row.Items, fill)
		}
		out.Items = append(out.Items, row)
	}
	return out
}
