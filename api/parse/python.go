package parse

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// The steps of a pythonic list of calls, kept in call.want.
const (
	pyName want = iota
	pyArgs
	pyMore
)

// stepPython reads [name(argument=value, …), …]. A call's arguments are held
// until its parenthesis closes, then shown as JSON at once.
func (p *Parser) stepPython(b byte) bool {
	c := &p.call
	if len(p.held) >= MaxHeldBytes {
		return p.refuse()
	}
	if c.want == pyArgs {
		p.hold(b)
		if c.pythonEnds(b) && !p.showPython() || c.nest < 0 {
			p.giveUp()
		}
		return true
	}
	space, ok := p.gap(b)
	switch {
	case !ok:
		return p.refuse()
	case space && (c.want == pyMore || len(c.head) == 0):
	case c.want == pyMore && b == ',':
		head, raw := c.head[:0], c.raw[:0]
		*c = call{want: pyName, head: head, raw: raw, capt: c.capt[:0]}
	case c.want == pyMore && b == ']':
		p.held, p.space = p.held[:0], 0
		p.state, p.lead = stLead, afterCall
		return true
	case c.want == pyName && isNameByte(b) && len(c.head) < MaxNameBytes:
		c.head = append(c.head, b)
	case c.want == pyName && b == '(' && p.known(string(c.head)):
		c.name, c.want, c.raw = string(c.head), pyArgs, c.raw[:0]
	default:
		return p.refuse()
	}
	p.hold(b)
	return true
}

// pythonEnds adds b to the arguments and tells whether it closes them. key
// holds the open quote, nest the open brackets.
func (c *call) pythonEnds(b byte) bool {
	switch {
	case c.escaped:
		c.escaped = false
	case c.key != "":
		if b == '\\' {
			c.escaped = true
		} else if b == c.key[0] {
			c.key = ""
		}
	case b == '"' || b == '\'':
		c.key = string(rune(b))
	case b == '(' || b == '[' || b == '{':
		c.nest++
	case b == ')' && c.nest == 0:
		return true
	case b == ')' || b == ']' || b == '}':
		c.nest--
	}
	c.raw = append(c.raw, b)
	return false
}

func (p *Parser) showPython() bool {
	r := pyReader{in: p.call.raw}
	if !r.arguments() {
		return false
	}
	p.event(Event{Kind: ToolStart, Index: p.index, Name: p.call.name})
	p.emit(ToolArgs, r.out)
	p.endCall()
	p.state, p.call.want = stPython, pyMore
	return true
}

// pyReader turns Python literals into JSON.
type pyReader struct {
	in  []byte
	out []byte
}

func (r *pyReader) skipSpace() { r.in = bytes.TrimLeft(r.in, " \t\r\n") }

func (r *pyReader) take(b byte) bool {
	r.skipSpace()
	if len(r.in) == 0 || r.in[0] != b {
		return false
	}
	r.in = r.in[1:]
	return true
}

// arguments reads name=value, … to the end.
func (r *pyReader) arguments() bool {
	r.out = append(r.out, '{')
	for first := true; ; first = false {
		r.skipSpace()
		if len(r.in) == 0 {
			r.out = append(r.out, '}')
			return true
		}
		if !first {
			r.out = append(r.out, ',', ' ')
		}
		n := 0
		for n < len(r.in) && isNameByte(r.in[n]) {
			n++
		}
		if n == 0 {
			return false
		}
		r.out = append(append(append(r.out, '"'), r.in[:n]...), `": `...)
		r.in = r.in[n:]
		if !r.take('=') || !r.value(0) {
			return false
		}
		if !r.take(',') && len(r.in) > 0 {
			return false
		}
	}
}

func (r *pyReader) value(depth int) bool {
	r.skipSpace()
	if len(r.in) == 0 || depth >= MaxDepth {
		return false
	}
	switch b := r.in[0]; b {
	case '"', '\'':
		return r.text()
	case '[':
		return r.list('[', ']', depth)
	case '(':
		return r.list('(', ')', depth)
	case '{':
		return r.list('{', '}', depth)
	}
	n := 0
	for n < len(r.in) && (isNameByte(r.in[n]) || r.in[n] == '+') {
		n++
	}
	word := string(r.in[:n])
	r.in = r.in[n:]
	switch word {
	case "True", "true":
		word = "true"
	case "False", "false":
		word = "false"
	case "None", "null":
		word = "null"
	default:
		if !json.Valid([]byte(word)) {
			return false
		}
	}
	r.out = append(r.out, word...)
	return true
}

// list reads a list, tuple or dict with the given brackets.
func (r *pyReader) list(open, end byte, depth int) bool {
	r.in = r.in[1:]
	if open == '(' {
		open = '['
	}
	r.out = append(r.out, open)
	for first := true; !r.take(end); first = false {
		if !first {
			r.out = append(r.out, ',', ' ')
		}
		if open == '{' {
			r.skipSpace()
			if len(r.in) == 0 || r.in[0] != '"' && r.in[0] != '\'' || !r.text() || !r.take(':') {
				return false
			}
			r.out = append(r.out, ':', ' ')
		}
		if !r.value(depth + 1) {
			return false
		}
		if !r.take(',') {
			if !r.take(end) {
				return false
			}
			break
		}
	}
	if end == ')' {
		end = ']'
	}
	r.out = append(r.out, end)
	return true
}

// text reads a quoted string.
func (r *pyReader) text() bool {
	quote := r.in[0]
	r.in = r.in[1:]
	var s []byte
	for len(r.in) > 0 {
		b := r.in[0]
		r.in = r.in[1:]
		switch {
		case b == quote:
			quoted, err := json.Marshal(string(s))
			r.out = append(r.out, quoted...)
			return err == nil
		case b == '\\':
			var ok bool
			if s, ok = r.escape(s); !ok {
				return false
			}
		default:
			s = append(s, b)
		}
	}
	return false
}

// escape reads what follows a backslash.
func (r *pyReader) escape(s []byte) ([]byte, bool) {
	if len(r.in) == 0 {
		return s, false
	}
	b := r.in[0]
	r.in = r.in[1:]
	switch b {
	case 'n':
		return append(s, '\n'), true
	case 't':
		return append(s, '\t'), true
	case 'r':
		return append(s, '\r'), true
	case '\\', '\'', '"':
		return append(s, b), true
	case 'x':
		return r.codePoint(s, 2)
	case 'u':
		return r.codePoint(s, 4)
	}
	return append(s, '\\', b), true
}

func (r *pyReader) codePoint(s []byte, digits int) ([]byte, bool) {
	if len(r.in) < digits {
		return s, false
	}
	var v rune
	for _, b := range r.in[:digits] {
		if !isHex(b) {
			return s, false
		}
		d := rune(bytes.IndexByte([]byte(hexDigits), b|0x20))
		if isDigit(b) {
			d = rune(b - '0')
		}
		v = v<<4 | d
	}
	r.in = r.in[digits:]
	return utf8.AppendRune(s, v), true
}
