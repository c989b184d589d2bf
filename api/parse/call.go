package parse

import (
	"bytes"
	"encoding/json"
)

// want is what a call's object expects next.
type want uint8

const (
	wantFirstKey want = iota // after '{': a key or '}'
	wantNextKey              // after ','
	wantKeyText
	wantSep   // ':'
	wantEntry // a value
	wantNameText
	wantCapture // arguments that can't be shown yet
	wantSkip    // a value of no interest
	wantMore    // ',' or '}'
)

// call is the call that is being read.
type call struct {
	want    want
	nest    int    // 1 inside {"function": {…}}
	gap     int    // bytes of white space in a row
	raw     []byte // a string with its quotes, a line, a fence
	escaped bool
	key     string
	name    string
	named   bool
	capt    []byte // captured arguments
	hasArgs bool
	scan    scanner
	head    []byte
	object  bool // arguments are inside a call's object
	ended   bool
}

func (p *Parser) known(name string) bool {
	return name != "" && len(name) <= MaxNameBytes && (p.cfg.AnyName || p.offered[name])
}

// gap counts white space in a row; too much of it breaks a call.
func (p *Parser) gap(b byte) (space, ok bool) {
	if !isSpace(b) {
		p.call.gap = 0
		return false, true
	}
	p.call.gap++
	return true, p.call.gap <= MaxSpaceBytes
}

// refuse gives the call up and lets b be read as content.
func (p *Parser) refuse() bool {
	p.giveUp()
	return false
}

// startArgs shows the call: from here on its arguments are shown as they come.
func (p *Parser) startArgs(b byte) bool {
	if !p.known(p.call.name) {
		return p.refuse()
	}
	p.event(Event{Kind: ToolStart, Index: p.index, Name: p.call.name})
	p.held = p.held[:0]
	p.args = scanner{}
	p.state = stArgs
	return p.stepArgs(b)
}

func (p *Parser) stepArgs(b byte) bool {
	var buf [8]byte
	text, v := p.args.take(buf[:0], b)
	if v == bad {
		p.event(Event{Kind: ToolEnd, Index: p.index})
		p.index++
		p.giveUp()
		return false
	}
	p.emit(ToolArgs, text)
	if v == last {
		p.endCall()
	}
	return true
}

// endCall closes a complete call.
func (p *Parser) endCall() {
	p.event(Event{Kind: ToolEnd, Index: p.index, Complete: true})
	p.index++
	p.used, p.space = 0, 0
	p.held = p.held[:0]
	p.done = !p.cfg.Parallel
	p.call.ended = true
	if p.call.object {
		p.state, p.call.want = stObject, wantMore
		return
	}
	p.state, p.lead = stLead, afterCall
}

// stepObject reads the object around name and arguments.
func (p *Parser) stepObject(b byte) bool {
	c := &p.call
	if len(p.held) >= MaxHeldBytes {
		return p.refuse()
	}
	if c.want == wantEntry && b == '{' && c.named && !c.ended && isArgsKey(c.key) {
		c.object = true
		return p.startArgs(b)
	}
	if !p.objectByte(b) {
		if c.ended && allSpace(p.held) {
			p.state, p.lead, p.space = stLead, afterCall, len(p.held)
			return false
		}
		return p.refuse()
	}
	return true
}

// objectByte takes b into held and reports false if it doesn't fit.
func (p *Parser) objectByte(b byte) bool {
	c := &p.call
	switch c.want {
	case wantKeyText, wantNameText:
		return p.stringByte(b)
	case wantCapture, wantSkip:
		if done := p.valueByte(b); done != before {
			return done != bad
		}
	}
	space, ok := p.gap(b)
	if !ok {
		return false
	}
	if space {
		p.hold(b)
		return true
	}
	switch {
	case c.want == wantFirstKey && b == '}', c.want == wantMore && b == '}':
		return p.closeObject(b)
	case (c.want == wantFirstKey || c.want == wantNextKey) && b == '"':
		c.want, c.raw, c.escaped = wantKeyText, append(c.raw[:0], b), false
	case c.want == wantSep && b == ':':
		c.want = wantEntry
	case c.want == wantMore && b == ',':
		c.want = wantNextKey
	case c.want == wantEntry:
		return p.entry(b)
	default:
		return false
	}
	p.hold(b)
	return true
}

