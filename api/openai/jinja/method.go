package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type methodFunc func(r *run, s string, a args) Value

// method returns a bound method of a value, or nil if it has none so named.
func (r *run) method(of Value, name string) Value {
	switch v := of.(type) {
	case string:
		if m := stringMethods[name]; m != nil {
			return &callable{name, func(r *run, a args) Value {
				r.step(len(v)/64 + 1)
				return m(r, v, a)
			}}
		}
	case *Dict:
		if m := dictMethods[name]; m != nil {
			return &callable{name, func(r *run, a args) Value { return m(r, v, a) }}
		}
	case *List:
		switch name {
		case "index", "count":
			return &callable{name, func(r *run, a args) Value { return listFind(r, v, name, a) }}
		case "append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse":
			return &callable{name, func(*run, args) Value {
				fail(ErrRender, "lists can't be changed (%s); join them with +", name)
				return nil
			}}
		}
	}
	return nil
}

func listFind(r *run, l *List, name string, a args) Value {
	n := int64(0)
	for i, it := range l.Items {
		if r.equal(it, a.at(0, "value", nil)) {
			if name == "index" {
				return int64(i)
			}
			n++
		}
	}
	if name == "index" {
		fail(ErrRender, "value is not in the list")
	}
	return n
}

var dictMethods = map[string]func(r *run, d *Dict, a args) Value{
	"items":  func(r *run, d *Dict, _ args) Value { return r.pairs(d) },
	"keys":   func(r *run, d *Dict, _ args) Value { return &List{Items: r.items(d)} },
	"values": func(r *run, d *Dict, _ args) Value { return r.values(d) },
	"copy":   func(_ *run, d *Dict, _ args) Value { return d },
	"get": func(r *run, d *Dict, a args) Value {
		k, ok := a.at(0, "key", nil).(string)
		if ok {
			if v, ok := d.vals[k]; ok {
				return v
			}
		}
		return a.at(1, "default", nil)
	},
}

func (r *run) pairs(d *Dict) Value {
	l := &List{Items: make([]Value, len(d.keys))}
	r.step(len(d.keys))
	for i, k := range d.keys {
		l.Items[i] = &List{Items: []Value{k, d.vals[k]}, tuple: true}
	}
	return l
}

func (r *run) values(d *Dict) Value {
	l := &List{Items: make([]Value, len(d.keys))}
	r.step(len(d.keys))
	for i, k := range d.keys {
		l.Items[i] = d.vals[k]
	}
	return l
}

