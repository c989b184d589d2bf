package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Field binds a key of a mapping to a Go value: one description reads and
// prints it.
type Field struct {
	Key   string
	value value
}

// value is how a bound value is read and printed.
type value interface {
	read(r *reader, path string, n ast.Node)
	// write prints the value after its key; false leaves the key out.
	write(p *printer, key string) bool
}

// scalar is a value of one line.
type scalar[T comparable] struct {
	to    *T
	parse func(string) (T, error)
	print func(T) string
	// sparse leaves out the zero value when printing.
	sparse bool
}

func (s scalar[T]) read(r *reader, path string, n ast.Node) {
	text, ok := r.text(path, n)
	if !ok {
		return
	}
	v, err := s.parse(text)
	if err != nil {
		r.fail(n, path, err.Error(), "")
		return
	}
	*s.to = v
}

func (s scalar[T]) write(p *printer, key string) bool {
	var zero T
	if s.sparse && *s.to == zero {
		return false
	}
	p.line(key, s.print(*s.to))
	return true
}

// String binds text. Empty text is left out when printing.
func String(key string, to *string) Field {
	return Field{key, scalar[string]{to, func(s string) (string, error) { return s, nil }, quote, true}}
}

// OneOf binds text that must be one of some words.
func OneOf(key string, to *string, words ...string) Field {
	return Field{key, scalar[string]{to, func(s string) (string, error) { return oneOf(s, words) }, quote, false}}
}

func oneOf(s string, words []string) (string, error) {
	if slices.Contains(words, s) {
		return s, nil
	}
	hint := ""
	if w := nearest(s, words); w != "" {
		hint = fmt.Sprintf("; did you mean %q?", w)
	}
	return "", fmt.Errorf("%q is none of %s%s", s, strings.Join(words, ", "), hint)
}

// Bool binds true or false.
func Bool(key string, to *bool) Field {
	return Field{key, scalar[bool]{to, parseBool, strconv.FormatBool, false}}
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", s)
}

// Int binds a whole number from least to most.
func Int(key string, to *int, least, most int) Field {
	return Field{key, scalar[int]{to, func(s string) (int, error) { return parseInt(s, least, most) }, strconv.Itoa, false}}
}

func parseInt(s string, least, most int) (int, error) {
	v, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", s)
	}
	if v < least || v > most {
		return 0, fmt.Errorf("%d is not in %d … %d", v, least, most)
	}
	return v, nil
}

// Int64 binds a whole number that is not negative.
func Int64(key string, to *int64) Field {
	parse := func(s string) (int64, error) {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 {
			return 0, fmt.Errorf("%q is no whole number ≥ 0", s)
		}
		return v, nil
	}
	return Field{key, scalar[int64]{to, parse, func(v int64) string { return strconv.FormatInt(v, 10) }, false}}
}

// Bytes binds a size: 40GB.
func Bytes(key string, to *int64) Field {
	return Field{key, scalar[int64]{to, ParseBytes, FormatBytes, false}}
}

// Count binds an amount: 120T.
func Count(key string, to *float64) Field {
	return Field{key, scalar[float64]{to, ParseCount, FormatCount, false}}
}

// Rate binds bytes per second: 2TB/s.
func Rate(key string, to *float64) Field {
	return Field{key, scalar[float64]{to, ParseRate, FormatRate, false}}
}

// Percent binds a share: 45%. most bounds it, as a share.
func Percent(key string, to *float64, most float64) Field {
	parse := func(s string) (float64, error) {
		v, err := ParsePercent(s)
		if err == nil && v > most {
			return 0, fmt.Errorf("%s is more than %s", s, FormatPercent(most))
		}
		return v, err
	}
	return Field{key, scalar[float64]{to, parse, FormatPercent, false}}
}

// Span binds a time that is not negative: 200ms.
func Span(key string, to *time.Duration) Field {
	parse := func(s string) (time.Duration, error) {
		d, err := ParseSpan(s)
		if err == nil && d < 0 {
			return 0, fmt.Errorf("%s is negative", s)
		}
		return d, err
	}
	return Field{key, scalar[time.Duration]{to, parse, FormatSpan, false}}
}

// Sparse leaves a zero value or an empty list out when printing.
func Sparse(f Field) Field {
	switch v := f.value.(type) {
	case list[string]:
		v.sparse = true
		f.value = v
	case list[int]:
		v.sparse = true
		f.value = v
	case scalar[int64]:
		v.sparse = true
		f.value = v
	case scalar[float64]:
		v.sparse = true
		f.value = v
	case scalar[time.Duration]:
		v.sparse = true
		f.value = v
	case scalar[int]:
		v.sparse = true
		f.value = v
	case scalar[bool]:
		v.sparse = true
		f.value = v
	case scalar[string]:
		v.sparse = true
		f.value = v
	}
	return f
}

