package openai

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// plain marks the ASCII characters that JSON strings hold unescaped.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendText appends the inside of a JSON string. Broken UTF-8 becomes U+FFFD.
func appendText[T string | []byte](b []byte, s T) []byte {
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := decodeRune(s[i:])
			if r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			b = append(append(b, s[from:i]...), `\ufffd`...)
			i++
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		b = appendEscape(b, c)
		i++
		from = i
	}
	return append(b, s[from:]...)
}

func decodeRune[T string | []byte](s T) (rune, int) {
	var buf [utf8.UTFMax]byte
	n := copy(buf[:], s)
	return utf8.DecodeRune(buf[:n])
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// appendString appends a JSON string.
func appendString[T string | []byte](b []byte, s T) []byte {
	return append(appendText(append(b, '"'), s), '"')
}

// appendNullable appends a JSON string, or null for "".
func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendFloat appends a number; JSON has no infinities, so those become the
// floor that clients know from OpenAI.
func appendFloat(b []byte, f float32) []byte {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) || v < logprobFloor {
		v = logprobFloor
		if f > 0 {
			v = math.MaxFloat32
		}
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 32)
}

// logprobFloor stands for minus infinity.
const logprobFloor = -9999.0

// appendInts appends a JSON list of whole numbers.
func appendInts[T ~int32 | ~byte](b []byte, list []T) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, ']')
}

func appendInt[T ~int32](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

// appendTime appends an instant in Unix seconds.
func appendTime(b []byte, unix int64) []byte { return strconv.AppendInt(b, unix, 10) }
