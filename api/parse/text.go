package parse

import "bytes"

// stepText looks for an opening marker in content: held is the longest suffix
// of the text that may still become one.
func (p *Parser) stepText(b byte) {
	p.held = append(p.held, b)
	for len(p.held) > 0 {
		m, partial := p.match(p.held, p.opens())
		if m != nil {
			p.begin(m)
			return
		}
		if partial {
			return
		}
		p.emit(Content, p.held[:1])
		p.held = append(p.held[:0], p.held[1:]...)
	}
}

// opens are the markers that may begin in content.
func (p *Parser) opens() []marker {
	if p.index >= MaxCalls {
		return nil
	}
	return p.frame.opens
}

// match looks for text among markers: the marker that it is, or whether it is
// the beginning of one.
func (p *Parser) match(text []byte, markers []marker) (whole *marker, partial bool) {
	for i := range markers {
		m := &markers[i]
		if len(text) > len(m.text) || m.text[:len(text)] != string(text) {
			continue
		}
		if len(text) == len(m.text) {
			return m, true
		}
		partial = true
	}
	return nil, partial
}

// stepLead takes white space and markers; the first other byte makes all of it
// content.
func (p *Parser) stepLead(b byte) bool {
	if p.space == len(p.held) && isSpace(b) && p.space < MaxSpaceBytes {
		p.held = append(p.held, b)
		p.space++
		return true
	}
	p.held = append(p.held, b)
	m, partial := p.matchLead(p.held[p.space:])
	switch {
	case m != nil:
		p.meet(m)
	case !partial:
		p.held = p.held[:len(p.held)-1]
		p.dropLead()
		p.giveUp()
		return false
	}
	return true
}

// matchLead matches against all that may stand where no content is.
func (p *Parser) matchLead(text []byte) (*marker, bool) {
	var whole *marker
	var partial bool
	try := func(markers []marker) {
		m, part := p.match(text, markers)
		if m != nil {
			whole = m
		}
		partial = partial || part
	}
	if p.index < MaxCalls {
		try(p.frame.opens)
		if !(p.format == Pythonic && p.lead == afterCall) {
			try(p.frame.bare)
		}
	}
	if p.lead == atStart {
		try(p.opener)
	}
	if p.lead == afterCall {
		closers := p.closers()
		for i := range closers {
			if p.used>>i&1 == 0 || closers[i].act == actItem {
				try(closers[i : i+1])
			}
		}
	}
	return whole, partial
}

func (p *Parser) closers() []marker {
	if p.list {
		return p.frame.listClosers
	}
	return p.frame.closers
}

// meet acts on a marker found in stLead.
func (p *Parser) meet(m *marker) {
	switch m.act {
	case actReason:
		p.held, p.space = p.held[:0], 0
		p.state = stReasonTop
	case actClose:
		closers := p.closers()
		for i := range closers {
			if closers[i].text == m.text {
				p.used |= 1 << i
			}
		}
		if m.text == "]" {
			p.list = false
		}
		p.held, p.space = p.held[:0], 0
	default:
		p.begin(m)
	}
}

// begin starts a call at marker m, which is held.
func (p *Parser) begin(m *marker) {
	p.dropLead()
	p.space = 0
	p.call = call{raw: p.call.raw[:0], capt: p.call.capt[:0], head: p.call.head[:0]}
	p.state = stBody
	p.list = m.act == actItem
	switch {
	case m.act == actBare && p.format == Pythonic:
		p.state = stPython
	case m.act == actBare:
		p.state = stObject
		p.call.want = wantFirstKey
	case m.act == actCall:
		p.state = stHead
	}
}

// stepReason shows thoughts up to the closing tag. White space next to a tag
// belongs to it, so that it is held until more text follows.
func (p *Parser) stepReason(b byte) {
	if p.space == len(p.held) && isSpace(b) {
		if p.space == MaxSpaceBytes {
			p.releaseReason()
		}
		p.held = append(p.held, b)
		p.space++
		return
	}
	p.held = append(p.held, b)
	for p.space < len(p.held) {
		tail := p.held[p.space:]
		switch {
		case string(tail) == p.close:
			p.held, p.space = p.held[:0], 0
			p.state, p.lead = stLead, afterReasoning
			return
		case len(tail) < len(p.close) && p.close[:len(tail)] == string(tail):
			return
		case p.reopened(tail):
			if len(tail) == len(p.open) {
				p.held, p.space = p.held[:0], 0
				p.cfg.InReasoning = false
			}
			return
		}
		p.releaseReason()
	}
}

// reopened: some models write the opening tag although the template has.
func (p *Parser) reopened(tail []byte) bool {
	return p.cfg.InReasoning && p.state == stReasonTop &&
		len(tail) <= len(p.open) && bytes.HasPrefix([]byte(p.open), tail)
}

// releaseReason shows the held white space and one byte more, then finds the
// white space at the front of what is left.
func (p *Parser) releaseReason() {
	n := min(p.space+1, len(p.held))
	if p.state == stReasonTop {
		p.emit(Reasoning, p.held[p.space:n])
	} else {
		p.emit(Reasoning, p.held[:n])
	}
	if p.space < n {
		p.state = stReason
	}
	p.held = append(p.held[:0], p.held[n:]...)
	p.space = 0
	for p.space < len(p.held) && isSpace(p.held[p.space]) {
		p.space++
	}
}

func allSpace(text []byte) bool { return len(bytes.TrimLeft(text, " \t\r\n")) == 0 }
