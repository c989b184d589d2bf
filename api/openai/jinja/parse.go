package jinja

// Template is a parsed chat template. It is immutable.
type Template struct{ body block }

// Parse reads the source of a template. Errors are ErrSyntax (with a line)
// or ErrLimit.
func Parse(source string) (t *Template, err error) {
	defer caught(&err)
	p := &parser{toks: lex(source)}
	body := p.block(nil)
	return &Template{body: body}, nil
}

type parser struct {
	toks  []token
	i     int
	depth int
	loops int // open for blocks, for break and continue
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) is(kind tokKind, text string) bool {
	t := p.peek()
	return t.kind == kind && t.text == text
}

func (p *parser) accept(kind tokKind, text string) bool {
	if p.is(kind, text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expect(kind tokKind, text string) {
	if !p.accept(kind, text) {
		t := p.peek()
		failLine(t.line, "expected %q, found %q", text, t.text)
	}
}

func (p *parser) op(text string) bool   { return p.accept(tokOp, text) }
func (p *parser) word(text string) bool { return p.accept(tokName, text) }

func (p *parser) name() string {
	t := p.next()
	if t.kind != tokName {
		failLine(t.line, "expected a name, found %q", t.text)
	}
	return t.text
}

func (p *parser) closeTag() {
	if t := p.next(); t.kind != tokTagClose {
		failLine(t.line, "unexpected %q at the end of a tag", t.text)
	}
}

// enter guards the recursion of the parser; it returns its own undoing.
func (p *parser) enter() func() {
	if p.depth++; p.depth > ParseDepth {
		fail(ErrLimit, "line %d: nested deeper than %d", p.peek().line, ParseDepth)
	}
	return func() { p.depth-- }
}

// block parses until a tag whose name is in ends, which stays the next token
// after its name was consumed; with no ends until the end of the source.
func (p *parser) block(ends []string) block {
	defer p.enter()()
	var b block
	for {
		switch t := p.next(); t.kind {
		case tokText:
			b = append(b, textStmt{t.text})
		case tokVarOpen:
			b = append(b, outputStmt{p.tuple(true)})
			if e := p.next(); e.kind != tokVarClose {
				failLine(e.line, "unexpected %q in an expression", e.text)
			}
		case tokTagOpen:
			for _, e := range ends {
				if p.is(tokName, e) {
					return b
				}
			}
			b = append(b, p.statement())
		case tokEOF:
			if len(ends) > 0 {
				failLine(t.line, "missing %q", ends[len(ends)-1])
			}
			return b
		default:
			failLine(t.line, "unexpected %q", t.text)
		}
	}
}

// end consumes "endx %}" and returns the body before it.
func (p *parser) body(end string) block {
	p.closeTag()
	b := p.block([]string{end})
	p.next()
	p.closeTag()
	return b
}

func (p *parser) statement() stmt {
	t := p.peek()
	switch name := p.name(); name {
	case "if":
		return p.ifStmt()
	case "for":
		return p.forStmt()
	case "set":
		return p.setStmt()
	case "macro":
		n := p.name()
		return p.macro(n, "endmacro")
	case "call":
		return p.callBlock()
	case "filter":
		fs := p.filters(nil)
		return &filterBlockStmt{filters: fs, body: p.body("endfilter")}
	case "with":
		return p.withStmt()
	case "generation":
		return p.body("endgeneration")
	case "do":
		x := p.tuple(true)
		p.closeTag()
		return doStmt{x}
	case "break", "continue":
		if p.loops == 0 {
			failLine(t.line, "%s outside of a loop", name)
		}
		p.closeTag()
		if name == "break" {
			return signalStmt{doBreak}
		}
		return signalStmt{doContinue}
	default:
		failLine(t.line, "statement %q is not part of chat templates", name)
	}
	return nil
}

func (p *parser) ifStmt() stmt {
	s := &ifStmt{}
	for {
		s.tests = append(s.tests, p.tuple(true))
		p.closeTag()
		s.bodies = append(s.bodies, p.block([]string{"elif", "else", "endif"}))
		switch p.name() {
		case "elif":
			continue
		case "else":
			s.other = p.body("endif")
		default:
			p.closeTag()
		}
		return s
	}
}

func (p *parser) forStmt() stmt {
	s := &forStmt{}
	paren := p.op("(")
	for {
		s.targets = append(s.targets, p.name())
		if !p.op(",") {
			break
		}
	}
	if paren {
		p.expect(tokOp, ")")
	}
	p.expect(tokName, "in")
	s.in = p.tuple(false)
	if p.word("if") {
		s.filter = p.expression()
	}
	s.recursive = p.word("recursive")
	p.closeTag()
	p.loops++
	s.body = p.block([]string{"else", "endfor"})
	p.loops--
	if p.name() == "else" {
		s.other = p.body("endfor")
	} else {
		p.closeTag()
	}
	return s
}

func (p *parser) target() target {
	t := target{name: p.name()}
	if p.op(".") {
		t.attr = p.name()
	}
	return t
}

func (p *parser) setStmt() stmt {
	paren := p.op("(")
	ts := []target{p.target()}
	for p.op(",") {
		ts = append(ts, p.target())
	}
	if paren {
		p.expect(tokOp, ")")
	}
	if p.op("=") {
		s := &setStmt{targets: ts, x: p.tuple(true)}
		p.closeTag()
		return s
	}
	if len(ts) > 1 {
		failLine(p.peek().line, "a set block has one name")
	}
	var fs []filterExpr
	if p.op("|") {
		fs = p.filters(nil)
	}
	return &setBlockStmt{to: ts[0], filters: fs, body: p.body("endset")}
}

// filters parses "name(args) | name(args) …".
func (p *parser) filters(fs []filterExpr) []filterExpr {
	for {
		f := filterExpr{line: p.peek().line, name: p.filterName()}
		if p.op("(") {
			f.args = p.arguments()
		}
		fs = append(fs, f)
		if !p.op("|") {
			return fs
		}
	}
}

func (p *parser) filterName() string {
	line, n := p.peek().line, p.name()
	if filters[n] == nil {
		failLine(line, "no filter named %q", n)
	}
	return n
}

func (p *parser) withStmt() stmt {
	s := &withStmt{}
	for p.peek().kind == tokName {
		s.names = append(s.names, p.name())
		p.expect(tokOp, "=")
		s.vals = append(s.vals, p.expression())
		if !p.op(",") {
			break
		}
	}
	s.body = p.body("endwith")
	return s
}

func (p *parser) macro(name, end string) *macroStmt {
	m := &macroStmt{name: name}
	if p.op("(") {
		for !p.op(")") {
			m.params = append(m.params, p.name())
			if p.op("=") {
				m.defaults = append(m.defaults, p.expression())
			} else if len(m.defaults) > 0 {
				failLine(p.peek().line, "parameter without a default after one with")
			}
			if !p.op(",") && !p.is(tokOp, ")") {
				failLine(p.peek().line, "expected ) in the parameters of %s", name)
			}
		}
	}
	loops := p.loops
	p.loops = 0
	m.body = p.body(end)
	p.loops = loops
	return m
}

func (p *parser) callBlock() stmt {
	m := &macroStmt{name: "caller"}
	if p.op("(") {
		for !p.op(")") {
			m.params = append(m.params, p.name())
			if !p.op(",") && !p.is(tokOp, ")") {
				failLine(p.peek().line, "expected ) in the parameters of a call block")
			}
		}
	}
	line := p.peek().line
	c, ok := p.expression().(*callExpr)
	if !ok {
		failLine(line, "a call block needs a call")
	}
	loops := p.loops
	p.loops = 0
	m.body = p.body("endcall")
	p.loops = loops
	return &callBlockStmt{call: c, macro: m}
}
