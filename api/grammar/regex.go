package grammar

import (
	"regexp/syntax"
	"slices"
	"unicode"
)

// regex compiles an expression. quoted: the text stands inside a JSON string,
// spelled with the escapes that it needs. search: it may be found anywhere
// (unless anchored); otherwise it is the whole text.
func (b *builder) regex(pattern, at string, quoted, search bool) (expr, error) {
	if len(pattern) > MaxPatternBytes {
		return expr{}, errAt(at, "an expression longer than %d bytes", MaxPatternBytes)
	}
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return expr{}, errAt(at, "not supported: %v", err)
	}
	r := regexCompiler{b: b, at: at, quoted: quoted}
	branches, err := r.branches(re)
	if err != nil {
		return expr{}, err
	}
	alts := make([]expr, 0, len(branches))
	for _, parts := range branches {
		e, err := r.branch(parts, search)
		if err != nil {
			return expr{}, err
		}
		alts = append(alts, e)
	}
	e := b.rule("pattern", alt(alts...))
	b.origin[e.text] = at
	return e, nil
}

type regexCompiler struct {
	b      *builder
	at     string
	quoted bool
}

func isAnchor(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine:
		return true
	}
	return false
}

func hasAnchor(re *syntax.Regexp) bool {
	return isAnchor(re) || slices.ContainsFunc(re.Sub, hasAnchor)
}

// branches splits re into alternatives whose anchors stand on the top level.
func (r *regexCompiler) branches(re *syntax.Regexp) ([][]*syntax.Regexp, error) {
	if isAnchor(re) || !hasAnchor(re) {
		return [][]*syntax.Regexp{{re}}, nil
	}
	var out [][]*syntax.Regexp
	switch re.Op {
	case syntax.OpCapture:
		return r.branches(re.Sub[0])
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			more, err := r.branches(sub)
			if err != nil {
				return nil, err
			}
			out = append(out, more...)
			if len(out) > MaxBranches {
				return nil, errAt(r.at, "anchors in more than %d alternatives", MaxBranches)
			}
		}
		return out, nil
	case syntax.OpConcat:
		out = [][]*syntax.Regexp{nil}
		for _, sub := range re.Sub {
			more, err := r.branches(sub)
			if err != nil {
				return nil, err
			}
			if len(out)*len(more) > MaxBranches {
				return nil, errAt(r.at, "anchors in more than %d alternatives", MaxBranches)
			}
			var joined [][]*syntax.Regexp
			for _, left := range out {
				for _, right := range more {
					joined = append(joined, slices.Concat(left, right))
				}
			}
			out = joined
		}
		return out, nil
	}
	return nil, errAt(r.at, "an anchor that is repeated is not supported")
}

// branch compiles one alternative; anchors only stand at its ends.
func (r *regexCompiler) branch(parts []*syntax.Regexp, search bool) (expr, error) {
	begin, end := !search, !search
	for len(parts) > 0 && (parts[0].Op == syntax.OpBeginText || parts[0].Op == syntax.OpEmptyMatch) {
		begin = begin || parts[0].Op == syntax.OpBeginText
		parts = parts[1:]
	}
	for n := len(parts); n > 0 && (parts[n-1].Op == syntax.OpEndText || parts[n-1].Op == syntax.OpEmptyMatch); n = len(parts) {
		end = end || parts[n-1].Op == syntax.OpEndText
		parts = parts[:n-1]
	}
	var out []expr
	if !begin {
		out = append(out, r.b.many(r.b.char()))
	}
	for _, p := range parts {
		e, err := r.convert(p)
		if err != nil {
			return expr{}, err
		}
		out = append(out, e)
	}
	if !end {
		out = append(out, r.b.many(r.b.char()))
	}
	return seq(out...), nil
}

