package parse

import (
	"bytes"
	"strings"
)

// stepBody reads what follows an opening marker.
func (p *Parser) stepBody(b byte) bool {
	c := &p.call
	if len(c.head) == 0 {
		space, ok := p.gap(b)
		if !ok {
			return p.refuse()
		}
		if space {
			p.hold(b)
			return true
		}
	}
	switch {
	case p.format == DeepSeek:
		return p.stepInnerMarker(b)
	case b == '{' && (p.format != Mistral || p.list):
		p.hold(b)
		p.state, c.want = stObject, wantFirstKey
		return true
	case p.format == Mistral && b == '[' && !p.list:
		p.hold(b)
		p.list = true
		return true
	case p.format == Mistral && !p.list && isNameByte(b):
		p.state = stHead
		return false
	}
	return p.refuse()
}

// stepInnerMarker expects DeepSeek's marker of one call after that of calls.
func (p *Parser) stepInnerMarker(b byte) bool {
	c := &p.call
	c.head = append(c.head, b)
	m, partial := p.match(c.head, p.frame.opens)
	if !partial || m != nil && m.act != actCall {
		return p.refuse()
	}
	p.hold(b)
	if m != nil {
		c.head = c.head[:0]
		p.state = stHead
	}
	return true
}

func isNameByte(b byte) bool {
	return isDigit(b) || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '-' || b == '.'
}

// stepHead reads a name outside of JSON and the marker that follows it.
func (p *Parser) stepHead(b byte) bool {
	if p.format == Mistral {
		return p.stepMistralHead(b)
	}
	c := &p.call
	if b == '\n' || len(c.head) > MaxNameBytes+MaxTagBytes {
		return p.refuse()
	}
	p.hold(b)
	c.head = append(c.head, b)
	for _, sep := range deepSeekSeps {
		if bytes.HasSuffix(c.head, []byte(sep.text)) {
			c.name = strings.TrimSpace(string(c.head[:len(c.head)-len(sep.text)]))
			c.raw = c.raw[:0]
			p.state = stFence
		}
	}
	return true
}

// stepMistralHead reads name[ARGS] or name[CALL_ID]id[ARGS].
func (p *Parser) stepMistralHead(b byte) bool {
	c := &p.call
	if len(c.head) > MaxNameBytes+MaxTagBytes {
		return p.refuse()
	}
	if !c.named {
		if isNameByte(b) {
			p.hold(b)
			c.head = append(c.head, b)
			return true
		}
		c.name, c.named = string(c.head), true
		c.head = c.head[:0]
		if b == '{' {
			return p.startArgs(b)
		}
		if !p.known(c.name) {
			return p.refuse()
		}
	}
	c.head = append(c.head, b)
	whole, ok := mistralTail(string(c.head))
	if !ok {
		return p.refuse()
	}
	p.hold(b)
	if whole {
		p.state = stBrace
	}
	return true
}

func mistralTail(s string) (whole, ok bool) {
	const args, id = "[ARGS]", "[CALL_ID]"
	if rest, found := strings.CutPrefix(s, id); found {
		rest = strings.TrimLeftFunc(rest, func(r rune) bool { return r < 0x80 && isNameByte(byte(r)) })
		return rest == args, strings.HasPrefix(args, rest)
	}
	return s == args, strings.HasPrefix(args, s) || strings.HasPrefix(id, s)
}

// stepFence reads what stands between DeepSeek's separator and the arguments:
// nothing (V3.1), or the name, a line's end and a code fence (V3, R1).
func (p *Parser) stepFence(b byte) bool {
	c := &p.call
	if len(c.raw) > MaxNameBytes+MaxTagBytes {
		return p.refuse()
	}
	switch {
	case b == '{' && !c.named && allSpace(c.raw):
		return p.startArgs(b)
	case !c.named && b == '\n' && !allSpace(c.raw):
		c.name, c.named = strings.TrimSpace(string(c.raw)), true
		c.raw = c.raw[:0]
		if !p.known(c.name) {
			return p.refuse()
		}
	case c.named && b == '{':
		return p.startArgs(b)
	default:
		c.raw = append(c.raw, b)
		if c.named && !isFence(c.raw) {
			return p.refuse()
		}
	}
	p.hold(b)
	return true
}

// isFence tells whether text may be the code fence before arguments.
func isFence(text []byte) bool {
	const fence = "```json"
	s := strings.TrimSpace(string(text))
	if len(text) > MaxSpaceBytes {
		return false
	}
	return strings.HasPrefix(fence, s)
}

func (p *Parser) stepBrace(b byte) bool {
	space, ok := p.gap(b)
	if space && ok {
		p.hold(b)
		return true
	}
	if b != '{' {
		return p.refuse()
	}
	return p.startArgs(b)
}
