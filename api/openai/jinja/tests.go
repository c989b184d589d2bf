package jinja

import (
	"strings"
	"unicode"
)

// tests are set in init since select and reject apply them by name.
var tests map[string]func(r *run, a args) bool

func init() {
	is := func(name string) func(*run, args) bool {
		return func(_ *run, a args) bool { return typeName(a.pos[0]) == name }
	}
	cmp := func(ok func(c int) bool) func(*run, args) bool {
		return func(r *run, a args) bool { return ok(r.compare(a.pos[0], a.at(1, "other", Undefined{}))) }
	}
	eq := func(r *run, a args) bool { return r.equal(a.pos[0], a.at(1, "other", Undefined{})) }
	ne := func(r *run, a args) bool { return !eq(r, a) }
	lt, le := cmp(func(c int) bool { return c < 0 }), cmp(func(c int) bool { return c <= 0 })
	gt, ge := cmp(func(c int) bool { return c > 0 }), cmp(func(c int) bool { return c >= 0 })
	tests = map[string]func(r *run, a args) bool{
		"defined":   func(_ *run, a args) bool { return !isUndefined(a.pos[0]) },
		"undefined": func(_ *run, a args) bool { return isUndefined(a.pos[0]) },
		"none":      is("None"), "boolean": is("bool"), "integer": is("int"), "float": is("float"),
		"string": is("str"), "mapping": is("dict"),
		"true":  func(_ *run, a args) bool { return a.pos[0] == Value(true) },
		"false": func(_ *run, a args) bool { return a.pos[0] == Value(false) },
		"number": func(_ *run, a args) bool {
			_, ok := number(a.pos[0])
			return ok
		},
		"iterable": func(_ *run, a args) bool { return holdsItems(a.pos[0]) || isUndefined(a.pos[0]) },
		"sequence": func(_ *run, a args) bool { return holdsItems(a.pos[0]) || isUndefined(a.pos[0]) },
		"callable": func(_ *run, a args) bool {
			_, ok := a.pos[0].(*callable)
			return ok
		},
		"odd":  func(r *run, a args) bool { return arith("%", a.pos[0], int64(2)) != Value(int64(0)) },
		"even": func(r *run, a args) bool { return arith("%", a.pos[0], int64(2)) == Value(int64(0)) },
		"divisibleby": func(r *run, a args) bool {
			return arith("%", a.pos[0], a.at(1, "num", int64(1))) == Value(int64(0))
		},
		"in":     func(r *run, a args) bool { return r.contains(a.at(1, "seq", Undefined{}), a.pos[0]) },
		"sameas": eq, "eq": eq, "equalto": eq, "ne": ne,
		"lt": lt, "lessthan": lt, "le": le,
		"gt": gt, "greaterthan": gt, "ge": ge,
		"lower": func(r *run, a args) bool { return !strings.ContainsFunc(r.text(a.pos[0]), unicode.IsUpper) },
		"upper": func(r *run, a args) bool { return !strings.ContainsFunc(r.text(a.pos[0]), unicode.IsLower) },
		"filter": func(_ *run, a args) bool {
			s, _ := a.pos[0].(string)
			return filters[s] != nil
		},
	}
}

func holdsItems(v Value) bool {
	switch v.(type) {
	case string, *List, *Dict:
		return true
	}
	return false
}
