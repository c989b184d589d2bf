package grammar

import "fmt"

// str compiles strings: by length, pattern or format.
func (c *compiler) str(m *merged) (expr, error) {
	lo, hi, err := m.counts("minLength", "maxLength")
	if err != nil {
		return expr{}, err
	}
	pattern, hasPattern := m.kw["pattern"]
	format, hasFormat := m.kw["format"]
	if !hasPattern && !hasFormat {
		return c.text(lo, hi), nil
	}
	main := pattern
	if !hasPattern {
		main = format
	}
	for _, name := range []string{"format", "minLength", "maxLength"} {
		if other, ok := m.kw[name]; ok && other.at != main.at {
			return expr{}, errAt(other.at, "can't be combined with %s", main.at)
		}
	}
	if main.val.kind != vString {
		return expr{}, errAt(main.at, "must be a string")
	}
	var body expr
	if hasPattern {
		body, err = c.regex(main.val.text, main.at, true, true)
	} else {
		body, err = c.format(main.val.text, main.at)
	}
	if err != nil {
		return expr{}, err
	}
	return c.rule("string", seq(lit(`"`), body, lit(`"`))), nil
}

// format compiles the named formats.
func (c *compiler) format(name, at string) (expr, error) {
	switch name {
	case "date":
		return c.date(), nil
	case "time":
		return c.time(), nil
	case "date-time":
		return seq(c.date(), lit("T"), c.time()), nil
	case "uuid":
		n := func(count int) expr { return c.rep(hex, count, count) }
		dash := lit("-")
		return seq(n(8), dash, n(4), dash, n(4), dash, n(4), dash, n(12)), nil
	case "email":
		word := class('a', 'z', 'A', 'Z', '0', '9', '_', '_', '-', '-', '+', '+')
		alnum := class('a', 'z', 'A', 'Z', '0', '9')
		local := seq(c.rep(word, 1, 30), c.opt(seq(lit("."), c.rep(word, 1, 30))))
		inner := class('a', 'z', 'A', 'Z', '0', '9', '-', '-')
		label := c.rule("label", seq(alnum, c.opt(seq(c.rep(inner, 0, 30), alnum))))
		return seq(local, lit("@"), label, c.rep(seq(lit("."), label), 1, 3)), nil
	case "ipv4":
		octet := c.rule("octet", c.upTo(255))
		return seq(octet, c.rep(seq(lit("."), octet), 3, 3)), nil
	}
	return expr{}, errAt(at, "the format %q is not supported (date, time, date-time, uuid, email, ipv4 are)", name)
}

// upTo is the whole numbers from 0 to n.
func (c *compiler) upTo(n int) expr {
	var alts []expr
	for digits, from := 1, 0; from <= n; digits++ {
		to := min(n, pow10(digits)-1)
		alts = append(alts, c.digits(fmt.Sprint(from), fmt.Sprint(to)))
		from = to + 1
	}
	return alt(alts...)
}

func pow10(n int) int {
	p := 1
	for range n {
		p *= 10
	}
	return p
}

// date is a day of the Gregorian calendar, leap years included.
func (c *compiler) date() expr {
	two := func(lo, hi int) expr { return c.digits(fmt.Sprintf("%02d", lo), fmt.Sprintf("%02d", hi)) }
	year := c.rep(digit, 4, 4)
	long := alt(lit("01"), lit("03"), lit("05"), lit("07"), lit("08"), lit("10"), lit("12"))
	short := alt(lit("04"), lit("06"), lit("09"), lit("11"))
	days := alt(
		seq(long, lit("-"), two(1, 31)),
		seq(short, lit("-"), two(1, 30)),
		seq(lit("02-"), two(1, 28)))
	// Multiples of 4 with two digits; 00 apart.
	four := alt(seq(lit("0"), class('4', '4', '8', '8')),
		seq(class('2', '2', '4', '4', '6', '6', '8', '8'), class('0', '0', '4', '4', '8', '8')),
		seq(class('1', '1', '3', '3', '5', '5', '7', '7', '9', '9'), class('2', '2', '6', '6')))
	leap := alt(seq(digit, digit, four), seq(four, lit("00")), lit("0000"))
	return c.rule("date", alt(seq(year, lit("-"), days), seq(leap, lit("-02-29"))))
}

// time is a time of day with its offset; leap seconds are left out.
func (c *compiler) time() expr {
	hour := c.digits("00", "23")
	sixty := c.digits("00", "59")
	zone := alt(lit("Z"), seq(class('+', '+', '-', '-'), hour, lit(":"), sixty))
	return c.rule("time", seq(hour, lit(":"), sixty, lit(":"), sixty,
		c.opt(seq(lit("."), c.rep(digit, 1, 9))), zone))
}
