package gbnf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ieg"
)

const jsonGrammar = `
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}   # at most one line end
`

func mustParse(t testing.TB, src string) *Grammar {
	t.Helper()
	g, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		grammar   string
		whole     []string // complete texts
		open, bad []string // may go on; refused
	}{
		{jsonGrammar, []string{`{}`, `{"a": [1, -2.5e3, "x\u00e9€"], "b":null}`}, []string{``, `{`, `{"a`, "{\"\xe2\x82"}, []string{`[`, `{"a" 1}`, `{"a":01}`, "{\"\xff", "{\"\xe2A", "{\"\xc0\x80", "{\"\xed\xa0\x80"}},
		{`root ::= "a"{2,4}`, []string{"aa", "aaa", "aaaa"}, []string{"", "a"}, []string{"aaaaa", "b"}},
		{`root ::= "ab"{2}`, []string{"abab"}, []string{"aba"}, []string{"abb"}},
		{`root ::= "x"{0} "y"`, []string{"y"}, nil, []string{"x"}},
		{`root ::= "x"{1,} "y"?`, []string{"x", "xxxxy"}, nil, []string{"y"}},
		{`root ::= [^a-c] . [é-ü]`, []string{"daé", "€\nü"}, []string{"d"}, []string{"a", "da!", "dzþ"}},
		{"root ::= a |\n b\na ::= \"1\" # one\n\nb ::= (\n \"2\" |\n \"3\" )", []string{"1", "2", "3"}, nil, []string{"4"}},
		{`root ::= ("a" root "b")?`, []string{"", "aabb"}, []string{"aab"}, []string{"aba"}},
		{`root ::= ("a"* "b"*)* "c"`, []string{"c", "abbac"}, []string{"ab"}, []string{"cc"}},
		{`root ::= "\x41\u00e9\U0001F600\t\"\\[-"`, []string{"Aé😀\t\"\\[-"}, []string{"Aé\xf0\x9f"}, []string{"Aé\xf0\x90"}},
	} {
		g, err := Parse(c.grammar)
		if err != nil {
			if strings.Contains(c.grammar, `("a"* "b"*)*`) {
				continue // refused: the group may be empty and begins the repetition
			}
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		for _, text := range c.whole {
			s := g.NewState()
			if text != "" && !s.Advance([]byte(text)) || !s.Complete() {
				t.Errorf("%s: %q is not complete", c.grammar, text)
			}
		}
		for _, text := range c.open {
			s := g.NewState()
			if text != "" && !s.Advance([]byte(text)) || s.Complete() {
				t.Errorf("%s: %q is refused or complete", c.grammar, text)
			}
		}
		for _, text := range c.bad {
			if g.NewState().Accepts([]byte(text)) {
				t.Errorf("%s: %q is accepted", c.grammar, text)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ src, why string }{
		{``, "no rule"},
		{`a ::= "b"`, "no rule"},
		{`root ::= a`, `"a" is used`},
		{"root ::= \"a\"\nroot ::= \"b\"", "twice"},
		{`root ::= root "a"`, "left recursion"},
		{"root ::= a\na ::= b\nb ::= \"x\"? a", "left recursion"},
		{"root ::= (\"\" | \"a\")* \"b\"", "left recursion"},
		{`root ::= "a`, "ends inside"},
		{`root ::= "\q"`, "escape"},
		{`root ::= "\`, "escape"},
		{`root ::= "\x4"`, "hexadecimal"},
		{`root ::= "\UFFFFFFFF"`, "no character"},
		{`root ::= [`, "ends inside"},
		{`root ::= []`, "empty"},
		{`root ::= [z-a]`, "wrong way"},
		{`root ::= *`, "nothing stands"},
		{`root ::= ""*`, "nothing stands"},
		{`root ::= "a"{3,2}`, "wrong way"},
		{`root ::= "a"{99999999999999999999}`, "more than"},
		{`root ::= "a"{,2}`, "number"},
		{`root ::= "a"{2`, "missing"},
		{`root ::= ("a"`, "missing"},
		{`root ::= "a")`, "unexpected"},
		{`root = "a"`, "missing"},
		{`ro_ot ::= "a"`, "missing"},
		{`root ::= <|im_start|>`, "token"},
		{"root ::= \"\xff\"", "UTF-8"},
		{`root ::= ` + strings.Repeat("(", 200), "deeper"},
		{strings.Repeat("#", MaxBytes+1), "bytes"},
		{`root ::= (` + strings.Repeat(`"a"{20000} `, 30) + `)`, "too large"},
	} {
		_, err := Parse(c.src)
		if !errors.Is(err, ErrGrammar) || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%.60q: %v, want %q", c.src, err, c.why)
		}
	}
}

func TestOverflowIsAnEnd(t *testing.T) {
	g := mustParse(t, `root ::= "a" root "b" | "a" root "c" | "d"`)
	s := g.NewState()
	n := 0
	for s.Advance([]byte("a")) {
		n++
	}
	if !s.Overflow() || n < 8 || s.Accepts([]byte("a")) || s.Complete() {
		t.Errorf("after %d: overflow %v", n, s.Overflow())
	}
}

func TestMaskIsBounded(t *testing.T) {
	s := mustParse(t, "root ::= "+strings.Repeat("[a-z]? ", 900)).NewState()
	var words []string
	for i := range 40000 {
		words = append(words, fmt.Sprintf("%c%c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26, 'a'+i%7))
	}
	v := NewVocab(len(words), func(t ieg.Token) []byte { return []byte(words[t]) })
	got, whole := v.Allowed(s, nil)
	if whole || len(got) == 0 || s.Overflow() || s.visits > maskVisits+10*maxVisits {
		t.Errorf("%d of %d, whole %v, %d visits", len(got), len(words), whole, s.visits)
	}
	if !s.Advance([]byte("abc")) {
		t.Error("the state was harmed")
	}
}

func TestLongRunStaysSmall(t *testing.T) {
	g := mustParse(t, jsonGrammar)
	s := g.NewState()
	s.Advance([]byte(`{"a": [`))
	for i := range 30000 {
		if !s.Advance(fmt.Appendf(nil, `{"k%d": "value"}, `, i)) {
			t.Fatal("refused")
		}
	}
	if len(s.frames) > maxFrames+100 {
		t.Errorf("%d chains", len(s.frames))
	}
}

func testVocab() (*Vocab, [][]byte) {
	var p [][]byte
	for b := range 256 {
		p = append(p, []byte{byte(b)})
	}
	for _, x := range []string{"", `{"`, `":`, `": "`, `"}`, "true", "tru", "trx", "€", "\xe2\x82", "\x82\xac", "[[", "]]", `","`, "12", "1.5", "\n\t", `"a": [1`, `abc`, `ab`} {
		p = append(p, []byte(x))
	}
	return NewVocab(len(p), func(t ieg.Token) []byte { return p[t] }), p
}

// checkState compares a state with its twins.
func checkState(t *testing.T, s *State, v *Vocab, pieces [][]byte) {
	t.Helper()
	got, whole := v.Allowed(s, nil)
	if !whole {
		return
	}
	slices.Sort(got)
	var want []ieg.Token
	for i, p := range pieces {
		if s.Accepts(p) {
			want = append(want, ieg.Token(i))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("allowed %v, one by one %v", got, want)
	}
}

func TestAllowed(t *testing.T) {
	g := mustParse(t, jsonGrammar)
	v, pieces := testVocab()
	s := g.NewState()
	for _, b := range []byte(`{"k€": [1.5, {"a": "\u00e9", "b": [true, null]}], "c": {}}`) {
		checkState(t, s, v, pieces)
		if !s.Advance([]byte{b}) {
			t.Fatal("refused")
		}
	}
	checkState(t, s, v, pieces)
	if !s.Complete() || s.Ended() { // white space may follow
		t.Error("not complete, or ended")
	}
}

func TestSplitsAgree(t *testing.T) {
	g := mustParse(t, jsonGrammar)
	text := []byte(`{"k€": [1.5, "é"]}`)
	for cuts := range 1 << 12 {
		s, from := g.NewState(), 0
		for i := 1; i <= len(text); i++ {
			if i < len(text) && cuts>>(i%12)&1 == 0 {
				continue
			}
			if !s.Advance(text[from:i]) {
				t.Fatalf("cut %b: refused at %d", cuts, from)
			}
			from = i
		}
		if !s.Complete() {
			t.Fatalf("cut %b: not complete", cuts)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(jsonGrammar, "{\"a\": 1}")
	f.Add(`root ::= ("a" | b)* "c"{2,3}`+"\nb ::= [^x]+", "abcc")
	f.Add(`root ::= "a" root "b" | "a" root "c" | "d"`, "aaaaaaaaaaaaaaaaaaaaaaa")
	v, pieces := testVocab()
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 2000 || len(text) > 100 {
			return
		}
		g, err := Parse(src)
		if err != nil {
			if !errors.Is(err, ErrGrammar) {
				t.Fatal(err)
			}
			return
		}
		s, one := g.NewState(), g.NewState()
		for i := range len(text) {
			p := []byte(text[i : i+1])
			may := s.Accepts(p)
			if did := s.Advance(p); did != may && !s.Overflow() {
				t.Fatalf("accepts %v, advances %v", may, did)
			}
			if !may {
				return
			}
			if !one.Advance(p) || one.Complete() != s.Complete() {
				t.Fatal("two states differ")
			}
		}
		if len(s.cur.stacks) < 50 {
			checkState(t, s, v, pieces)
		}
	})
}

func BenchmarkState(b *testing.B) {
	g := mustParse(b, jsonGrammar)
	s := g.NewState()
	s.Advance([]byte(`{"key": "some `))
	b.Run("check", func(b *testing.B) {
		for range b.N {
			s.Accepts([]byte(" word"))
		}
	})
	v, _ := testVocab()
	var dst []ieg.Token
	b.Run("mask", func(b *testing.B) {
		for range b.N {
			dst, _ = v.Allowed(s, dst[:0])
		}
	})
}
