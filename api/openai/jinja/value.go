package jinja

import "strings"

// Value is what templates compute with: nil (None), Undefined, bool, int64,
// float64, string, *List, *Dict, or a callable made by this package.
type Value any

// Undefined is the value of a name that was not set.
type Undefined struct{ Name string }

// List is an ordered sequence.
type List struct {
	Items []Value
	tuple bool
}

// NewList returns a list of the given items.
func NewList(items ...Value) *List { return &List{Items: items} }

// Dict is a map that keeps the order of insertion.
type Dict struct {
	keys []string
	vals map[string]Value
}

// NewDict returns a dict of alternating names and values.
func NewDict(pairs ...Value) *Dict {
	d := &Dict{vals: make(map[string]Value, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

// Set stores a value; a new key goes to the end.
func (d *Dict) Set(key string, v Value) {
	if _, ok := d.vals[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.vals[key] = v
}

// Get returns the value of key.
func (d *Dict) Get(key string) (Value, bool) {
	v, ok := d.vals[key]
	return v, ok
}

// Len is the number of keys.
func (d *Dict) Len() int { return len(d.keys) }

// Keys are the keys in order; the caller must not change them.
func (d *Dict) Keys() []string { return d.keys }

// namespace is the one mutable object of the language.
type namespace struct{ d *Dict }

// callable is a function value.
type callable struct {
	name string
	fn   func(r *run, a args) Value
}

// args are the arguments of a call.
type args struct {
	pos []Value
	kw  *Dict
}

// at returns the argument at position i or of the name, or def.
func (a args) at(i int, name string, def Value) Value {
	if i >= 0 && i < len(a.pos) {
		return a.pos[i]
	}
	if a.kw != nil {
		if v, ok := a.kw.Get(name); ok {
			return v
		}
	}
	return def
}

// str returns the string argument at position i or of the name.
func (a args) str(i int, name, def string) string {
	if s, ok := a.at(i, name, def).(string); ok {
		return s
	}
	return def
}

// num returns the whole number at position i or of the name.
func (a args) num(i int, name string, def int64) int64 {
	switch v := a.at(i, name, def).(type) {
	case int64:
		return v
	case bool:
		return intOf(v)
	}
	return def
}

func intOf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func isUndefined(v Value) bool { _, ok := v.(Undefined); return ok }

// truthy is Python's truth of a value.
func truthy(v Value) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number returns v as a float if it is a number (bools are, as in Python).
func number(v Value) (f float64, ok bool) {
	switch v := v.(type) {
	case bool:
		return float64(intOf(v)), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// equal is Python's ==.
func (r *run) equal(a, b Value) bool {
	r.step(1)
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case Undefined:
		return isUndefined(b)
	case string:
		s, ok := b.(string)
		return ok && a == s
	case *List:
		l, ok := b.(*List)
		if !ok || len(a.Items) != len(l.Items) || a.tuple != l.tuple {
			return false
		}
		for i := range a.Items {
			if !r.equal(a.Items[i], l.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(a.keys) != len(d.keys) {
			return false
		}
		for _, k := range a.keys {
			v, ok := d.vals[k]
			if !ok || !r.equal(a.vals[k], v) {
				return false
			}
		}
		return true
	case *namespace:
		n, ok := b.(*namespace)
		return ok && a == n
	}
	return false
}

// compare orders numbers, strings and lists; others can't be ordered.
func (r *run) compare(a, b Value) int {
	r.step(1)
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	case *List:
		if y, ok := b.(*List); ok {
			for i := 0; i < len(x.Items) && i < len(y.Items); i++ {
				if c := r.compare(x.Items[i], y.Items[i]); c != 0 {
					return c
				}
			}
			return len(x.Items) - len(y.Items)
		}
	}
	fail(ErrRender, "can't order %s and %s", typeName(a), typeName(b))
	return 0
}

func typeName(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case Undefined:
		return "undefined"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	}
	return "function"
}
