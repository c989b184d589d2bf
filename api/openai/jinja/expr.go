package jinja

import "strconv"

// tuple parses an expression or a bare "a, b" tuple; cond allows "x if y".
func (p *parser) tuple(cond bool) expr {
	one := p.or
	if cond {
		one = p.expression
	}
	x := one()
	if !p.is(tokOp, ",") {
		return x
	}
	l := &listExpr{items: []expr{x}, tuple: true}
	for p.op(",") {
		if p.endOfTuple() {
			break
		}
		l.items = append(l.items, one())
	}
	return l
}

func (p *parser) endOfTuple() bool {
	t := p.peek()
	return t.kind == tokTagClose || t.kind == tokVarClose || t.kind == tokOp && (t.text == ")" || t.text == "=")
}

func (p *parser) expression() expr {
	defer p.enter()()
	x := p.or()
	for p.word("if") {
		c := &condExpr{test: p.or(), yes: x}
		if p.word("else") {
			c.no = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.word("or") {
		x = &binaryExpr{"or", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.word("and") {
		x = &binaryExpr{"and", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.word("not") {
		defer p.enter()()
		return &unaryExpr{"not", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	c := &compareExpr{x: x}
	for {
		op := ""
		t := p.peek()
		switch {
		case t.kind == tokOp:
			switch t.text {
			case "==", "!=", "<", "<=", ">", ">=":
				op = t.text
			}
		case t.kind == tokName && t.text == "in":
			op = "in"
		case t.kind == tokName && t.text == "not" && p.toks[p.i+1].kind == tokName && p.toks[p.i+1].text == "in":
			op = "not in"
			p.next()
		}
		if op == "" {
			break
		}
		p.next()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return x
	}
	return c
}

func (p *parser) left(sub func() expr, ops ...string) expr {
	x := sub()
next:
	for _, op := range ops {
		if p.op(op) {
			x = &binaryExpr{op, x, sub()}
			goto next
		}
	}
	return x
}

func (p *parser) sum() expr     { return p.left(p.concat, "+", "-") }
func (p *parser) concat() expr  { return p.left(p.product, "~") }
func (p *parser) product() expr { return p.left(p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.left(func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filtered bool) expr {
	defer p.enter()()
	var x expr
	switch {
	case p.op("-"):
		x = &unaryExpr{"-", p.unary(false)}
	case p.op("+"):
		x = &unaryExpr{"+", p.unary(false)}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	if filtered {
		x = p.filtered(x)
	}
	return x
}

func (p *parser) primary() expr {
	t := p.next()
	switch t.kind {
	case tokName:
		switch t.text {
		case "true", "True":
			return literal{true}
		case "false", "False":
			return literal{false}
		case "none", "None":
			return literal{nil}
		}
		return nameExpr{t.text}
	case tokString:
		s := t.text
		for p.peek().kind == tokString {
			s += p.next().text
		}
		return literal{s}
	case tokInt:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			failLine(t.line, "number %s is too large", t.text)
		}
		return literal{n}
	case tokFloat:
		n, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			failLine(t.line, "bad number %s", t.text)
		}
		return literal{n}
	case tokOp:
		switch t.text {
		case "(":
			if p.op(")") {
				return &listExpr{tuple: true}
			}
			x := p.tuple(true)
			p.expect(tokOp, ")")
			return x
		case "[":
			l := &listExpr{}
			for !p.op("]") {
				l.items = append(l.items, p.expression())
				if !p.op(",") && !p.is(tokOp, "]") {
					failLine(p.peek().line, "expected ] or , in a list")
				}
			}
			return l
		case "{":
			return p.dict()
		}
	}
	failLine(t.line, "unexpected %q in an expression", t.text)
	return nil
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	for !p.op("}") {
		d.keys = append(d.keys, p.expression())
		p.expect(tokOp, ":")
		d.vals = append(d.vals, p.expression())
		if !p.op(",") && !p.is(tokOp, "}") {
			failLine(p.peek().line, "expected } or , in a dict")
		}
	}
	return d
}

func (p *parser) postfix(x expr) expr {
	for {
		switch {
		case p.op("."):
			t := p.next()
			switch t.kind {
			case tokName:
				x = &attrExpr{x, t.text}
			case tokInt:
				n, _ := strconv.ParseInt(t.text, 10, 64)
				x = &indexExpr{x, literal{n}}
			default:
				failLine(t.line, "expected a name after the dot, found %q", t.text)
			}
		case p.op("["):
			x = p.subscript(x)
		case p.op("("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
}

func (p *parser) subscript(x expr) expr {
	var parts [3]expr
	n := 0
	for !p.is(tokOp, "]") {
		if p.op(":") {
			if n++; n > 2 {
				failLine(p.peek().line, "too many colons in a slice")
			}
			continue
		}
		if parts[n] != nil {
			failLine(p.peek().line, "expected ] in a subscript")
		}
		parts[n] = p.expression()
	}
	p.expect(tokOp, "]")
	if n > 0 {
		return &sliceExpr{x, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		failLine(p.peek().line, "empty subscript")
	}
	return &indexExpr{x, parts[0]}
}

// arguments parses up to and with the closing parenthesis.
func (p *parser) arguments() callArgs {
	var a callArgs
	for !p.op(")") {
		switch {
		case p.op("*"):
			a.spread = p.expression()
		case p.peek().kind == tokName && p.toks[p.i+1].kind == tokOp && p.toks[p.i+1].text == "=":
			a.names = append(a.names, p.name())
			p.next()
			a.kw = append(a.kw, p.expression())
		case len(a.kw) > 0:
			failLine(p.peek().line, "positional argument after a named one")
		default:
			a.pos = append(a.pos, p.expression())
		}
		if !p.op(",") && !p.is(tokOp, ")") {
			failLine(p.peek().line, "expected ) or , in the arguments, found %q", p.peek().text)
		}
	}
	return a
}

// filtered parses what may follow an operand: filters, tests and calls.
func (p *parser) filtered(x expr) expr {
	for {
		switch {
		case p.op("|"):
			f := &filterExpr{of: x, line: p.peek().line, name: p.filterName()}
			if p.op("(") {
				f.args = p.arguments()
			}
			x = f
		case p.word("is"):
			x = p.test(x)
		case p.op("("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
}

func (p *parser) test(x expr) expr {
	t := &testExpr{of: x, line: p.peek().line, not: p.word("not")}
	t.name = p.name()
	if tests[t.name] == nil {
		failLine(t.line, "no test named %q", t.name)
	}
	switch next := p.peek(); {
	case p.op("("):
		t.args = p.arguments()
	case next.kind == tokString || next.kind == tokInt || next.kind == tokFloat,
		next.kind == tokOp && (next.text == "[" || next.text == "{"),
		next.kind == tokName && !endsTest(next.text):
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	return t
}

func endsTest(name string) bool {
	switch name {
	case "else", "or", "and", "is", "if", "in", "not", "recursive":
		return true
	}
	return false
}
