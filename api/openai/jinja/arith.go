package jinja

import (
	"math"
	"strconv"
	"strings"
)

func (e *binaryExpr) eval(r *run, f *frame) Value {
	r.step(1)
	x := e.x.eval(r, f)
	switch e.op {
	case "and":
		if !truthy(x) {
			return x
		}
		return e.y.eval(r, f)
	case "or":
		if truthy(x) {
			return x
		}
		return e.y.eval(r, f)
	}
	y := e.y.eval(r, f)
	switch e.op {
	case "~":
		return r.join(r.text(x), r.text(y))
	case "+":
		if s, ok := x.(string); ok {
			if t, ok := y.(string); ok {
				return r.join(s, t)
			}
		}
		if l, ok := x.(*List); ok {
			if m, ok := y.(*List); ok {
				r.step(len(l.Items) + len(m.Items))
				return &List{Items: append(append([]Value{}, l.Items...), m.Items...), tuple: l.tuple}
			}
		}
	case "*":
		if v, ok := r.repeat(x, y); ok {
			return v
		}
		if v, ok := r.repeat(y, x); ok {
			return v
		}
	case "%":
		if s, ok := x.(string); ok {
			return r.printf(s, y)
		}
	}
	return arith(e.op, x, y)
}

func (r *run) join(s, t string) string {
	r.made(len(s) + len(t))
	return s + t
}

// repeat is "x" * n and [x] * n.
func (r *run) repeat(x, n Value) (Value, bool) {
	k, ok := n.(int64)
	if !ok {
		return nil, false
	}
	k = max(k, 0)
	switch v := x.(type) {
	case string:
		if v != "" && k > RenderBytes/int64(len(v)) {
			fail(ErrLimit, "a text repeated %d times", k)
		}
		r.made(len(v) * int(k))
		return strings.Repeat(v, int(k)), true
	case *List:
		if len(v.Items) > 0 && k > RenderSteps/int64(len(v.Items)) {
			fail(ErrLimit, "a list repeated %d times", k)
		}
		r.step(len(v.Items) * int(k))
		l := &List{tuple: v.tuple}
		for range k {
			l.Items = append(l.Items, v.Items...)
		}
		return l, true
	}
	return nil, false
}

func arith(op string, x, y Value) Value {
	a, aok := number(x)
	b, bok := number(y)
	if !aok || !bok {
		fail(ErrRender, "%s %s %s has no meaning", typeName(x), op, typeName(y))
	}
	i, iok := whole(x)
	j, jok := whole(y)
	both := iok && jok
	if b == 0 && (op == "/" || op == "//" || op == "%") {
		fail(ErrRender, "division by zero")
	}
	switch op {
	case "+":
		if both {
			return i + j
		}
		return a + b
	case "-":
		if both {
			return i - j
		}
		return a - b
	case "*":
		if both {
			return i * j
		}
		return a * b
	case "/":
		return a / b
	case "//":
		if both {
			q := i / j
			if i%j != 0 && (i < 0) != (j < 0) {
				q--
			}
			return q
		}
		return math.Floor(a / b)
	case "%":
		if both {
			m := i % j
			if m != 0 && (m < 0) != (j < 0) {
				m += j
			}
			return m
		}
		return a - b*math.Floor(a/b)
	}
	p := math.Pow(a, b)
	if both && j >= 0 && math.Abs(p) < 1<<53 {
		return int64(p)
	}
	return p
}

func whole(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		return intOf(v), true
	}
	return 0, false
}

// printf is the % operator on strings for the verbs that templates use:
// %s, %r, %d, %f with an optional precision, and %%.
func (r *run) printf(format string, v Value) Value {
	rest := []Value{v}
	if l, ok := v.(*List); ok && l.tuple {
		rest = l.Items
	}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		prec := 6
		i++
		if i+1 < len(format) && format[i] == '.' && format[i+1] >= '0' && format[i+1] <= '9' {
			prec = int(format[i+1] - '0')
			i += 2
		}
		if i >= len(format) {
			fail(ErrRender, "incomplete format %q", format)
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if len(rest) == 0 {
			fail(ErrRender, "not enough values for format %q", format)
		}
		r.verb(&b, format[i], prec, rest[0])
		rest = rest[1:]
	}
	r.made(b.Len())
	return b.String()
}

func (r *run) verb(b *strings.Builder, verb byte, prec int, v Value) {
	switch verb {
	case 's':
		b.WriteString(r.text(v))
		return
	case 'r':
		r.repr(b, v, 0)
		return
	case 'd', 'f':
		n, ok := number(v)
		if !ok {
			fail(ErrRender, "%%%c needs a number, not %s", verb, typeName(v))
		}
		if verb == 'f' {
			b.WriteString(strconv.FormatFloat(n, 'f', prec, 64))
			return
		}
		if i, ok := whole(v); ok {
			b.WriteString(strconv.FormatInt(i, 10))
			return
		}
		b.WriteString(strconv.FormatFloat(math.Trunc(n), 'f', 0, 64))
		return
	}
	fail(ErrRender, "format %%%c is not supported", verb)
}