var stringMethods = map[string]methodFunc{
	"strip":        func(_ *run, s string, a args) Value { return strip(s, a, true, true) },
	"lstrip":       func(_ *run, s string, a args) Value { return strip(s, a, true, false) },
	"rstrip":       func(_ *run, s string, a args) Value { return strip(s, a, false, true) },
	"removeprefix": func(_ *run, s string, a args) Value { return strings.TrimPrefix(s, a.str(0, "prefix", "")) },
	"removesuffix": func(_ *run, s string, a args) Value { return strings.TrimSuffix(s, a.str(0, "suffix", "")) },
	"split":        func(r *run, s string, a args) Value { return split(r, s, a, false) },
	"rsplit":       func(r *run, s string, a args) Value { return split(r, s, a, true) },
	"splitlines":   splitLines,
	"startswith":   func(_ *run, s string, a args) Value { return affix(s, a, strings.HasPrefix) },
	"endswith":     func(_ *run, s string, a args) Value { return affix(s, a, strings.HasSuffix) },
	"upper":        func(r *run, s string, _ args) Value { return r.fresh(strings.ToUpper(s)) },
	"lower":        func(r *run, s string, _ args) Value { return r.fresh(strings.ToLower(s)) },
	"title":        func(r *run, s string, _ args) Value { return r.fresh(title(s)) },
	"capitalize":   func(r *run, s string, _ args) Value { return r.fresh(capitalize(s)) },
	"replace":      func(r *run, s string, a args) Value { return replace(r, s, a, 0) },
	"find":         func(_ *run, s string, a args) Value { return runeIndex(s, strings.Index(s, a.str(0, "sub", ""))) },
	"rfind":        func(_ *run, s string, a args) Value { return runeIndex(s, strings.LastIndex(s, a.str(0, "sub", ""))) },
	"index": func(_ *run, s string, a args) Value {
		i := strings.Index(s, a.str(0, "sub", ""))
		if i < 0 {
			fail(ErrRender, "substring not found")
		}
		return runeIndex(s, i)
	},
	"count":   func(_ *run, s string, a args) Value { return int64(strings.Count(s, a.str(0, "sub", ""))) },
	"join":    func(r *run, s string, a args) Value { return joinItems(r, a.at(0, "iterable", nil), s, "") },
	"isdigit": func(_ *run, s string, _ args) Value { return every(s, unicode.IsDigit) },
	"isalpha": func(_ *run, s string, _ args) Value { return every(s, unicode.IsLetter) },
	"isspace": func(_ *run, s string, _ args) Value { return every(s, unicode.IsSpace) },
	"isalnum": func(_ *run, s string, _ args) Value {
		return every(s, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
	},
	"isupper": func(_ *run, s string, _ args) Value { return s != strings.ToLower(s) && s == strings.ToUpper(s) },
	"islower": func(_ *run, s string, _ args) Value { return s != strings.ToUpper(s) && s == strings.ToLower(s) },
	"format":  formatMethod,
}

// fresh charges a new string.
func (r *run) fresh(s string) string {
	r.made(len(s))
	return s
}

func strip(s string, a args, left, right bool) string {
	cut := func(c rune) bool { return unicode.IsSpace(c) }
	if chars, ok := a.at(0, "chars", nil).(string); ok {
		cut = func(c rune) bool { return strings.ContainsRune(chars, c) }
	}
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return s
}

func split(r *run, s string, a args, fromRight bool) Value {
	sep, isStr := a.at(0, "sep", nil).(string)
	limit := int(max(-1, min(a.num(1, "maxsplit", -1), RenderSteps)))
	var parts []string
	switch {
	case !isStr && limit < 0:
		parts = strings.Fields(s)
	case !isStr:
		parts = fields(s, limit)
	case sep == "":
		fail(ErrRender, "empty separator")
	case limit < 0:
		parts = strings.Split(s, sep)
	case fromRight:
		for ; limit > 0; limit-- {
			i := strings.LastIndex(s, sep)
			if i < 0 {
				break
			}
			parts = append([]string{s[i+len(sep):]}, parts...)
			s = s[:i]
		}
		parts = append([]string{s}, parts...)
	default:
		parts = strings.SplitN(s, sep, limit+1)
	}
	r.step(len(parts))
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

func fields(s string, limit int) []string {
	var out []string
	for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
		i := strings.IndexFunc(s, unicode.IsSpace)
		if i < 0 || len(out) == limit {
			return append(out, s)
		}
		out, s = append(out, s[:i]), s[i:]
	}
	return out
}

func splitLines(r *run, s string, a args) Value {
	keep := truthy(a.at(0, "keepends", false))
	l := &List{}
	for line := range strings.Lines(s) {
		r.step(1)
		if !keep {
			line = strings.TrimRight(line, "\r\n")
		}
		l.Items = append(l.Items, line)
	}
	return l
}

func affix(s string, a args, has func(s, x string) bool) bool {
	switch x := a.at(0, "prefix", nil).(type) {
	case string:
		return has(s, x)
	case *List:
		for _, it := range x.Items {
			if t, ok := it.(string); ok && has(s, t) {
				return true
			}
		}
	}
	return false
}

func title(s string) string {
	prev := ' '
	return strings.Map(func(c rune) rune {
		p := prev
		prev = c
		if unicode.IsLetter(p) {
			return unicode.ToLower(c)
		}
		return unicode.ToTitle(c)
	}, s)
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToTitle(s[:n]) + strings.ToLower(s[n:])
}

// replace is str.replace and the filter of the same name; the arguments
// begin at position i.
func replace(r *run, s string, a args, i int) string {
	old, with := r.text(a.at(i, "old", "")), r.text(a.at(i+1, "new", ""))
	n := a.num(i+2, "count", -1)
	hits := int64(strings.Count(s, old))
	if n >= 0 {
		hits = min(hits, n)
	}
	if len(with) > 0 && hits > RenderBytes/int64(len(with)) {
		fail(ErrLimit, "replace makes too much text")
	}
	r.made(len(s) + int(hits)*len(with))
	return strings.Replace(s, old, with, int(hits))
}

// runeIndex turns a byte offset into one in characters; -1 stays.
func runeIndex(s string, i int) int64 {
	if i < 0 {
		return -1
	}
	return int64(len([]rune(s[:i])))
}

func every(s string, is func(rune) bool) bool {
	for _, c := range s {
		if !is(c) {
			return false
		}
	}
	return s != ""
}

// formatMethod is str.format for {}, {0} and {name}.
func formatMethod(r *run, s string, a args) Value {
	var b strings.Builder
	auto := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c == '{' || c == '}') && i+1 < len(s) && s[i+1] == c {
			b.WriteByte(c)
			i++
			continue
		}
		if c != '{' {
			b.WriteByte(c)
			continue
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			fail(ErrRender, "format %q has an open brace", s)
		}
		name := s[i+1 : i+end]
		i += end
		pos := -1
		if name == "" {
			pos, auto = auto, auto+1
		} else if every(name, func(c rune) bool { return c >= '0' && c <= '9' }) && len(name) < 4 {
			pos = 0
			for _, d := range name {
				pos = pos*10 + int(d-'0')
			}
		}
		v := a.at(pos, name, Undefined{name})
		if isUndefined(v) {
			fail(ErrRender, "format %q: no value for {%s}", s, name)
		}
		b.WriteString(r.text(v))
	}
	r.made(b.Len())
	return b.String()
}
