package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ieg/api/openai/jinja"
)

// guard knows the spellings of control tokens. It is immutable.
type guard struct {
	texts   map[string]bool
	lengths []int  // of texts in bytes, each once
	first   string // the characters that begin a text, each once
	longest int
	// heads are the proper beginnings of texts; tails the proper endings,
	// sorted.
	heads map[string]bool
	tails []string
}

func newGuard(control []string) *guard {
	g := &guard{texts: map[string]bool{}, heads: map[string]bool{}}
	for _, t := range control {
		_, n := utf8.DecodeRuneInString(t)
		if len(t) <= n || len(t) > MaxControlBytes || g.texts[t] {
			continue
		}
		g.texts[t] = true
		if !strings.Contains(g.first, t[:n]) {
			g.first += t[:n]
		}
		if !slices.Contains(g.lengths, len(t)) {
			g.lengths = append(g.lengths, len(t))
			g.longest = max(g.longest, len(t))
		}
		for i := range t {
			if i > 0 {
				g.heads[t[:i]] = true
				g.tails = append(g.tails, t[i:])
			}
		}
	}
	slices.Sort(g.tails)
	g.tails = slices.Compact(g.tails)
	return g
}

// at tells whether s begins with a control token.
func (g *guard) at(s string) bool {
	for _, n := range g.lengths {
		if n <= len(s) && g.texts[s[:n]] {
			return true
		}
	}
	return false
}

// spells tells whether s holds a control token.
func (g *guard) spells(s string) bool { return g.count(s) > 0 }

// count is the number of places in s where a control token begins.
func (g *guard) count(s string) int {
	n := 0
	for {
		i := strings.IndexAny(s, g.first)
		if i < 0 {
			return n
		}
		if g.at(s[i:]) {
			n++
		}
		s = s[i+1:]
	}
}

// mayContinue tells whether s, put behind other text, could complete or go on
// a control token.
func (g *guard) mayContinue(s string) bool {
	for n := 1; n <= min(len(s), g.longest); n++ {
		if _, ok := slices.BinarySearch(g.tails, s[:n]); ok {
			return true
		}
	}
	return g.inside(s)
}

// mayBegin tells whether the end of s could be the beginning of a control
// token.
func (g *guard) mayBegin(s string) bool {
	for n := 1; n <= min(len(s), g.longest); n++ {
		if g.heads[s[len(s)-n:]] {
			return true
		}
	}
	return g.inside(s)
}

// inside tells whether all of s lies inside of a control token.
func (g *guard) inside(s string) bool {
	if s == "" {
		return false
	}
	i, _ := slices.BinarySearch(g.tails, s)
	return i < len(g.tails) && strings.HasPrefix(g.tails[i], s)
}

// words have a meaning in tool definitions: templates look them up and
// compare them, so they stay whole unless they spell a control token.
var words = map[string]bool{
	"type": true, "function": true, "name": true, "description": true, "parameters": true,
	"properties": true, "required": true, "items": true, "enum": true, "arguments": true,
	"id": true, "return": true, "returns": true, "default": true, "format": true, "title": true,
	"strict": true, "additionalProperties": true, "anyOf": true, "oneOf": true, "allOf": true,
	"nullable": true, "content": true, "text": true, "string": true, "number": true,
	"integer": true, "boolean": true, "object": true, "array": true, "null": true,
}

// firstMark is the first private-use character tried as a mark.
const firstMark = 0xF0000

// marker edits strings that come from the user.
type marker struct {
	g *guard
	// mark breaks control tokens, end shows where a continued message ends.
	mark, end rune
	// strict puts marks around each character that begins a control token,
	// and at the ends of strings that could become one with their neighbours.
	strict bool
	// risky: strict makes a difference.
	risky bool
}

// newMarker picks two characters that occur nowhere in the input.
func newMarker(g *guard, in Input) (marker, error) {
	m := marker{g: g}
	used := map[rune]bool{}
	look := func(s string) string {
		for _, r := range s {
			if r >= firstMark && r < firstMark+markRunes {
				used[r] = true
			}
		}
		_, middle, _ := trimmed(s)
		m.risky = m.risky || strings.ContainsAny(s, g.first) || g.mayContinue(middle) || g.mayBegin(middle)
		return s
	}
	for _, msg := range in.Messages {
		for _, s := range []string{msg.Content, msg.Reasoning, msg.Name, msg.ToolCallID} {
			look(s)
		}
		for _, c := range msg.ToolCalls {
			look(c.ID)
			look(c.Name)
			look(c.Arguments)
			if json.Valid([]byte(c.Arguments)) {
				if _, err := jinja.FromJSON([]byte(c.Arguments), look); err != nil {
					return m, fmt.Errorf("%w: arguments of a tool call: %w", ErrMessages, err)
				}
			}
		}
	}
	for i, raw := range in.Tools {
		look(string(raw))
		if _, err := jinja.FromJSON(raw, look); err != nil {
			return m, fmt.Errorf("%w: tools[%d]: %w", ErrMessages, i, err)
		}
	}
	for name, raw := range in.Vars {
		if _, err := jinja.FromJSON(raw, look); err != nil {
			return m, fmt.Errorf("%w: %s: %w", ErrMessages, name, err)
		}
	}
	for r := rune(firstMark); r < firstMark+markRunes; r++ {
		switch {
		case used[r]:
		case m.mark == 0:
			m.mark = r
		default:
			m.end = r
			return m, nil
		}
	}
	return m, fmt.Errorf("%w: the text uses all of the private-use characters U+F0000 to U+F00FF", ErrMessages)
}

// word edits a string inside of JSON: keys and values.
func (m marker) word(s string) string {
	if words[s] && !m.g.spells(s) {
		return s
	}
	return m.edit(s)
}

// edit puts marks into a string from the user.
func (m marker) edit(s string) string {
	if len(m.g.texts) == 0 || s == "" {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	front, middle, back := trimmed(s)
	b.WriteString(front)
	if m.strict && m.g.mayContinue(middle) {
		b.WriteRune(m.mark)
	}
	rest := middle
	for {
		i := strings.IndexAny(rest, m.g.first)
		if i < 0 {
			break
		}
		_, n := utf8.DecodeRuneInString(rest[i:])
		b.WriteString(rest[:i])
		if m.strict {
			b.WriteRune(m.mark)
		}
		b.WriteString(rest[i : i+n])
		if m.strict || m.g.at(rest[i:]) {
			b.WriteRune(m.mark)
		}
		rest = rest[i+n:]
	}
	b.WriteString(rest)
	if m.strict && m.g.mayBegin(middle) {
		b.WriteRune(m.mark)
	}
	b.WriteString(back)
	return b.String()
}

// trimmed cuts off the white space that templates like to strip.
func trimmed(s string) (front, middle, back string) {
	body := strings.TrimRightFunc(s, unicode.IsSpace)
	middle = strings.TrimLeftFunc(body, unicode.IsSpace)
	return body[:len(body)-len(middle)], middle, s[len(body):]
}

// count is the number of control tokens in the pieces between marks.
func (m marker) count(text string) int {
	n := 0
	for piece := range strings.SplitSeq(text, string(m.mark)) {
		n += m.g.count(piece)
	}
	return n
}

// parts cuts the rendered text at the marks.
func (m marker) parts(text string) []Part {
	var out []Part
	for _, piece := range strings.Split(text, string(m.mark)) {
		if piece != "" {
			out = append(out, Part{Text: piece, Special: true})
		}
	}
	return out
}
