package spec

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// ErrQuantity: the text is no quantity of the kind asked for.
var ErrQuantity = errors.New("not a quantity")

// number splits a text into its decimal number and its suffix. An exponent is
// a small e; a large one is the prefix exa.
func number(s string) (num, suffix string, err error) {
	i, digits, point := 0, 0, false
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '.' && !point:
			point = true
		case c == 'e' && digits > 0:
			j := i + 1
			if j < len(s) && (s[j] == '-' || s[j] == '+') {
				j++
			}
			k := j
			for k < len(s) && s[k] >= '0' && s[k] <= '9' {
				k++
			}
			if k == j || k-j > 3 {
				return "", "", fmt.Errorf("%w: %q has no exponent after e", ErrQuantity, s)
			}
			return s[:k], s[k:], nil
		default:
			if digits == 0 {
				return "", "", fmt.Errorf("%w: %q does not begin with a number", ErrQuantity, s)
			}
			return s[:i], s[i:], nil
		}
	}
	if digits == 0 {
		return "", "", fmt.Errorf("%w: %q has no number", ErrQuantity, s)
	}
	return s, "", nil
}

// unit is a prefix with its power of ten, or of two.
type unit struct {
	name     string
	ten, two int
}

var byteUnits = []unit{
	{"", 0, 0}, {"B", 0, 0},
	{"KB", 3, 0}, {"kB", 3, 0}, {"MB", 6, 0}, {"GB", 9, 0}, {"TB", 12, 0}, {"PB", 15, 0}, {"EB", 18, 0},
	{"KiB", 0, 10}, {"MiB", 0, 20}, {"GiB", 0, 30}, {"TiB", 0, 40}, {"PiB", 0, 50}, {"EiB", 0, 60},
}

// ParseBytes reads a size: 40GB, 1.5GiB, 512. It must be a whole number of
// bytes.
func ParseBytes(s string) (int64, error) {
	num, suffix, err := number(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	for _, u := range byteUnits {
		if u.name != strings.TrimSpace(suffix) {
			continue
		}
		v, ok := new(big.Rat).SetString(num)
		if !ok {
			return 0, fmt.Errorf("%w: %q", ErrQuantity, s)
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(u.ten)), nil)
		v.Mul(v, new(big.Rat).SetInt(scale.Lsh(scale, uint(u.two))))
		switch {
		case !v.IsInt():
			return 0, fmt.Errorf("%w: %q is no whole number of bytes", ErrQuantity, s)
		case !v.Num().IsInt64():
			return 0, fmt.Errorf("%w: %q is more than 8 EiB", ErrQuantity, s)
		}
		return v.Num().Int64(), nil
	}
	return 0, fmt.Errorf("%w: %q: %q is no unit of bytes; write KB, MB, GB, TB (10ⁿ) or KiB, MiB, GiB, TiB (2ⁿ)", ErrQuantity, s, suffix)
}

// FormatBytes prints a size in the unit that makes it shortest; it reads back
// to the same number.
func FormatBytes(v int64) string {
	best := strconv.FormatInt(v, 10) + "B"
	for _, u := range byteUnits[2:] {
		if u.name == "kB" {
			continue
		}
		div := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(u.ten)), nil)
		div.Lsh(div, uint(u.two))
		r := new(big.Rat).SetFrac(big.NewInt(v), div)
		if r.Num().Sign() == 0 || r.Cmp(big.NewRat(1, 1)) < 0 {
			continue
		}
		n, exact := r.FloatPrec()
		if !exact {
			continue
		}
		if s := r.FloatString(n) + u.name; len(s) <= len(best) {
			best = s
		}
	}
	return best
}

var countPrefix = []unit{{"", 0, 0}, {"K", 3, 0}, {"k", 3, 0}, {"M", 6, 0}, {"G", 9, 0}, {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0}}

// scaled reads number and decimal prefix as one float, rounded once.
func scaled(s, num, prefix string) (float64, error) {
	for _, u := range countPrefix {
		if u.name == prefix {
			exp := u.ten
			if i := strings.IndexByte(num, 'e'); i >= 0 {
				e, err := strconv.Atoi(num[i+1:])
				if err != nil {
					return 0, fmt.Errorf("%w: %q", ErrQuantity, s)
				}
				num, exp = num[:i], exp+e
			}
			v, err := strconv.ParseFloat(num+"e"+strconv.Itoa(exp), 64)
			if err != nil || math.IsInf(v, 0) {
				return 0, fmt.Errorf("%w: %q is out of range", ErrQuantity, s)
			}
			return v, nil
		}
	}
	return 0, fmt.Errorf("%w: %q: %q is no prefix; write K, M, G, T, P or E", ErrQuantity, s, prefix)
}

