package jinja

import (
	"regexp"
	"strconv"
	"strings"
)

type tokKind uint8

const (
	tokText tokKind = iota
	tokVarOpen
	tokVarClose
	tokTagOpen
	tokTagClose
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
	tokEOF
)

type token struct {
	kind tokKind
	text string
	line int
}

// lexer cuts a source into tokens and applies the rules of white space:
// "-" strips all of it, trim_blocks drops a newline after a block tag or
// comment, lstrip_blocks drops blanks between a line's start and such a tag.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the text at pos begins a line
	toks      []token
}

var (
	rawOpen  = regexp.MustCompile(`^\{%[-+]?\s*raw\s*(-?)%\}`)
	rawClose = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
)

func lex(src string) []token {
	if len(src) > SourceBytes {
		fail(ErrLimit, "template of %d bytes, the limit is %d", len(src), SourceBytes)
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		l.text()
	}
	return append(l.toks, token{tokEOF, "", l.line})
}

func (l *lexer) add(k tokKind, text string) {
	l.toks = append(l.toks, token{k, text, l.line})
}

// advance moves over n bytes and counts lines.
func (l *lexer) advance(n int) {
	l.line += strings.Count(l.src[l.pos:l.pos+n], "\n")
	l.pos += n
}

// text takes plain text up to the next tag, then the tag.
func (l *lexer) text() {
	rest := l.src[l.pos:]
	i := 0
	for {
		j := strings.IndexByte(rest[i:], '{')
		if j < 0 || i+j+1 >= len(rest) {
			l.plain(rest)
			l.advance(len(rest))
			return
		}
		i += j
		if c := rest[i+1]; c == '{' || c == '%' || c == '#' {
			break
		}
		i++
	}
	l.plain(l.stripBefore(rest[:i], rest[i:]))
	l.advance(i)
	switch rest[i+1] {
	case '{':
		l.tag(tokVarOpen, tokVarClose, "}}")
	case '#':
		l.comment()
	default:
		if m := rawOpen.FindStringSubmatch(rest[i:]); m != nil {
			l.raw(m)
			return
		}
		l.tag(tokTagOpen, tokTagClose, "%}")
	}
}

func (l *lexer) plain(s string) {
	if s != "" {
		l.add(tokText, s)
	}
}

const space = " \t\n\r\v\f"

// stripBefore removes white space before a tag as the tag asks.
func (l *lexer) stripBefore(text, tag string) string {
	mod := byte(0)
	if len(tag) > 2 {
		mod = tag[2]
	}
	switch {
	case mod == '-':
		return strings.TrimRight(text, space)
	case tag[1] == '{' || mod == '+':
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || l.lineStart) && strings.Trim(text[start:], " \t") == "" {
		return text[:start]
	}
	return text
}

// after consumes what white space the end of a tag asks for. mod is the
// character before the closing braces, block tells that trim_blocks applies.
func (l *lexer) after(mod byte, block bool) {
	from := l.pos
	switch rest := l.src[l.pos:]; {
	case mod == '-':
		l.advance(len(rest) - len(strings.TrimLeft(rest, space)))
	case block && mod != '+' && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
	l.lineStart = l.pos > from && l.src[l.pos-1] == '\n'
}

func (l *lexer) comment() {
	end := strings.Index(l.src[l.pos+2:], "#}")
	if end < 0 {
		failLine(l.line, "comment without an end")
	}
	end += l.pos + 2
	mod := l.src[end-1]
	l.advance(end + 2 - l.pos)
	l.after(mod, true)
}

func (l *lexer) raw(open []string) {
	l.advance(len(open[0]))
	mod := byte(0)
	if open[1] != "" {
		mod = '-'
	}
	l.after(mod, true)
	rest := l.src[l.pos:]
	m := rawClose.FindStringSubmatchIndex(rest)
	if m == nil {
		failLine(l.line, "raw block without an end")
	}
	l.plain(l.stripBefore(rest[:m[0]], "{%"+rest[m[2]:m[3]]+" "))
	l.advance(m[1])
	mod = 0
	if m[5] > m[4] {
		mod = rest[m[4]]
	}
	l.after(mod, true)
}

// tag takes an opening, the tokens of the expression or statement, and the
// matching close.
func (l *lexer) tag(open, shut tokKind, end string) {
	l.add(open, "")
	l.advance(2)
	if l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
		l.advance(1)
	}
	var nest []byte
	for {
		rest := strings.TrimLeft(l.src[l.pos:], space)
		l.advance(len(l.src) - l.pos - len(rest))
		if rest == "" {
			failLine(l.line, "tag without %q", end)
		}
		if len(nest) == 0 {
			mod := byte(0)
			t := rest
			if t[0] == '-' || t[0] == '+' {
				mod, t = t[0], t[1:]
			}
			if strings.HasPrefix(t, end) {
				l.add(shut, "")
				l.advance(len(rest) - len(t) + 2)
				l.after(mod, end == "%}")
				return
			}
		}
		nest = l.lexeme(rest, nest)
	}
}

// lexeme takes one token of an expression; nest are the open brackets.
func (l *lexer) lexeme(rest string, nest []byte) []byte {
	c := rest[0]
	switch {
	case c == '"' || c == '\'':
		l.quoted(rest)
	case c >= '0' && c <= '9':
		l.number(rest)
	case isName(c):
		n := 1
		for n < len(rest) && (isName(rest[n]) || rest[n] >= '0' && rest[n] <= '9') {
			n++
		}
		l.add(tokName, rest[:n])
		l.advance(n)
	default:
		op := operator(rest)
		if op == "" {
			failLine(l.line, "unexpected character %q", c)
		}
		switch op {
		case "(", "[", "{":
			nest = append(nest, op[0])
		case ")", "]", "}":
			if len(nest) == 0 || nest[len(nest)-1] != opening(op[0]) {
				failLine(l.line, "unexpected %q", op)
			}
			nest = nest[:len(nest)-1]
		}
		l.add(tokOp, op)
		l.advance(len(op))
	}
	return nest
}

func opening(c byte) byte {
	switch c {
	case ')':
		return '('
	case ']':
		return '['
	}
	return '{'
}

func isName(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func operator(s string) string {
	if len(s) > 1 {
		switch s[:2] {
		case "**", "//", "==", "!=", "<=", ">=":
			return s[:2]
		}
	}
	if strings.IndexByte("+-*/%~()[]{}<>=.:|,", s[0]) >= 0 {
		return s[:1]
	}
	return ""
}

func (l *lexer) number(rest string) {
	digits := func(i int) int {
		for i < len(rest) && (rest[i] >= '0' && rest[i] <= '9' || rest[i] == '_') {
			i++
		}
		return i
	}
	n, kind := digits(0), tokInt
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
		n, kind = digits(n+1), tokFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if e := digits(m); e > m {
			n, kind = e, tokFloat
		}
	}
	l.add(kind, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

func (l *lexer) quoted(rest string) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			l.add(tokString, unescape(rest[1:i]))
			l.advance(i + 1)
			return
		}
	}
	failLine(l.line, "string without an end")
}

// unescape resolves Python's string escapes; unknown ones stay as written.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if j := strings.IndexByte(`abfnrtv\'"`, s[i]); j >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[j])
			continue
		}
		if w := strings.IndexByte("x.u...U", s[i]); s[i] != '.' && w >= 0 {
			w += 2
			if i+w < len(s) {
				if r, err := strconv.ParseUint(s[i+1:i+1+w], 16, 32); err == nil {
					b.WriteRune(rune(r))
					i += w
					continue
				}
			}
		}
		if s[i] != '\n' {
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String()
}
