package text

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// whole is the twin: it sees all the bytes at once.
func whole(in []byte, stops []string, include bool) (string, string) {
	s := clean(nil, in)
	for i := range len(s) + 1 {
		if i < len(s) && !utf8.RuneStart(s[i]) {
			continue
		}
		best := ""
		for _, x := range stops {
			x = string(clean(nil, []byte(x)))
			if x != "" && len(x) > len(best) && bytes.HasSuffix(s[:i], []byte(x)) {
				best = x
			}
		}
		if best != "" {
			if include {
				return string(s[:i]), best
			}
			return string(s[:i-len(best)]), best
		}
	}
	return string(s), ""
}

// pieces runs the stream over the bytes cut where cuts says.
func pieces(t *testing.T, in []byte, cuts uint64, stops []string, include bool) (string, string) {
	t.Helper()
	s := New(stops, include)
	var out strings.Builder
	from := 0
	for i := 1; i <= len(in); i++ {
		if i < len(in) && cuts>>(uint(i)%64)&1 == 0 {
			continue
		}
		shown, stop := s.Push(in[from:i], true)
		if !utf8.Valid(shown) {
			t.Fatalf("half a character in %q", shown)
		}
		out.Write(shown)
		from = i
		if stop != "" {
			if rest := s.Finish(); len(rest) != 0 {
				t.Fatalf("text %q after the stop", rest)
			}
			return out.String(), stop
		}
		for _, x := range stops {
			if !include && x != "" && strings.HasSuffix(out.String(), x) {
				t.Fatalf("stop string %q was shown in %q", x, out.String())
			}
		}
	}
	out.Write(s.Finish())
	return out.String(), ""
}

func TestStream(t *testing.T) {
	for _, c := range []struct {
		in      string
		stops   []string
		include bool
		text    string
		stop    string
	}{
		{in: "hello", text: "hello"},
		{in: "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", text: "café € 😀"},
		{in: "a\xc3", text: "a\uFFFD"},
		{in: "\xe2\x82", text: "\uFFFD"},
		{in: "\xe2\x82A\xff\xfeB", text: "\uFFFDA\uFFFD\uFFFDB"},
		{in: "\xed\xa0\x80", text: "\uFFFD\uFFFD\uFFFD"},
		{in: "one STOP two", stops: []string{"STOP"}, text: "one ", stop: "STOP"},
		{in: "one STOP two", stops: []string{"STOP"}, include: true, text: "one STOP", stop: "STOP"},
		{in: "one STO", stops: []string{"STOP"}, text: "one STO"},
		{in: "aabaabX", stops: []string{"aabX"}, text: "aab", stop: "aabX"},
		{in: "abcd", stops: []string{"bcd", "cd", "abc"}, text: "", stop: "abc"},
		{in: "xabcd", stops: []string{"cd", "bcd"}, text: "xa", stop: "bcd"},
		{in: "x\n\ny", stops: []string{"", "\n\n"}, text: "x", stop: "\n\n"},
		{in: "x€y", stops: []string{"€"}, text: "x", stop: "€"},
	} {
		for cuts := range uint64(1 << min(len(c.in), 10)) {
			text, stop := pieces(t, []byte(c.in), cuts<<1, c.stops, c.include)
			if text != c.text || stop != c.stop {
				t.Fatalf("%q cut %b: %q, %q; want %q, %q", c.in, cuts, text, stop, c.text, c.stop)
			}
		}
	}
}

func TestUnarmed(t *testing.T) {
	s := New([]string{"ab"}, false)
	var got string
	for i, p := range []string{"xa", "b", "a", "b", "c"} {
		shown, stop := s.Push([]byte(p), i >= 2)
		got += string(shown)
		if (stop == "ab") != (i == 3) {
			t.Fatalf("piece %d: stop %q", i, stop)
		}
	}
	if got != "xab" {
		t.Errorf("text %q", got)
	}
}

func TestFinder(t *testing.T) {
	needles := []string{"<tool", "<tool_call>", "[", ""}
	in := "say <too <tool_call>{"
	for cut := 1; cut < len(in); cut++ {
		f := NewFinder(needles)
		var at string
		for from := 0; from < len(in); from += cut {
			p := []byte(in[from:min(from+cut, len(in))])
			n, rest := f.Find(p)
			if n2, _ := f.Find(p); !bytes.Equal(n, n2) {
				t.Fatal("Find changed the finder")
			}
			if n != nil {
				at = string(n) + "|" + string(rest) + in[min(from+cut, len(in)):]
				break
			}
			f.Push(p)
		}
		if at != "<tool|_call>{" {
			t.Errorf("pieces of %d: %q", cut, at)
		}
	}
}

func TestPushAllocatesNothing(t *testing.T) {
	s := New([]string{"</s>", "\n\nUser:"}, false)
	p := []byte(" word\n")
	s.Push(p, true)
	if n := testing.AllocsPerRun(100, func() { s.Push(p, true) }); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte("hello STOP \xe2\x82\xac \xff"), uint64(0x5555), "STOP", "\xe2\x82", false)
	f.Add([]byte("aabaabaab"), uint64(1), "aabaab", "baa", true)
	f.Fuzz(func(t *testing.T, in []byte, cuts uint64, a, b string, include bool) {
		if len(in) > 200 || len(a)+len(b) > 60 {
			return
		}
		if bytes.Contains(clean(nil, []byte(a+" "+b)), []byte("\uFFFD")) {
			return // a broken end counts as text, never as a stop string
		}
		stops := []string{a, b}
		text, stop := pieces(t, in, cuts, stops, include)
		wantText, wantStop := whole(in, stops, include)
		if text != wantText || stop != wantStop {
			t.Fatalf("%q cut %b by %q: %q, %q; want %q, %q", in, cuts, stops, text, stop, wantText, wantStop)
		}
	})
}

func FuzzFinder(f *testing.F) {
	f.Add("xx<tool>yy", "<tool>", ">", uint64(0x33))
	f.Fuzz(func(t *testing.T, in, a, b string, cuts uint64) {
		needles := []string{a, b}
		first := len(in) + 1
		for _, n := range needles {
			if i := strings.Index(in, n); n != "" && i >= 0 {
				first = min(first, i+len(n))
			}
		}
		fd, from := NewFinder(needles), 0
		for i := 1; i <= len(in); i++ {
			if i < len(in) && cuts>>(uint(i)%64)&1 == 0 {
				continue
			}
			n, rest := fd.Find([]byte(in[from:i]))
			if n != nil {
				if i-len(rest) != first {
					t.Fatalf("found %q at %d, want %d", n, i-len(rest), first)
				}
				return
			}
			fd.Push([]byte(in[from:i]))
			from = i
		}
		if first <= len(in) {
			t.Fatalf("%q in %q was missed at %d", needles, in, first)
		}
	})
}
