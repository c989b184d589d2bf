package synth

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"ieg"
)

// sequence is what the engine remembers of a sequence.
type sequence struct {
	slot     ieg.Slot
	tokens   []ieg.Token
	prompt   int32
	max      int32
	embed    bool
	sampling ieg.Sampling

	at   int32  // hash is of the first at tokens
	hash uint64 // of that prefix
	mark uint64 // the step that works on it

	pending []byte // text that is not shown yet
}

func (s *sequence) generated() int32 { return int32(len(s.tokens)) - s.prompt }

func (s *sequence) last() ieg.Token { return s.tokens[len(s.tokens)-1] }

// prefix moves hash to the first n tokens and returns it.
func (s *sequence) prefix(n int32, seed uint64) uint64 {
	if s.at > n || s.at == 0 {
		s.at, s.hash = 0, seed
	}
	for ; s.at < n; s.at++ {
		s.hash = extend(s.hash, s.tokens[s.at])
	}
	return s.hash
}

// add takes a drawn token into the sequence. It appends the text that is safe
// to show to b and says whether and why the sequence stops.
func (s *sequence) add(b []byte, t ieg.Token, full bool) (text []byte, stop ieg.StopReason, stopText string) {
	s.tokens = append(s.tokens, t)
	p := &s.sampling
	early := s.generated() <= p.MinTokens
	if (isEOG(t) && !p.IgnoreEOS) || slices.Contains(p.StopTokens, t) {
		return s.flush(b), ieg.StopEnd, ""
	}
	s.pending = appendToken(s.pending, t, p.KeepSpecial)
	hold := 0
	if !early {
		if i, found := firstOf(s.pending, p.Stop); i >= 0 {
			end := i
			if p.IncludeStop {
				end += len(found)
			}
			s.pending = s.pending[:end]
			return s.flush(b), ieg.StopEnd, found
		}
		hold = heldBack(s.pending, p.Stop)
	}
	if (s.max > 0 && s.generated() >= s.max) || full {
		return s.flush(b), ieg.StopLength, ""
	}
	n := whole(s.pending[:len(s.pending)-hold])
	b = appendShown(b, s.pending[:n])
	s.pending = append(s.pending[:0], s.pending[n:]...)
	return b, ieg.NotStopped, ""
}

// flush shows all that was held back.
func (s *sequence) flush(b []byte) []byte {
	b = appendShown(b, s.pending)
	s.pending = s.pending[:0]
	return b
}

// firstOf finds the earliest of the stop strings in p, or -1.
func firstOf(p []byte, stops []string) (at int, found string) {
	at = -1
	for _, s := range stops {
		if s == "" {
			continue
		}
		if i := bytes.Index(p, []byte(s)); i >= 0 && (at < 0 || i < at) {
			at, found = i, s
		}
	}
	return at, found
}

// heldBack is the length of the longest end of p that begins a stop string.
func heldBack(p []byte, stops []string) int {
	hold := 0
	for _, s := range stops {
		for n := min(len(s)-1, len(p)); n > hold; n-- {
			if string(p[len(p)-n:]) == s[:n] {
				hold = n
			}
		}
	}
	return hold
}

// whole is the length of p without an unfinished character at its end.
func whole(p []byte) int {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return len(p)
			}
			return i
		}
	}
	return len(p)
}
