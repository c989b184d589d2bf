package gbnf

import (
	"slices"
	"unicode/utf8"
)

// span is a range of characters, both ends included.
type span struct{ lo, hi rune }

// class is a set of characters: sorted spans that don't touch, and a bitmap
// of the first 128.
type class struct {
	ascii [2]uint64
	spans []span
}

const lastRune = utf8.MaxRune

// newClass builds a class from any spans; not turns it round.
func newClass(in []span, not bool) class {
	slices.SortFunc(in, func(a, b span) int { return int(a.lo - b.lo) })
	var merged []span
	for _, s := range in {
		if n := len(merged); n > 0 && s.lo <= merged[n-1].hi+1 {
			merged[n-1].hi = max(merged[n-1].hi, s.hi)
			continue
		}
		merged = append(merged, s)
	}
	if not {
		var rest []span
		next := rune(0)
		for _, s := range merged {
			if s.lo > next {
				rest = append(rest, span{next, s.lo - 1})
			}
			next = s.hi + 1
		}
		if next <= lastRune {
			rest = append(rest, span{next, lastRune})
		}
		merged = rest
	}
	c := class{spans: merged}
	for _, s := range merged {
		for r := s.lo; r <= min(s.hi, 127); r++ {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return c
}

// has tells whether the character is in the class.
func (c *class) has(r rune) bool {
	if r < 128 {
		return c.ascii[r>>6]>>(r&63)&1 != 0
	}
	return c.meets(r, r)
}

// meets tells whether any character of [lo, hi] is in the class.
func (c *class) meets(lo, hi rune) bool {
	for _, s := range c.spans {
		if s.lo > hi {
			return false
		}
		if s.hi >= lo {
			return true
		}
	}
	return false
}
