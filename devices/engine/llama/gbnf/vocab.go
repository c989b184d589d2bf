package gbnf

import (
	"bytes"
	"slices"

	"ieg"
)

// Vocab is a vocabulary sorted by the bytes of its tokens. It is immutable and
// may be shared.
type Vocab struct {
	text []byte
	from []int32 // start of each sorted token's bytes; one more at the end
	id   []ieg.Token
	same []int32 // bytes shared with the sorted token before
}

// NewVocab sorts n tokens; piece gives the bytes of a token, none for tokens
// that no grammar may use.
func NewVocab(n int, piece func(ieg.Token) []byte) *Vocab {
	ids := make([]ieg.Token, 0, n)
	for t := range ieg.Token(n) {
		if len(piece(t)) > 0 {
			ids = append(ids, t)
		}
	}
	slices.SortStableFunc(ids, func(a, b ieg.Token) int { return bytes.Compare(piece(a), piece(b)) })
	v := &Vocab{id: ids, from: make([]int32, 0, len(ids)+1), same: make([]int32, len(ids))}
	var before []byte
	for i, t := range ids {
		p := piece(t)
		k := 0
		for k < len(p) && k < len(before) && p[k] == before[k] {
			k++
		}
		v.same[i] = int32(k)
		v.from = append(v.from, int32(len(v.text)))
		v.text = append(v.text, p...)
		before = p
	}
	v.from = append(v.from, int32(len(v.text)))
	return v
}

// Allowed appends to dst the tokens whose bytes may follow; whole is false if
// the grammar is so ambiguous that the search was cut short. After an Overflow
// it appends nothing.
func (v *Vocab) Allowed(s *State, dst []ieg.Token) (allowed []ieg.Token, whole bool) {
	if s.over {
		return dst, false
	}
	limit := s.visits + maskVisits
	at := func(depth int) *set {
		for len(s.depths) <= depth {
			s.depths = append(s.depths, set{})
		}
		return &s.depths[depth]
	}
	at(0).copy(&s.cur)
	good := 0 // bytes of the token looked at last that may follow
	for i, t := range v.id {
		if int(v.same[i]) > good {
			continue // it shares the refused byte
		}
		good = int(v.same[i])
		p := v.text[v.from[i]:v.from[i+1]]
		for good < len(p) {
			x := at(good + 1)
			x.copy(&s.depths[good])
			if !s.step(x, p[good]) {
				break
			}
			good++
		}
		if s.over || s.visits > limit {
			s.over = false // the look-ahead went too far, not the text
			s.collect()
			return dst, false
		}
		if good == len(p) {
			dst = append(dst, t)
		}
	}
	if len(s.frames) > maxFrames {
		s.collect()
	}
	return dst, true
}
