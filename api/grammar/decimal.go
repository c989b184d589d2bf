package grammar

import (
	"math/big"
	"strings"
)

// numberRange is the decimal numbers between lo and hi, or nil.
func (c *compiler) numberRange(lo, hi *bound, at string) (*expr, error) {
	end := new(big.Rat).SetInt(limit())
	if lo == nil || lo.at.Cmp(new(big.Rat).Neg(end)) < 0 {
		lo = &bound{at: new(big.Rat).Neg(end)}
	}
	if hi == nil || hi.at.Cmp(end) > 0 {
		hi = &bound{at: end}
	}
	var alts []expr
	zero := new(big.Rat)
	if lo.at.Sign() < 0 {
		a, z := bound{zero, hi.at.Sign() == 0 && hi.open}, bound{new(big.Rat).Neg(lo.at), lo.open}
		if hi.at.Sign() < 0 {
			a = bound{new(big.Rat).Neg(hi.at), hi.open}
		}
		e, err := c.decimals(a, z, at)
		if err != nil {
			return nil, err
		}
		if e != nil {
			alts = append(alts, seq(lit("-"), *e))
		}
	}
	if hi.at.Sign() >= 0 {
		a := *lo
		if lo.at.Sign() < 0 {
			a = bound{at: zero}
		}
		e, err := c.decimals(a, *hi, at)
		if err != nil {
			return nil, err
		}
		if e != nil {
			alts = append(alts, *e)
		}
	}
	if len(alts) == 0 {
		return nil, nil
	}
	e := alt(alts...)
	return &e, nil
}

// decimals is the decimal numbers between a and z, 0 ≤ a, or nil: by whole
// part, with the fractions that each leaves.
func (c *compiler) decimals(a, z bound, at string) (*expr, error) {
	if cmp := a.at.Cmp(z.at); cmp > 0 || cmp == 0 && (a.open || z.open) {
		return nil, nil
	}
	wholeA, fracA, okA := split(a.at)
	wholeZ, fracZ, okZ := split(z.at)
	if !okA || !okZ {
		return nil, errAt(at, "minimum and maximum may have up to %d digits after the point", MaxBoundDigits)
	}
	n := max(len(fracA), len(fracZ))
	f := fractions{c: c, lo: pad(fracA, n), hi: pad(fracZ, n), loOpen: a.open, hiOpen: z.open}
	var alts []expr
	add := func(whole *big.Int, tightLo, tightHi bool) {
		tail, alone := f.tail(0, tightLo, tightHi)
		w := lit(whole.String())
		switch {
		case tail != nil && alone:
			alts = append(alts, seq(w, c.opt(seq(lit("."), *tail))))
		case tail != nil:
			alts = append(alts, seq(w, lit("."), *tail))
		case alone:
			alts = append(alts, w)
		}
	}
	if wholeA.Cmp(wholeZ) == 0 {
		add(wholeA, true, true)
	} else {
		add(wholeA, true, false)
		one := big.NewInt(1)
		from, to := new(big.Int).Add(wholeA, one), new(big.Int).Sub(wholeZ, one)
		if from.Cmp(to) <= 0 {
			alts = append(alts, seq(c.wholeRange(from, to), c.opt(seq(lit("."), c.rep(digit, 1, MaxFractionDigits)))))
		}
		add(wholeZ, false, true)
	}
	if len(alts) == 0 {
		return nil, nil
	}
	e := alt(alts...)
	return &e, nil
}

// split is the whole part and the digits after the point.
func split(r *big.Rat) (whole *big.Int, frac string, ok bool) {
	digits, exact := r.FloatPrec()
	if !exact || digits > MaxBoundDigits {
		return nil, "", false
	}
	_, frac, _ = strings.Cut(r.FloatString(digits), ".")
	return floor(r), frac, true
}

func pad(s string, n int) string { return s + strings.Repeat("0", n-len(s)) }

// fractions writes the digits after the point that lie between lo and hi.
type fractions struct {
	c              *compiler
	lo, hi         string
	loOpen, hiOpen bool
}

// tail is the digits from position i on, one at least, or nil if there are
// none; alone tells whether the number may end before them. Tight ends are
// those that the digits so far equal.
func (f *fractions) tail(i int, tightLo, tightHi bool) (digits *expr, alone bool) {
	left := MaxFractionDigits - i
	if !tightLo && !tightHi {
		e := f.c.rep(digit, 1, left)
		return &e, true
	}
	if i == len(f.lo) {
		return f.after(left, tightLo, tightHi)
	}
	alone = !tightLo || strings.Trim(f.lo[i:], "0") == "" && !f.loOpen
	if tightHi && f.hiOpen && strings.Trim(f.hi[i:], "0") == "" {
		alone = false
	}
	first, last := byte('0'), byte('9')
	if tightLo {
		first = f.lo[i]
	}
	if tightHi {
		last = f.hi[i]
	}
	var alts []expr
	for d := first; d <= last; d++ {
		tail, ends := f.tail(i+1, tightLo && d == first, tightHi && d == last)
		switch {
		case tail != nil && ends:
			alts = append(alts, seq(lit(string(rune(d))), f.c.opt(*tail)))
		case tail != nil:
			alts = append(alts, seq(lit(string(rune(d))), *tail))
		case ends:
			alts = append(alts, lit(string(rune(d))))
		}
	}
	if len(alts) == 0 {
		return nil, alone
	}
	e := f.c.rule("fraction", alt(alts...))
	return &e, alone
}

// after is tail past the digits of the bounds.
func (f *fractions) after(left int, tightLo, tightHi bool) (*expr, bool) {
	zeros := f.c.rep(class('0', '0'), 1, left)
	switch {
	case tightHi && (f.hiOpen || tightLo && f.loOpen):
		return nil, false
	case tightHi:
		return &zeros, true
	case f.loOpen:
		// Anything but zeros.
		e := seq(f.c.rep(class('0', '0'), 0, left/2), digit1, f.c.rep(digit, 0, left-left/2-1))
		return &e, false
	}
	e := f.c.rep(digit, 1, left)
	return &e, true
}