func isArgsKey(key string) bool { return key == "arguments" || key == "parameters" }

// entry begins the value of the key just read.
func (p *Parser) entry(b byte) bool {
	c := &p.call
	fresh := !c.ended && !c.named
	switch {
	case fresh && (c.key == "name" || c.key == "function") && b == '"':
		c.want, c.raw, c.escaped = wantNameText, append(c.raw[:0], b), false
		p.hold(b)
		return true
	case fresh && c.key == "function" && b == '{' && c.nest == 0:
		c.nest, c.want = 1, wantFirstKey
		p.hold(b)
		return true
	case fresh && c.key == "name":
		return false
	}
	c.want = wantSkip
	if isArgsKey(c.key) && !c.ended && !c.hasArgs {
		if b != '{' && b != '"' && b != 'n' {
			return false
		}
		c.want, c.capt = wantCapture, c.capt[:0]
	}
	c.scan = scanner{}
	return p.valueByte(b) != bad
}

// valueByte feeds a value that is captured or skipped. before means that the
// value had ended and b is still to be read.
func (p *Parser) valueByte(b byte) verdict {
	c := &p.call
	var buf [8]byte
	text, v := c.scan.take(buf[:0], b)
	capture := c.want == wantCapture
	if v == bad {
		return bad
	}
	if capture {
		c.capt = append(c.capt, text...)
	}
	if v == last || v == before {
		c.want = wantMore
		c.hasArgs = c.hasArgs || capture
	}
	if v == before {
		return before
	}
	p.hold(b)
	if v == last && capture && c.named {
		c.object = true
		if !p.showWhole() {
			p.giveUp()
		}
	}
	return v
}

// stringByte reads a key or a name.
func (p *Parser) stringByte(b byte) bool {
	c := &p.call
	if b < 0x20 || len(c.raw) > 6*MaxNameBytes {
		return false
	}
	p.hold(b)
	c.raw = append(c.raw, b)
	if b != '"' || c.escaped {
		c.escaped = b == '\\' && !c.escaped
		return true
	}
	var text string
	if err := json.Unmarshal(c.raw, &text); err != nil {
		p.giveUp()
		return true
	}
	if c.want == wantKeyText {
		c.key, c.want = text, wantSep
		if p.frame.strict && !c.ended && !expectedKey(text) {
			p.giveUp()
		}
		return true
	}
	c.name, c.named, c.want = text, true, wantMore
	c.object = true
	if !p.known(text) || c.hasArgs && !p.showWhole() {
		p.giveUp()
	}
	return true
}

func expectedKey(key string) bool {
	switch key {
	case "name", "type", "id", "function":
		return true
	}
	return isArgsKey(key)
}

// closeObject takes the brace that ends the call's object.
func (p *Parser) closeObject(b byte) bool {
	c := &p.call
	if c.nest > 0 {
		c.nest, c.want = 0, wantMore
		p.hold(b)
		return true
	}
	if !c.ended {
		if !c.named {
			return false
		}
		c.capt = append(c.capt[:0], "{}"...)
		p.showWhole()
	}
	p.held, p.space = p.held[:0], 0
	p.state, p.lead = stLead, afterCall
	return true
}

// showWhole shows a call whose arguments were captured: an object, null for
// none, or an object spelled inside a string.
func (p *Parser) showWhole() bool {
	c := &p.call
	args := c.capt
	switch c.capt[0] {
	case 'n':
		args = []byte("{}")
	case '"':
		var text string
		if err := json.Unmarshal(c.capt, &text); err != nil {
			return false
		}
		args = []byte(text)
		if allSpace(args) {
			args = []byte("{}")
		}
	}
	args, ok := wholeObject(args)
	if !ok {
		return false
	}
	p.event(Event{Kind: ToolStart, Index: p.index, Name: c.name})
	p.emit(ToolArgs, args)
	p.endCall()
	return true
}

// wholeObject checks that text is one JSON object and nothing else.
func wholeObject(text []byte) ([]byte, bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return nil, false
	}
	var s scanner
	out := make([]byte, 0, len(text))
	for i, b := range text {
		var v verdict
		out, v = s.take(out, b)
		if v == bad {
			return nil, false
		}
		if v == last {
			return out, i == len(text)-1
		}
	}
	return nil, false
}
