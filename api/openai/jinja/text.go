package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is Python's str().
func (r *run) text(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case Undefined:
		return ""
	}
	var b strings.Builder
	r.repr(&b, v, 0)
	r.made(b.Len())
	return b.String()
}

// repr writes Python's repr().
func (r *run) repr(b *strings.Builder, v Value, depth int) {
	r.step(1)
	if depth > JSONDepth {
		fail(ErrLimit, "value nested deeper than %d", JSONDepth)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case Undefined:
		b.WriteString("Undefined")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(formatFloat(v))
	case string:
		reprString(b, v)
	case *List:
		r.reprList(b, v, depth)
	case *Dict:
		r.reprDict(b, v, depth)
	case *namespace:
		b.WriteString("<Namespace ")
		r.reprDict(b, v.d, depth)
		b.WriteByte('>')
	default:
		b.WriteString("<function>")
	}
	if b.Len() > OutputBytes {
		fail(ErrLimit, "text longer than %d bytes", OutputBytes)
	}
}

func (r *run) reprList(b *strings.Builder, v *List, depth int) {
	open, end := "[", "]"
	if v.tuple {
		open, end = "(", ")"
	}
	b.WriteString(open)
	for i, it := range v.Items {
		if i > 0 {
			b.WriteString(", ")
		}
		r.repr(b, it, depth+1)
	}
	if v.tuple && len(v.Items) == 1 {
		b.WriteByte(',')
	}
	b.WriteString(end)
}

func (r *run) reprDict(b *strings.Builder, v *Dict, depth int) {
	b.WriteByte('{')
	for i, k := range v.keys {
		if i > 0 {
			b.WriteString(", ")
		}
		reprString(b, k)
		b.WriteString(": ")
		r.repr(b, v.vals[k], depth+1)
	}
	b.WriteByte('}')
}

// reprString quotes as Python does: single quotes unless only they occur.
func reprString(b *strings.Builder, s string) {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b.WriteByte(q)
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case c == rune(q) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			b.WriteString(`\x`)
			b.WriteString(hex2(byte(c)))
		case c >= 0x80 && !unicode.IsPrint(c) && !unicode.Is(unicode.Co, c):
			b.WriteString(reprRune(c))
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	b.WriteByte(q)
}

func reprRune(c rune) string {
	switch h := strconv.FormatInt(int64(c), 16); {
	case c < 0x100:
		return `\x` + strings.Repeat("0", 2-len(h)) + h
	case c < 0x10000:
		return `\u` + strings.Repeat("0", 4-len(h)) + h
	default:
		return `\U` + strings.Repeat("0", 8-len(h)) + h
	}
}

func hex2(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}

// formatFloat is Python's repr of a float.
func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
