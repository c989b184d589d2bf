package config

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	yaml "github.com/goccy/go-yaml"
)

// Value is one value with its place and source.
type Value struct {
	Path   string
	Value  any
	Source string
}

// YAML is the text form: it reads back to the same configuration. Each value
// has its source as a comment.
func (e *Effective) YAML() string {
	var b strings.Builder
	e.print(&b, reflect.ValueOf(e.Config), "", "")
	return b.String() + e.blocksYAML()
}

func (e *Effective) print(b *strings.Builder, v reflect.Value, path, indent string) {
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		at, f := join(path, key), v.Field(i)
		switch {
		case f.Kind() == reflect.Struct:
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			e.print(b, f, at, indent+"  ")
		case f.Type() == reflect.TypeFor[[]Model]() && f.Len() > 0:
			fmt.Fprintf(b, "%s%s:\n", indent, key)
			for n := range f.Len() {
				var item strings.Builder
				e.print(&item, f.Index(n), fmt.Sprintf("%s[%d]", at, n), indent+"    ")
				b.WriteString(indent + "  - " + strings.TrimLeft(item.String(), " "))
			}
		default:
			fmt.Fprintf(b, "%s%s: %s  # %s\n", indent, key, leaf(f), e.Source(at))
		}
	}
}

// leaf is a scalar or a list of texts on one line.
func leaf(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		items := make([]string, v.Len())
		for i := range items {
			items[i] = leaf(v.Index(i))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if v.Kind() == reflect.String {
		return quote(v.String())
	}
	return textOf(v)
}

// quote writes a text so that it reads back the same, also inside a list.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		var back any
		if yaml.Unmarshal([]byte(s), &back) == nil && back == any(s) {
			return s
		}
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func textOf(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err == nil {
			return string(b)
		}
	}
	return fmt.Sprint(v.Interface())
}

// Values lists all values in the order of the text form.
func (e *Effective) Values() []Value {
	var out []Value
	e.list(&out, reflect.ValueOf(e.Config), "")
	for _, l := range blockLeaves(e.Spec.Effective()) {
		out = append(out, Value{Path: l.path, Value: l.text, Source: e.Source(l.path)})
	}
	return out
}

func (e *Effective) list(out *[]Value, v reflect.Value, path string) {
	for i := range v.NumField() {
		at, f := join(path, v.Type().Field(i).Tag.Get("yaml")), v.Field(i)
		switch {
		case f.Kind() == reflect.Struct:
			e.list(out, f, at)
		case f.Type() == reflect.TypeFor[[]Model]() && f.Len() > 0:
			for n := range f.Len() {
				e.list(out, f.Index(n), fmt.Sprintf("%s[%d]", at, n))
			}
		default:
			val := f.Interface()
			if f.Kind() == reflect.Slice && f.Len() == 0 {
				val = []string{}
			}
			*out = append(*out, Value{Path: at, Value: val, Source: e.Source(at)})
		}
	}
}
