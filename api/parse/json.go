package parse

// verdict is what the scanner says of a byte.
type verdict uint8

const (
	more   verdict = iota // taken, the value goes on
	last                  // taken, the value is complete
	before                // not taken: the value was complete before it
	bad                   // not taken: no JSON value goes on so
)

// scanner checks one JSON value byte by byte. Its memory is fixed; nesting is
// kept as one bit a level.
type scanner struct {
	mode   mode
	depth  int
	object [(MaxDepth + 63) / 64]uint64 // bit set: the level is an object
	lit    string                       // what remains of true, false, null
	hex    int                          // digits that remain of \uXXXX
}

type mode uint8

const (
	wantValue      mode = iota
	wantValueOrEnd      // after '['
	wantKeyOrEnd        // after '{'
	wantKey             // after ',' in an object
	wantColon
	afterValue
	inString
	inEscape
	inHex
	inKey
	inKeyEscape
	inKeyHex
	inLiteral
	numMinus
	numZero
	numInt
	numDot
	numFrac
	numExp
	numExpSign
	numExpInt
)

// take steps and appends what was taken to dst. A raw control character inside
// a string is the model's slip: it is escaped.
func (s *scanner) take(dst []byte, b byte) ([]byte, verdict) {
	if b < 0x20 && (s.mode == inString || s.mode == inKey) {
		return appendEscaped(dst, b), more
	}
	v := s.step(b)
	if v == more || v == last {
		dst = append(dst, b)
	}
	return dst, v
}

func (s *scanner) inObject() bool {
	d := s.depth - 1
	return s.object[d/64]>>(d%64)&1 == 1
}

func (s *scanner) push(object bool) verdict {
	if s.depth == MaxDepth {
		return bad
	}
	d := s.depth
	s.object[d/64] &^= 1 << (d % 64)
	s.mode = wantValueOrEnd
	if object {
		s.object[d/64] |= 1 << (d % 64)
		s.mode = wantKeyOrEnd
	}
	s.depth++
	return more
}

func (s *scanner) pop() verdict {
	s.depth--
	return s.valueEnds()
}

func (s *scanner) valueEnds() verdict {
	s.mode = afterValue
	if s.depth == 0 {
		return last
	}
	return more
}

func isSpace(b byte) bool { return b == ' ' || b == '\n' || b == '\t' || b == '\r' }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isHex(b byte) bool { return isDigit(b) || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F' }

// step takes one byte.
func (s *scanner) step(b byte) verdict {
	switch s.mode {
	case inString, inEscape, inHex, inKey, inKeyEscape, inKeyHex:
		return s.stepString(b)
	case inLiteral:
		return s.stepLiteral(b)
	case numMinus, numZero, numInt, numDot, numFrac, numExp, numExpSign, numExpInt:
		return s.stepNumber(b)
	}
	return s.stepStructure(b)
}

func (s *scanner) stepStructure(b byte) verdict {
	if isSpace(b) {
		return more
	}
	switch s.mode {
	case wantValueOrEnd:
		if b == ']' {
			return s.pop()
		}
		return s.startValue(b)
	case wantValue:
		return s.startValue(b)
	case wantKeyOrEnd, wantKey:
		if b == '}' && s.mode == wantKeyOrEnd {
			return s.pop()
		}
		if b == '"' {
			s.mode = inKey
			return more
		}
	case wantColon:
		if b == ':' {
			s.mode = wantValue
			return more
		}
	case afterValue:
		return s.afterValue(b)
	}
	return bad
}

func (s *scanner) afterValue(b byte) verdict {
	object := s.inObject()
	switch {
	case b == ',' && object:
		s.mode = wantKey
		return more
	case b == ',':
		s.mode = wantValue
		return more
	case b == '}' && object, b == ']' && !object:
		return s.pop()
	}
	return bad
}

func (s *scanner) startValue(b byte) verdict {
	switch {
	case b == '{', b == '[':
		return s.push(b == '{')
	case b == '"':
		s.mode = inString
	case b == '-':
		s.mode = numMinus
	case b == '0':
		s.mode = numZero
	case isDigit(b):
		s.mode = numInt
	case b == 't':
		s.mode, s.lit = inLiteral, "rue"
	case b == 'f':
		s.mode, s.lit = inLiteral, "alse"
	case b == 'n':
		s.mode, s.lit = inLiteral, "ull"
	default:
		return bad
	}
	return more
}

func (s *scanner) stepString(b byte) verdict {
	key := s.mode >= inKey
	plain, escape, hex := inString, inEscape, inHex
	if key {
		plain, escape, hex = inKey, inKeyEscape, inKeyHex
	}
	switch s.mode {
	case plain:
		switch {
		case b == '"' && key:
			s.mode = wantColon
		case b == '"':
			return s.valueEnds()
		case b == '\\':
			s.mode = escape
		case b < 0x20:
			return bad
		}
		return more
	case escape:
		switch b {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.mode = plain
			return more
		case 'u':
			s.mode, s.hex = hex, 4
			return more
		}
		return bad
	}
	if !isHex(b) {
		return bad
	}
	if s.hex--; s.hex == 0 {
		s.mode = plain
	}
	return more
}

func (s *scanner) stepLiteral(b byte) verdict {
	if b != s.lit[0] {
		return bad
	}
	if s.lit = s.lit[1:]; s.lit == "" {
		return s.valueEnds()
	}
	return more
}

// numberMoves says where each state of a number goes on a digit, '.', 'e' and
// a sign; wantValue stands for nowhere.
var numberMoves = [numExpInt + 1][4]mode{
	numMinus:   {numInt},
	numZero:    {wantValue, numDot, numExp},
	numInt:     {numInt, numDot, numExp},
	numDot:     {numFrac},
	numFrac:    {numFrac, wantValue, numExp},
	numExp:     {numExpInt, wantValue, wantValue, numExpSign},
	numExpSign: {numExpInt},
	numExpInt:  {numExpInt},
}

func (s *scanner) stepNumber(b byte) verdict {
	class := -1
	switch {
	case isDigit(b):
		class = 0
	case b == '.':
		class = 1
	case b == 'e', b == 'E':
		class = 2
	case b == '+', b == '-':
		class = 3
	}
	if class >= 0 {
		to := numberMoves[s.mode][class]
		if to == wantValue {
			return bad
		}
		if s.mode == numMinus && b == '0' {
			to = numZero
		}
		s.mode = to
		return more
	}
	switch s.mode {
	case numZero, numInt, numFrac, numExpInt:
	default:
		return bad
	}
	// The number ended before this byte.
	if s.valueEnds() == last {
		return before
	}
	return s.stepStructure(b)
}

const hexDigits = "0123456789abcdef"

func appendEscaped(dst []byte, b byte) []byte {
	switch b {
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&15])
}