// convert compiles an expression without anchors.
func (r *regexCompiler) convert(re *syntax.Regexp) (expr, error) {
	if err := r.b.within(r.at, 1+len(re.Rune)); err != nil {
		return expr{}, err
	}
	switch re.Op {
	case syntax.OpEmptyMatch:
		return empty, nil
	case syntax.OpLiteral:
		return r.literal(re), nil
	case syntax.OpCharClass:
		return r.class(re.Rune)
	case syntax.OpAnyChar:
		return r.class([]rune{0, unicode.MaxRune})
	case syntax.OpAnyCharNotNL:
		// The line ends of ECMA-262, which JSON schema speaks.
		return r.class([]rune{0, '\n' - 1, '\n' + 1, '\r' - 1, '\r' + 1, 0x2027, 0x202a, unicode.MaxRune})
	case syntax.OpCapture:
		return r.convert(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return r.repeat(re)
	case syntax.OpConcat, syntax.OpAlternate:
		subs := make([]expr, 0, len(re.Sub))
		for _, s := range re.Sub {
			e, err := r.convert(s)
			if err != nil {
				return expr{}, err
			}
			subs = append(subs, e)
		}
		if re.Op == syntax.OpConcat {
			return seq(subs...), nil
		}
		return alt(subs...), nil
	case syntax.OpNoMatch:
		return expr{}, errAt(r.at, "the expression matches nothing")
	}
	return expr{}, errAt(r.at, "%s is not supported: anchors may stand at the ends only", re)
}

func (r *regexCompiler) repeat(re *syntax.Regexp) (expr, error) {
	e, err := r.convert(re.Sub[0])
	if err != nil {
		return expr{}, err
	}
	lo, hi := re.Min, re.Max
	switch re.Op {
	case syntax.OpStar:
		lo, hi = 0, -1
	case syntax.OpPlus:
		lo, hi = 1, -1
	case syntax.OpQuest:
		lo, hi = 0, 1
	}
	return r.b.rep(e, lo, hi), nil
}

func (r *regexCompiler) literal(re *syntax.Regexp) expr {
	var out []expr
	for _, c := range re.Rune {
		if re.Flags&syntax.FoldCase == 0 {
			out = append(out, r.rune(c))
			continue
		}
		alts := []expr{r.rune(c)}
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			alts = append(alts, r.rune(f))
		}
		out = append(out, alt(alts...))
	}
	return seq(out...)
}

func (r *regexCompiler) rune(c rune) expr {
	if r.quoted {
		return lit(quoteRune(c))
	}
	return lit(string(c))
}

// class is one character out of ranges; inside a JSON string the characters
// that must be escaped are spelled so.
func (r *regexCompiler) class(ranges []rune) (expr, error) {
	ranges = clip(ranges)
	if !r.quoted {
		if len(ranges) == 0 {
			return expr{}, errAt(r.at, "a class without characters matches nothing")
		}
		return class(ranges...), nil
	}
	var alts []expr
	var escaped []expr
	for c := rune(0); c <= '\\'; c++ {
		if (c < 0x20 || c == '"' || c == '\\') && contains(ranges, c) {
			escaped = append(escaped, lit(quoteRune(c)))
		}
	}
	if plain := exclude(cut(ranges, 0x20), []rune{'"', '\\'}); len(plain) > 0 {
		alts = append(alts, class(plain...))
	}
	alts = append(alts, escaped...)
	if len(alts) == 0 {
		return expr{}, errAt(r.at, "a class without characters matches nothing")
	}
	return r.b.rule("class", alt(alts...)), nil
}

func contains(ranges []rune, c rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if c >= ranges[i] && c <= ranges[i+1] {
			return true
		}
	}
	return false
}

// cut drops what is below from.
func cut(ranges []rune, from rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		if lo := max(ranges[i], from); lo <= ranges[i+1] {
			out = append(out, lo, ranges[i+1])
		}
	}
	return out
}

// clip takes the surrogates out.
func clip(ranges []rune) []rune {
	var out []rune
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		if lo < 0xd800 {
			out = append(out, lo, min(hi, 0xd7ff))
		}
		if hi > 0xdfff {
			out = append(out, max(lo, 0xe000), hi)
		}
	}
	return out
}
