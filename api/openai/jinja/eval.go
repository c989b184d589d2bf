package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

func (e literal) eval(*run, *frame) Value { return e.v }

func (e nameExpr) eval(r *run, f *frame) Value {
	r.step(1)
	return f.get(e.name)
}

func (e *listExpr) eval(r *run, f *frame) Value {
	l := &List{Items: make([]Value, len(e.items)), tuple: e.tuple}
	for i, x := range e.items {
		l.Items[i] = x.eval(r, f)
	}
	r.step(len(e.items))
	return l
}

func (e *dictExpr) eval(r *run, f *frame) Value {
	d := NewDict()
	for i, k := range e.keys {
		r.step(1)
		d.Set(r.text(k.eval(r, f)), e.vals[i].eval(r, f))
	}
	return d
}

func (e *attrExpr) eval(r *run, f *frame) Value {
	r.step(1)
	of := e.of.eval(r, f)
	if m := r.method(of, e.name); m != nil {
		return m
	}
	return r.member(of, e.name)
}

// member is the field of a value, or undefined.
func (r *run) member(of Value, name string) Value {
	switch v := of.(type) {
	case *Dict:
		if x, ok := v.vals[name]; ok {
			return x
		}
	case *namespace:
		if x, ok := v.d.vals[name]; ok {
			return x
		}
	case *loopVar:
		return v.attr(r, name)
	case Undefined:
		fail(ErrRender, "%q is undefined, it has no %q", v.Name, name)
	}
	return Undefined{name}
}

func (e *indexExpr) eval(r *run, f *frame) Value {
	r.step(1)
	of, at := e.of.eval(r, f), e.at.eval(r, f)
	switch at := at.(type) {
	case string:
		if v := r.member(of, at); !isUndefined(v) {
			return v
		}
		if m := r.method(of, at); m != nil {
			return m
		}
		return Undefined{at}
	case int64:
		return r.element(of, at)
	}
	if u, ok := of.(Undefined); ok {
		fail(ErrRender, "%q is undefined", u.Name)
	}
	return Undefined{typeName(at)}
}

func (r *run) element(of Value, at int64) Value {
	switch v := of.(type) {
	case *List:
		if at < 0 {
			at += int64(len(v.Items))
		}
		if at >= 0 && at < int64(len(v.Items)) {
			return v.Items[at]
		}
	case string:
		s := r.slice(v, at, at+1, 1)
		if at == -1 {
			s = r.slice(v, -1, math.MaxInt64, 1)
		}
		if s != "" {
			return s
		}
	case Undefined:
		fail(ErrRender, "%q is undefined", v.Name)
	}
	return Undefined{"element"}
}

func (e *sliceExpr) eval(r *run, f *frame) Value {
	of := e.of.eval(r, f)
	step := int64(1)
	if e.step != nil {
		if v, ok := e.step.eval(r, f).(int64); ok {
			step = v
		}
	}
	if step == 0 {
		fail(ErrRender, "slice step is zero")
	}
	from, to := int64(0), int64(math.MaxInt64)
	if step < 0 {
		from, to = math.MaxInt64, math.MinInt64
	}
	if e.from != nil {
		if v, ok := e.from.eval(r, f).(int64); ok {
			from = v
		}
	}
	if e.to != nil {
		if v, ok := e.to.eval(r, f).(int64); ok {
			to = v
		}
	}
	switch v := of.(type) {
	case *List:
		l := &List{tuple: v.tuple}
		sliced(int64(len(v.Items)), from, to, step, func(i int64) {
			r.step(1)
			l.Items = append(l.Items, v.Items[i])
		})
		return l
	case string:
		return r.slice(v, from, to, step)
	}
	fail(ErrRender, "%s can't be sliced", typeName(of))
	return nil
}

// sliced calls visit for each index of a Python slice of n items.
func sliced(n, from, to, step int64, visit func(i int64)) {
	low, high := int64(0), n
	if step < 0 {
		low, high = -1, n-1
	}
	clip := func(i int64) int64 {
		if i < 0 && i != math.MinInt64 {
			i += n
		}
		return max(low, min(high, i))
	}
	from, to = clip(from), clip(to)
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		visit(i)
		if step > n || step < -n {
			return
		}
	}
}

