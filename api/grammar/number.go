package grammar

import (
	"math/big"
	"strings"
)

// parseRat reads a number literal whose size is sane.
func parseRat(text string) (*big.Rat, bool) {
	if len(text) > 64 {
		return nil, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		exp := strings.TrimLeft(text[i+1:], "+-0")
		if len(exp) > 2 { // at most 10^99
			return nil, false
		}
	}
	return new(big.Rat).SetString(text)
}

func rat(v *value) (*big.Rat, bool) {
	if v.kind != vNumber {
		return nil, false
	}
	return parseRat(v.text)
}

// bound is one end of a range.
type bound struct {
	at   *big.Rat
	open bool // the end itself is outside
}

// bounds reads the four keywords; nil ends are unbounded.
func (m *merged) bounds() (lo, hi *bound, err error) {
	for _, b := range []struct {
		name  string
		open  bool
		lower bool
	}{{"minimum", false, true}, {"exclusiveMinimum", true, true}, {"maximum", false, false}, {"exclusiveMaximum", true, false}} {
		kw, ok := m.kw[b.name]
		if !ok {
			continue
		}
		r, valid := rat(kw.val)
		if !valid {
			return nil, nil, errAt(kw.at, "must be a number of up to 64 characters")
		}
		end, sign := &lo, 1
		if !b.lower {
			end, sign = &hi, -1
		}
		if *end == nil {
			*end = &bound{r, b.open}
			continue
		}
		switch cmp := r.Cmp((*end).at) * sign; {
		case cmp > 0:
			*end = &bound{r, b.open}
		case cmp == 0:
			(*end).open = (*end).open || b.open
		}
	}
	return lo, hi, nil
}

// numeric compiles integer and number with their bounds.
func (c *compiler) numeric(m *merged, integer bool) (expr, error) {
	at := ""
	lo, hi, err := m.bounds()
	if err != nil {
		return expr{}, err
	}
	if lo == nil && hi == nil {
		if integer {
			return c.integer(), nil
		}
		return c.number(), nil
	}
	for _, name := range []string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"} {
		if kw, ok := m.kw[name]; ok {
			at = kw.at
		}
	}
	var e *expr
	if integer {
		e = c.integerRange(lo, hi)
	} else if e, err = c.numberRange(lo, hi, at); err != nil {
		return expr{}, err
	}
	if e == nil {
		return expr{}, errAt(at, "no number of up to %d digits lies between minimum and maximum", MaxIntegerDigits)
	}
	return c.rule("range", *e), nil
}

// limit is the largest whole number that is written.
func limit() *big.Int {
	n := new(big.Int).Exp(big.NewInt(10), big.NewInt(MaxIntegerDigits), nil)
	return n.Sub(n, big.NewInt(1))
}

// integerRange is the whole numbers between lo and hi, or nil.
func (c *compiler) integerRange(lo, hi *bound) *expr {
	first, last := new(big.Int).Neg(limit()), limit()
	if lo != nil {
		n := ceil(lo.at)
		if lo.open && lo.at.IsInt() {
			n.Add(n, big.NewInt(1))
		}
		if n.Cmp(first) > 0 {
			first = n
		}
	}
	if hi != nil {
		n := floor(hi.at)
		if hi.open && hi.at.IsInt() {
			n.Sub(n, big.NewInt(1))
		}
		if n.Cmp(last) < 0 {
			last = n
		}
	}
	if first.Cmp(last) > 0 {
		return nil
	}
	var alts []expr
	if first.Sign() < 0 {
		a, z := new(big.Int).Neg(last), new(big.Int).Neg(first)
		if a.Sign() <= 0 {
			a = big.NewInt(1)
		}
		if a.Cmp(z) <= 0 {
			alts = append(alts, seq(lit("-"), c.wholeRange(a, z)))
		}
		first = new(big.Int)
	}
	if last.Sign() >= 0 {
		alts = append(alts, c.wholeRange(first, last))
	}
	e := alt(alts...)
	return &e
}

func floor(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	_ = m // DivMod rounds towards minus infinity for a positive divisor
	return q
}

func ceil(r *big.Rat) *big.Int {
	q := floor(r)
	if !r.IsInt() {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// wholeRange is the whole numbers from a to z, 0 ≤ a ≤ z, without leading
// zeros: for each number of digits a range of digit strings.
func (c *compiler) wholeRange(a, z *big.Int) expr {
	from, to := a.String(), z.String()
	var alts []expr
	for n := len(from); n <= len(to); n++ {
		lo, hi := "1"+strings.Repeat("0", n-1), strings.Repeat("9", n)
		if n == len(from) {
			lo = from
		}
		if n == len(to) {
			hi = to
		}
		alts = append(alts, c.digits(lo, hi))
	}
	return alt(alts...)
}

// digits is the digit strings between lo and hi, which are equally long.
func (c *compiler) digits(lo, hi string) expr {
	switch {
	case lo == hi:
		return lit(lo)
	case strings.Trim(lo, "0") == "" && strings.Trim(hi, "9") == "":
		return c.rep(digit, len(lo), len(lo))
	case lo[0] == hi[0]:
		return seq(lit(lo[:1]), c.digits(lo[1:], hi[1:]))
	}
	n := len(lo) - 1
	zeros, nines := strings.Repeat("0", n), strings.Repeat("9", n)
	first, last := lo[0], hi[0]
	var alts []expr
	if lo[1:] != zeros {
		alts = append(alts, seq(lit(lo[:1]), c.digits(lo[1:], nines)))
		first++
	}
	var tail *expr
	if hi[1:] != nines {
		e := seq(lit(hi[:1]), c.digits(zeros, hi[1:]))
		tail = &e
		last--
	}
	if first <= last {
		alts = append(alts, seq(class(rune(first), rune(last)), c.rep(digit, n, n)))
	}
	if tail != nil {
		alts = append(alts, *tail)
	}
	return alt(alts...)
}
