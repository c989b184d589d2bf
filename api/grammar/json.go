package grammar

import (
	"fmt"
	"strings"
)

var (
	digit  = class('0', '9')
	digit1 = class('1', '9')
	hex    = class('0', '9', 'a', 'f', 'A', 'F')
)

// ws is what may stand between the tokens of JSON: nothing, a space, or a
// line's end and an indentation. A model can't loop in it.
func (b *builder) ws() expr {
	return b.rule("ws", alt(empty, lit(" "),
		seq(lit("\n"), b.rep(class(' ', ' ', '\t', '\t'), 0, MaxIndent))))
}

// char is one character of a JSON string. Escaped surrogates come in pairs
// only.
func (b *builder) char() expr {
	raw := class(0x20, 0x21, 0x23, 0x5b, 0x5d, 0xd7ff, 0xe000, 0x10ffff)
	unit := alt(
		seq(class('0', '9', 'a', 'c', 'e', 'f', 'A', 'C', 'E', 'F'), hex, hex, hex),
		seq(class('d', 'd', 'D', 'D'), class('0', '7'), hex, hex),
		seq(class('d', 'd', 'D', 'D'), class('8', '9', 'a', 'b', 'A', 'B'), hex, hex,
			lit(`\u`), class('d', 'd', 'D', 'D'), class('c', 'f', 'C', 'F'), hex, hex))
	return b.rule("char", alt(raw, seq(lit(`\`), alt(
		class('"', '"', '\\', '\\', '/', '/', 'b', 'b', 'f', 'f', 'n', 'n', 'r', 'r', 't', 't'),
		seq(lit("u"), unit)))))
}

// text is a JSON string of min to max characters.
func (b *builder) text(min, max int) expr {
	return b.rule("string", seq(lit(`"`), b.rep(b.char(), min, max), lit(`"`)))
}

// number is any JSON number of bounded length.
func (b *builder) number() expr {
	return b.rule("number", seq(b.opt(lit("-")), b.whole(),
		b.opt(seq(lit("."), b.rep(digit, 1, MaxFractionDigits))),
		b.opt(seq(class('e', 'e', 'E', 'E'), b.opt(class('+', '+', '-', '-')), b.rep(digit, 1, 2)))))
}

// whole is a number without sign, point and leading zeros.
func (b *builder) whole() expr {
	return b.rule("whole", alt(lit("0"), seq(digit1, b.rep(digit, 0, MaxIntegerDigits-1))))
}

func (b *builder) integer() expr {
	return b.rule("integer", seq(b.opt(lit("-")), b.whole()))
}

func boolean() expr { return alt(lit("true"), lit("false")) }

// any is any JSON value, anyObject and anyArray those kinds of it.
func (b *builder) any() expr {
	if _, ok := b.index["value"]; !ok {
		name := b.reserve("value")
		b.define(name, alt(b.anyObject(), b.anyArray(), b.text(0, -1), b.number(), boolean(), lit("null")))
	}
	return ref("value")
}

func (b *builder) anyObject() expr {
	entry := seq(b.text(0, -1), lit(":"), b.ws(), ref("value"))
	b.any()
	return b.rule("object", seq(lit("{"), b.ws(), b.opt(seq(b.listOf(entry), b.ws())), lit("}")))
}

func (b *builder) anyArray() expr {
	b.any()
	return b.rule("array", seq(lit("["), b.ws(), b.opt(seq(b.listOf(ref("value")), b.ws())), lit("]")))
}

// comma separates entries.
func (b *builder) comma() expr { return seq(lit(","), b.ws()) }

// listOf is one or more items with commas between.
func (b *builder) listOf(item expr) expr {
	return seq(item, b.many(seq(b.comma(), item)))
}

// quote is s as a JSON string, escaped no more than needed.
func quote(s string) string {
	var w strings.Builder
	w.WriteByte('"')
	for _, r := range s {
		w.WriteString(quoteRune(r))
	}
	w.WriteByte('"')
	return w.String()
}

// quoteRune is a character as it is spelled inside a JSON string.
func quoteRune(r rune) string {
	switch r {
	case '"':
		return `\"`
	case '\\':
		return `\\`
	case '\b':
		return `\b`
	case '\f':
		return `\f`
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r < 0x20 {
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// constant is the spelling of a value, with white space where ws stands
// elsewhere.
func (b *builder) constant(v *value) expr {
	switch v.kind {
	case vNull:
		return lit("null")
	case vBool:
		if v.truth {
			return lit("true")
		}
		return lit("false")
	case vNumber:
		return lit(v.text)
	case vString:
		return lit(quote(v.text))
	}
	parts := make([]expr, 0, len(v.items)+len(v.members))
	open, end := "[", "]"
	for _, item := range v.items {
		parts = append(parts, b.constant(item))
	}
	if v.kind == vObject {
		open, end = "{", "}"
		for _, m := range v.members {
			parts = append(parts, seq(lit(quote(m.key)+":"), b.ws(), b.constant(m.val)))
		}
	}
	if len(parts) == 0 {
		return lit(open + end)
	}
	out := []expr{lit(open), b.ws()}
	for i, p := range parts {
		if i > 0 {
			out = append(out, b.comma())
		}
		out = append(out, p)
	}
	return seq(append(out, b.ws(), lit(end))...)
}