func (r *run) slice(s string, from, to, step int64) string {
	r.step(len(s)/64 + 1)
	if step == 1 && utf8.RuneCountInString(s) == len(s) {
		n := int64(len(s))
		clip := func(i int64) int64 {
			if i < 0 {
				i += n
			}
			return max(0, min(n, i))
		}
		if from, to = clip(from), clip(to); from < to {
			return s[from:to]
		}
		return ""
	}
	runes := []rune(s)
	r.made(4 * len(runes))
	var b strings.Builder
	sliced(int64(len(runes)), from, to, step, func(i int64) { b.WriteRune(runes[i]) })
	return b.String()
}

func (e *callExpr) prepare(r *run, f *frame) (Value, args) {
	return e.fn.eval(r, f), e.args.eval(r, f)
}

func (e *callExpr) eval(r *run, f *frame) Value {
	return r.call(e.prepare(r, f))
}

func (r *run) call(fn Value, a args) Value {
	r.step(1)
	switch v := fn.(type) {
	case *callable:
		return v.fn(r, a)
	case *loopVar:
		if v.again != nil {
			return v.again.fn(r, a)
		}
	case Undefined:
		fail(ErrRender, "%q is undefined and can't be called", v.Name)
	}
	fail(ErrRender, "%s can't be called", typeName(fn))
	return nil
}

func (c *callArgs) eval(r *run, f *frame) args {
	var a args
	for _, x := range c.pos {
		a.pos = append(a.pos, x.eval(r, f))
	}
	if c.spread != nil {
		a.pos = append(a.pos, r.items(c.spread.eval(r, f))...)
	}
	if len(c.names) > 0 {
		a.kw = NewDict()
		for i, n := range c.names {
			a.kw.Set(n, c.kw[i].eval(r, f))
		}
	}
	return a
}

func (e *filterExpr) eval(r *run, f *frame) Value {
	return e.apply(r, f, e.of.eval(r, f))
}

// apply runs the filter with v as its first argument.
func (e *filterExpr) apply(r *run, f *frame, v Value) Value {
	r.step(1)
	a := e.args.eval(r, f)
	a.pos = append([]Value{v}, a.pos...)
	return filters[e.name](r, a)
}

func (e *testExpr) eval(r *run, f *frame) Value {
	r.step(1)
	a := e.args.eval(r, f)
	a.pos = append([]Value{e.of.eval(r, f)}, a.pos...)
	return tests[e.name](r, a) != e.not
}

func (e *condExpr) eval(r *run, f *frame) Value {
	if truthy(e.test.eval(r, f)) {
		return e.yes.eval(r, f)
	}
	if e.no == nil {
		return Undefined{"the value of an if without else"}
	}
	return e.no.eval(r, f)
}

func (e *unaryExpr) eval(r *run, f *frame) Value {
	v := e.x.eval(r, f)
	if e.op == "not" {
		return !truthy(v)
	}
	switch n := v.(type) {
	case bool:
		v = intOf(n)
	case int64, float64:
	default:
		fail(ErrRender, "%s has no sign", typeName(v))
	}
	if e.op == "-" {
		if i, ok := v.(int64); ok {
			return -i
		}
		return -v.(float64)
	}
	return v
}

func (e *compareExpr) eval(r *run, f *frame) Value {
	x := e.x.eval(r, f)
	for i, op := range e.ops {
		y := e.rest[i].eval(r, f)
		var ok bool
		switch op {
		case "==":
			ok = r.equal(x, y)
		case "!=":
			ok = !r.equal(x, y)
		case "in":
			ok = r.contains(y, x)
		case "not in":
			ok = !r.contains(y, x)
		case "<":
			ok = r.compare(x, y) < 0
		case "<=":
			ok = r.compare(x, y) <= 0
		case ">":
			ok = r.compare(x, y) > 0
		default:
			ok = r.compare(x, y) >= 0
		}
		if !ok {
			return false
		}
		x = y
	}
	return true
}

func (r *run) contains(in, x Value) bool {
	switch v := in.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			fail(ErrRender, "'in' a str needs a str, not %s", typeName(x))
		}
		r.step(len(v)/64 + 1)
		return strings.Contains(v, s)
	case *List:
		for _, it := range v.Items {
			if r.equal(it, x) {
				return true
			}
		}
		return false
	case *Dict:
		s, ok := x.(string)
		if !ok {
			return false
		}
		_, ok = v.vals[s]
		return ok
	case Undefined:
		return false
	}
	fail(ErrRender, "%s holds nothing, so 'in' can't be asked", typeName(in))
	return false
}