// ParseCount reads an amount with a decimal prefix: 120T.
func ParseCount(s string) (float64, error) {
	num, suffix, err := number(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	return scaled(s, num, strings.TrimSpace(suffix))
}

// FormatCount prints an amount with a decimal prefix; it reads back to the
// same float.
func FormatCount(v float64) string {
	num, prefix := engineering(v)
	return num + prefix
}

// engineering splits a float into the shortest exact number and a prefix.
func engineering(v float64) (num, prefix string) {
	if v == 0 {
		return "0", ""
	}
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exp, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exp)
	if e < -6 || e > 20 {
		return text, ""
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	three := max(min(e/3*3, 18), 0)
	if e < 0 {
		three = 0
	}
	for _, u := range countPrefix {
		if u.ten == three && u.name != "k" {
			prefix = u.name
		}
	}
	return point(digits, e-three), prefix
}

// point writes digits d.ddd × 10^e without an exponent.
func point(digits string, e int) string {
	switch {
	case e < 0:
		return "0." + strings.Repeat("0", -e-1) + digits
	case e+1 >= len(digits):
		return digits + strings.Repeat("0", e+1-len(digits))
	}
	return digits[:e+1] + "." + digits[e+1:]
}

// ParseRate reads bytes per second: 2TB/s, 300GB/s, 1.5GiB/s, or bits: 400Gb/s.
func ParseRate(s string) (float64, error) {
	t := strings.TrimSpace(s)
	body, ok := strings.CutSuffix(t, "/s")
	if !ok {
		if t == "0" {
			return 0, nil
		}
		return 0, fmt.Errorf("%w: %q is no rate; write for example 2TB/s or 400Gb/s", ErrQuantity, s)
	}
	num, suffix, err := number(body)
	if err != nil {
		return 0, err
	}
	suffix = strings.TrimSpace(suffix)
	if strings.HasSuffix(suffix, "iB") {
		v, err := ParseBytes(body)
		return float64(v), err
	}
	if prefix, bits := strings.CutSuffix(suffix, "b"); bits {
		v, err := scaled(s, num, prefix)
		return v / 8, err
	}
	prefix, ok := strings.CutSuffix(suffix, "B")
	if !ok {
		return 0, fmt.Errorf("%w: %q counts neither bytes (B) nor bits (b)", ErrQuantity, s)
	}
	return scaled(s, num, prefix)
}

// FormatRate prints bytes per second; it reads back to the same float.
func FormatRate(v float64) string {
	num, prefix := engineering(v)
	return num + prefix + "B/s"
}

// ParsePercent reads a share: 45% or 0.45.
func ParsePercent(s string) (float64, error) {
	num, suffix, err := number(strings.TrimSpace(s))
	if err != nil {
		return 0, err
	}
	shift := 0
	switch strings.TrimSpace(suffix) {
	case "%":
		shift = -2
	case "":
	default:
		return 0, fmt.Errorf("%w: %q is no share; write for example 45%%", ErrQuantity, s)
	}
	if i := strings.IndexByte(num, 'e'); i >= 0 {
		e, err := strconv.Atoi(num[i+1:])
		if err != nil {
			return 0, fmt.Errorf("%w: %q", ErrQuantity, s)
		}
		num, shift = num[:i], shift+e
	}
	v, err := strconv.ParseFloat(num+"e"+strconv.Itoa(shift), 64)
	if err != nil || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%w: %q is out of range", ErrQuantity, s)
	}
	return v, nil
}

// FormatPercent prints a share in percent; it reads back to the same float.
func FormatPercent(v float64) string {
	if v == 0 {
		return "0%"
	}
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exp, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exp)
	if e < -12 || e > 18 {
		return mantissa + "e" + strconv.Itoa(e+2) + "%"
	}
	return point(strings.Replace(mantissa, ".", "", 1), e+2) + "%"
}

// ParseSpan reads a span of time: 200ms, 60s, 1m30s.
func ParseSpan(s string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		return 0, fmt.Errorf("%w: %q is no time; write for example 200ms or 60s", ErrQuantity, s)
	}
	return d, nil
}

// FormatSpan prints a span in s, ms, us or ns, in the largest unit that makes
// at least one; it reads back to the same span.
func FormatSpan(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	sign, n := "", uint64(d)
	if d < 0 {
		sign, n = "-", -n
	}
	for _, u := range []struct {
		name string
		exp  int
	}{{"s", 9}, {"ms", 6}, {"us", 3}, {"ns", 0}} {
		text := strconv.FormatUint(n, 10)
		if len(text) <= u.exp {
			continue
		}
		whole, part := text[:len(text)-u.exp], strings.TrimRight(text[len(text)-u.exp:], "0")
		if part != "" {
			whole += "." + part
		}
		return sign + whole + u.name
	}
	return sign + strconv.FormatUint(n, 10) + "ns"
}