// Group binds a mapping with a fixed set of keys.
func Group(key string, fields ...Field) Field { return Field{key, group(fields)} }

type group []Field

func (g group) read(r *reader, path string, n ast.Node) { r.mapping(path, n, g) }

func (g group) write(p *printer, key string) bool {
	return p.nest(key, func() bool {
		some := false
		for _, f := range g {
			some = f.value.write(p, f.Key) || some
		}
		return some
	})
}

// Silent reads a key that is printed elsewhere.
func Silent(f Field) Field { return Field{f.Key, silent{f.value}} }

type silent struct{ value }

func (silent) write(*printer, string) bool { return false }

// Words binds a list of words; with a vocabulary each must be one of it.
func Words(key string, to *[]string, vocabulary ...string) Field {
	parse := func(s string) (string, error) {
		if len(vocabulary) > 0 {
			return oneOf(s, vocabulary)
		}
		return s, nil
	}
	return Field{key, list[string]{to, parse, quote, false}}
}

// Ints binds a list of whole numbers from least to most.
func Ints(key string, to *[]int, least, most int) Field {
	return Field{key, list[int]{to, func(s string) (int, error) { return parseInt(s, least, most) }, strconv.Itoa, false}}
}

// list is printed in one line.
type list[T any] struct {
	to     *[]T
	parse  func(string) (T, error)
	print  func(T) string
	sparse bool // leave out an empty list when printing
}

func (l list[T]) read(r *reader, path string, n ast.Node) {
	items, ok := r.sequence(path, n)
	if !ok {
		return
	}
	out := make([]T, 0, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", path, i)
		text, ok := r.text(at, item)
		if !ok {
			continue
		}
		v, err := l.parse(text)
		if err != nil {
			r.fail(item, at, err.Error(), "")
			continue
		}
		out = append(out, v)
	}
	*l.to = orNil(out)
}

// orNil has one form of an empty list.
func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func (l list[T]) write(p *printer, key string) bool {
	if l.sparse && len(*l.to) == 0 {
		return false
	}
	parts := make([]string, len(*l.to))
	for i, v := range *l.to {
		parts[i] = l.print(v)
	}
	p.line(key, "["+strings.Join(parts, ", ")+"]")
	return true
}

// Items binds a list of mappings. An item may be wrapped in a mapping with
// the one key wrap ("": no wrapping).
func Items[T any](key, wrap string, to *[]T, fields func(*T) []Field) Field {
	return Field{key, items[T]{to, wrap, fields}}
}

type items[T any] struct {
	to     *[]T
	wrap   string
	fields func(*T) []Field
}

func (l items[T]) read(r *reader, path string, n ast.Node) {
	nodes, ok := r.sequence(path, n)
	if !ok {
		return
	}
	out := make([]T, len(nodes))
	for i, item := range nodes {
		at := fmt.Sprintf("%s[%d]", path, i)
		fields := l.fields(&out[i])
		if inner := r.unwrap(item, l.wrap); inner != nil {
			at, item = at+"."+l.wrap, inner
		}
		r.mapping(at, item, fields)
	}
	*l.to = orNil(out)
}

func (l items[T]) write(p *printer, key string) bool {
	if len(*l.to) == 0 {
		return false
	}
	return p.nest(key, func() bool {
		for i := range *l.to {
			p.item(func() {
				fields := l.fields(&(*l.to)[i])
				if l.wrap != "" {
					fields = []Field{Group(l.wrap, fields...)}
				}
				group(fields).body(p)
			})
		}
		return true
	})
}

func (g group) body(p *printer) {
	for _, f := range g {
		f.value.write(p, f.Key)
	}
}

// Entries binds a mapping whose keys are names: name → mapping.
func Entries[T any](key string, to *[]T, name func(*T) *string, fields func(*T) []Field) Field {
	return Field{key, entries[T]{to, name, fields}}
}

type entries[T any] struct {
	to     *[]T
	name   func(*T) *string
	fields func(*T) []Field
}

func (e entries[T]) read(r *reader, path string, n ast.Node) {
	pairs, ok := r.pairs(path, n)
	if !ok {
		return
	}
	out := make([]T, len(pairs))
	for i, pair := range pairs {
		*e.name(&out[i]) = pair.key
		r.mapping(path+"."+pair.key, pair.value, e.fields(&out[i]))
	}
	*e.to = orNil(out)
}

func (e entries[T]) write(p *printer, key string) bool {
	if len(*e.to) == 0 {
		return false
	}
	return p.nest(key, func() bool {
		for i := range *e.to {
			item := &(*e.to)[i]
			if !group(e.fields(item)).write(p, quote(*e.name(item))) {
				p.line(quote(*e.name(item)), "{}")
			}
		}
		return true
	})
}
