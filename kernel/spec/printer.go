package spec

import (
	"strconv"
	"strings"
)

// Print writes bound fields as YAML that Read reads back to the same values.
// Empty lists and texts, and groups without content, are left out.
func Print(fields ...Field) string {
	p := &printer{}
	group(fields).body(p)
	return p.b.String()
}

type printer struct {
	b      strings.Builder
	indent int
	dash   bool // the next line begins a list item
}

func (p *printer) margin() {
	n := p.indent
	if p.dash {
		p.b.WriteString(strings.Repeat("  ", n-1))
		p.b.WriteString("- ")
		p.dash = false
		return
	}
	p.b.WriteString(strings.Repeat("  ", n))
}

func (p *printer) line(key, text string) {
	p.margin()
	p.b.WriteString(key + ": " + text + "\n")
}

// nest prints key and, one level deeper, what body prints; nothing if body
// returns false.
func (p *printer) nest(key string, body func() bool) bool {
	before, dash := p.b.Len(), p.dash
	p.margin()
	p.b.WriteString(key + ":\n")
	p.indent++
	ok := body()
	p.indent--
	if !ok {
		text := p.b.String()[:before]
		p.b.Reset()
		p.b.WriteString(text)
		p.dash = dash
	}
	return ok
}

// item prints one list item.
func (p *printer) item(body func()) {
	p.indent++
	p.dash = true
	before := p.b.Len()
	body()
	if p.b.Len() == before { // nothing inside
		p.margin()
		p.b.WriteString("{}\n")
	}
	p.dash = false
	p.indent--
}

// quote writes a text as a YAML scalar, plain where that is safe.
func quote(s string) string {
	if plain(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// plain allows what can't be taken for anything but a text.
func plain(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf":
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if letter || i > 0 && (c >= '0' && c <= '9' || strings.IndexByte("-./", c) >= 0) || i == 0 && c == '/' {
			continue
		}
		return false
	}
	return true
}
