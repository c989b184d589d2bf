package synth

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"ieg"
)

// The vocabulary: four control tokens, the 256 bytes, and words that show
// their number: "w300 ".
const (
	EOS       ieg.Token = 0
	BOS       ieg.Token = 1
	TurnStart ieg.Token = 2
	TurnEnd   ieg.Token = 3
	firstByte ieg.Token = 4
	firstWord ieg.Token = firstByte + 256
)

var controlText = [...]string{EOS: "</s>", BOS: "<s>", TurnStart: "<|im_start|>", TurnEnd: "<|im_end|>"}

// chatTemplate is ChatML.
const chatTemplate = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

func isEOG(t ieg.Token) bool { return t == EOS || t == TurnEnd }

// appendToken appends a token's bytes; those of a control token only with
// special.
func appendToken(b []byte, t ieg.Token, special bool) []byte {
	switch {
	case t < firstByte:
		if special {
			b = append(b, controlText[t]...)
		}
	case t < firstWord:
		b = append(b, byte(t-firstByte))
	default:
		b = append(b, 'w')
		b = strconv.AppendInt(b, int64(t), 10)
		b = append(b, ' ')
	}
	return b
}

// tokenize is the inverse of appendToken: the longest word or control token at
// each place, else a byte.
func tokenize(text string, special bool, vocab int32) []ieg.Token {
	var out []ieg.Token
	for len(text) > 0 {
		t, n := firstByte+ieg.Token(text[0]), 1
		if word, size := wordAt(text, vocab); size > 0 {
			t, n = word, size
		} else if special {
			for i, c := range controlText {
				if strings.HasPrefix(text, c) {
					t, n = ieg.Token(i), len(c)
				}
			}
		}
		out = append(out, t)
		text = text[n:]
	}
	return out
}

// wordAt returns the word that text begins with, and its size or 0.
func wordAt(text string, vocab int32) (ieg.Token, int) {
	if text[0] != 'w' {
		return 0, 0
	}
	end := strings.IndexByte(text[:min(len(text), 12)], ' ')
	if end < 2 || text[1] == '0' || text[1] == '+' {
		return 0, 0
	}
	n, err := strconv.ParseInt(text[1:end], 10, 32)
	if err != nil || n < int64(firstWord) || n >= int64(vocab) {
		return 0, 0
	}
	return ieg.Token(n), end + 1
}

// appendShown appends p with what is no UTF-8 replaced.
func appendShown(b, p []byte) []byte {
	for len(p) > 0 {
		r, n := utf8.DecodeRune(p)
		b = utf8.AppendRune(b, r)
		p = p[n:]
	}
	return b
}
