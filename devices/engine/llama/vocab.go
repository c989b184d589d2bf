package llama

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine/llama/gbnf"
)

// vocab is the model's vocabulary. Its methods may be called from any
// goroutine.
type vocab struct {
	h      yz.Vocab
	x      *llamax.Lib
	n      int
	pieces []atomic.Pointer[[]byte] // bytes of tokens, filled when first asked for
	hidden []bool                   // control tokens: no text unless asked for
	end    []bool                   // end-of-generation tokens
	eog    []ieg.Token
	sorted func() *gbnf.Vocab // made for the first grammar
}

// The kinds of tokens in the file's table.
const (
	kindUnknown = 2
	kindControl = 3
)

func newVocab(lib *library, model yz.Model, kinds []int32) (*vocab, error) {
	v := &vocab{h: yz.ModelGetVocab(model), x: lib.x}
	v.n = int(yz.VocabNTokens(v.h))
	if v.n == 0 {
		return nil, fmt.Errorf("%w: the model has no vocabulary", ieg.ErrUnsupported)
	}
	v.pieces, v.hidden, v.end = make([]atomic.Pointer[[]byte], v.n), make([]bool, v.n), make([]bool, v.n)
	v.sorted = sync.OnceValue(v.sort)
	for t, k := range kinds[:min(len(kinds), v.n)] {
		v.hidden[t] = k == kindControl || k == kindUnknown
		if k != 1 && k != 6 && yz.VocabIsEOG(v.h, yz.Token(t)) {
			v.end[t] = true
		}
	}
	for _, t := range []yz.Token{yz.VocabEOS(v.h), yz.VocabEOT(v.h)} {
		if t >= 0 && int(t) < v.n && yz.VocabIsEOG(v.h, t) {
			v.end[t] = true
		}
	}
	for t, end := range v.end {
		if end {
			v.eog = append(v.eog, ieg.Token(t))
		}
	}
	return v, nil
}

// describe fills what the vocabulary knows of the model.
func (v *vocab) describe(info *ieg.ModelInfo) {
	info.Vocab = int32(v.n)
	info.BOS, info.EOS = ieg.Token(yz.VocabBOS(v.h)), v.endToken()
	info.AddBOS, info.AddEOS = yz.VocabGetAddBOS(v.h), v.addsEnd()
	info.EOG = v.eog
	text := func(t ieg.Token) string {
		if t < 0 || int(t) >= v.n {
			return ""
		}
		return string(v.piece(t))
	}
	info.BOSText, info.EOSText = text(info.BOS), text(info.EOS)
	for t, hidden := range v.hidden {
		if s := text(ieg.Token(t)); hidden && s != "" {
			info.ControlText = append(info.ControlText, s)
		}
	}
	// The longest first: one spelling may begin another.
	slices.SortStableFunc(info.ControlText, func(a, b string) int { return len(b) - len(a) })
}

// addsEnd tells whether an input to be embedded ends with the end token.
func (v *vocab) addsEnd() bool {
	return yz.VocabGetAddEOS(v.h) || yz.VocabGetAddSEP(v.h) && yz.GetVocabType(v.h) == yz.VocabTypeWPM
}

// endToken is that token.
func (v *vocab) endToken() ieg.Token {
	if yz.GetVocabType(v.h) == yz.VocabTypeWPM {
		return ieg.Token(yz.VocabSEP(v.h))
	}
	return ieg.Token(yz.VocabEOS(v.h))
}

// valid tells whether the token exists.
func (v *vocab) valid(t ieg.Token) bool { return t >= 0 && int(t) < v.n }

// piece is the bytes of a token, control tokens spelled out.
func (v *vocab) piece(t ieg.Token) []byte {
	if p := v.pieces[t].Load(); p != nil {
		return *p
	}
	buf := make([]byte, pieceBytes)
	n := yz.TokenToPiece(v.h, yz.Token(t), buf, 0, true)
	p := slices.Clone(buf[:max(n, 0)])
	v.pieces[t].Store(&p)
	return p
}

// shown is the bytes of a token as text shows it.
func (v *vocab) shown(t ieg.Token, special bool) []byte {
	if v.hidden[t] && !special {
		return nil
	}
	return v.piece(t)
}

// sort sorts the vocabulary for grammars: no end tokens, and no control
// tokens, whose text would not show.
func (v *vocab) sort() *gbnf.Vocab {
	return gbnf.NewVocab(v.n, func(t ieg.Token) []byte {
		if v.end[t] || v.hidden[t] {
			return nil
		}
		return v.piece(t)
	})
}

// tokenize is Runner's.
func (v *vocab) tokenize(text string, special bool) ([]ieg.Token, error) {
	if len(text) > tokenizeBytes {
		return nil, fmt.Errorf("%w: a text of %d bytes, at most %d", ieg.ErrContextLength, len(text), tokenizeBytes)
	}
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	var out []ieg.Token
	buf := make([]int32, len(text)+8)
	for len(text) > 0 {
		n := cutRun(text)
		k := v.x.Tokenize(uintptr(v.h), text[:n], special, buf)
		if k < 0 {
			buf = make([]int32, -k)
			if k = v.x.Tokenize(uintptr(v.h), text[:n], special, buf); k < 0 {
				return nil, fmt.Errorf("tokenise %d bytes: the library wants %d tokens", n, -k)
			}
		}
		out = slices.Grow(out, k)
		for _, t := range buf[:k] {
			out = append(out, ieg.Token(t))
		}
		text = text[n:]
	}
	return out, nil
}

// cutRun is the length of the part of text that is tokenised at once: all of
// it, unless it holds a run of more than runBytes letters, digits, blanks or
// signs, in which a cut is made.
func cutRun(text string) int {
	run, kind := 0, -1
	for i, r := range text {
		if k := runeKind(r); k != kind {
			run, kind = i, k
		}
		if i-run >= runBytes {
			return i
		}
	}
	return len(text)
}

func runeKind(r rune) int {
	switch {
	case r == ' ' || r == '\t' || r == '\n' || r == '\r' || r == 0xa0 || r == 0x3000:
		return 0
	case r >= '0' && r <= '9':
		return 1
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80:
		return 2
	}
	return 3
}

// detokenize is Runner's.
func (v *vocab) detokenize(tokens []ieg.Token) (string, error) {
	in := make([]yz.Token, len(tokens))
	for i, t := range tokens {
		if !v.valid(t) {
			return "", fmt.Errorf("%w: token %d at %d; the vocabulary has %d", ieg.ErrUnsupported, t, i, v.n)
		}
		in[i] = yz.Token(t)
	}
	return strings.ToValidUTF8(yz.Detokenize(v.h, in, false, true), "\uFFFD"), nil
}
