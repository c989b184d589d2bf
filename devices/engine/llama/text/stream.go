package text

import (
	"bytes"
	"unicode/utf8"
)

// Stream is the text of one sequence. The zero Stream has no stop strings.
type Stream struct {
	stops   [][]byte
	include bool
	last    [256]bool // final bytes of the stop strings

	part []byte // bytes of a character that is not complete
	held []byte // characters that were not given yet
	out  []byte
	done bool
}

// New makes a stream that ends at any of the stop strings; include keeps the
// stop string in the text. Empty stop strings are ignored.
func New(stops []string, include bool) *Stream {
	s := &Stream{include: include}
	for _, x := range stops {
		if x != "" {
			b := clean(nil, []byte(x))
			s.stops = append(s.stops, b)
			s.last[b[len(b)-1]] = true
		}
	}
	return s
}

// Push adds the bytes of a token. It returns the text that may be shown now,
// valid until the next call, and the stop string if one is complete; the
// stream has ended then. Unarmed, stop strings are not looked for, and none
// that begins in this text will be found later.
func (s *Stream) Push(piece []byte, armed bool) (shown []byte, stop string) {
	if s.done {
		return nil, ""
	}
	armed = armed && len(s.stops) > 0
	s.part = append(s.part, piece...)
	n := 0
	for n < len(s.part) && utf8.FullRune(s.part[n:]) {
		n += s.take(s.part[n:])
		if !armed {
			continue
		}
		if x := s.match(); x != nil {
			s.done = true
			end := len(s.held)
			if !s.include {
				end -= len(x)
			}
			return s.held[:end], string(x)
		}
	}
	s.part = append(s.part[:0], s.part[n:]...)
	keep := 0
	if armed {
		keep = s.mayBegin()
	}
	return s.give(keep), ""
}

// Finish ends the stream and returns what was held back.
func (s *Stream) Finish() []byte {
	if s.done {
		return nil
	}
	s.done = true
	for len(s.part) > 0 {
		s.part = s.part[s.take(s.part):]
	}
	return s.give(0)
}

// take moves the first character to held and returns its length in bytes.
func (s *Stream) take(p []byte) int {
	r, n := utf8.DecodeRune(p)
	if r != utf8.RuneError || n > 1 {
		s.held = append(s.held, p[:n]...)
		return n
	}
	s.held = append(s.held, "\uFFFD"...)
	return brokenLen(p)
}

// brokenLen is the length of the maximal part of a character at the start of
// p, which is not a whole one.
func brokenLen(p []byte) int {
	n := 1
	for n < len(p) && n < utf8.UTFMax && !utf8.FullRune(p[:n+1]) {
		n++
	}
	if n > 1 || len(p) == 1 {
		return n
	}
	return 1
}

// match returns the longest stop string that held ends in.
func (s *Stream) match() []byte {
	if !s.last[s.held[len(s.held)-1]] {
		return nil
	}
	var best []byte
	for _, x := range s.stops {
		if len(x) > len(best) && bytes.HasSuffix(s.held, x) {
			best = x
		}
	}
	return best
}

// mayBegin is the length of the longest end of held that begins a stop string.
func (s *Stream) mayBegin() int {
	best := 0
	for _, x := range s.stops {
		for k := min(len(x)-1, len(s.held)); k > best; k-- {
			if bytes.HasSuffix(s.held, x[:k]) {
				best = k
			}
		}
	}
	return best
}

// give returns held but for its last keep bytes.
func (s *Stream) give(keep int) []byte {
	n := len(s.held) - keep
	s.out = append(s.out[:0], s.held[:n]...)
	s.held = append(s.held[:0], s.held[n:]...)
	return s.out
}

// clean appends p to dst with broken characters replaced.
func clean(dst, p []byte) []byte {
	s := Stream{held: dst}
	for len(p) > 0 {
		p = p[s.take(p):]
	}
	return s.held
}
