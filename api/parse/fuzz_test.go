package parse

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// pieces are what structured texts are made of: markers, parts of calls, and
// what breaks them.
var pieces = []string{
	"<tool_call>", "</tool_call>", "<tool_call", `{"name": "f", "arguments": {"a": [1, "x\"}"]}}`,
	`{"name": "search", "parameters": {}}`, `{"arguments": {"k": "v"}, "name": "f"}`, `{"name": "rm"}`,
	`{"name": "f", "arguments": "{\"z\": 0}"}`, `{"name": "f", "arguments": {"a": `, `"open`, "}", "]", ",", ";",
	"<|python_tag|>", "[TOOL_CALLS]", "[", "f[ARGS]", "[CALL_ID]x1[ARGS]", `{"a": 1}`,
	"<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "function<｜tool▁sep｜>", "f\n```json\n", "f<｜tool▁sep｜>",
	"\n```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<think>", "</think>", "[THINK]", "[/THINK]",
	" ", "\n", "\n\n", "Hello", "é", "世界", "<", "{", `{"answer": 1}`, "\xff", "\x00", `\`, `"`,
	`[f(a=1, b='x')]`, "f(", ")", `{"function": {"name": "f"}}`, "true", "nul", "-1.5e", "\t\t\t\t\t",
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(12) {
		if r.IntN(12) == 0 {
			b.WriteByte(byte(r.Uint32()))
			continue
		}
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func configs() []Config {
	var out []Config
	for _, tool := range ToolFormats() {
		for i, reason := range ReasoningFormats() {
			out = append(out, Config{
				ToolFormat: tool, ReasoningFormat: reason,
				ToolsOffered: []string{"f", "search"}, Parallel: i != 1, InReasoning: i == 2,
			})
		}
	}
	return out
}

// subsequence tells whether small can be had from big by leaving bytes out.
func subsequence(small, big string) bool {
	for i := 0; i < len(big) && small != ""; i++ {
		if big[i] == small[0] {
			small = small[1:]
		}
	}
	return small == ""
}

// check asserts everything that must hold of a text under a configuration.
func check(t testing.TB, cfg Config, text string, next func() int) {
	t.Helper()
	whole := feed(t, cfg, text, all)
	for name, got := range map[string]joined{"bytes": feed(t, cfg, text, ones), "random": feed(t, cfg, text, next)} {
		if !reflect.DeepEqual(whole, got) {
			t.Fatalf("%+v on %q\nwhole: %+v\n%s: %+v", cfg, text, whole, name, got)
		}
	}
	if !subsequence(whole.Content, text) {
		t.Fatalf("%+v on %q: content %q was not in the text", cfg, text, whole.Content)
	}
	if len(whole.Calls) == 0 && whole.Reasoning == "" && cfg.ReasoningFormat == None && whole.Content != text {
		t.Fatalf("%+v: text %q became %q", cfg, text, whole.Content)
	}
	for i, c := range whole.Calls {
		if !c.Ended || c.Complete != json.Valid([]byte(c.Args)) || !strings.HasPrefix(c.Args, "{") {
			t.Fatalf("%+v on %q: call %d is %+v", cfg, text, i, c)
		}
		if !cfg.AnyName && c.Name != "f" && c.Name != "search" {
			t.Fatalf("%+v on %q: call of %q", cfg, text, c.Name)
		}
	}
	if !cfg.Parallel {
		complete := 0
		for _, c := range whole.Calls {
			if c.Complete {
				complete++
			}
		}
		if complete > 1 {
			t.Fatalf("%+v on %q: %d complete calls", cfg, text, complete)
		}
	}
}

// checkHeld asserts that content is held back only for a possible marker.
func checkHeld(t testing.TB, cfg Config, text string) {
	t.Helper()
	p := New(cfg)
	for i := range len(text) {
		if _, done := p.Feed([]byte(text[i:i+1]), false); done {
			return
		}
		if len(p.held) > MaxHeldBytes {
			t.Fatalf("%d bytes held", len(p.held))
		}
		if p.state != stText || len(p.held) == 0 {
			continue
		}
		if _, partial := p.match(p.held, p.frame.opens); !partial {
			t.Fatalf("%+v on %q: %q is held for nothing", cfg, text[:i+1], p.held)
		}
	}
}

func TestSplits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cfgs := configs()
	for range 20_000 {
		text := randomText(r)
		cfg := cfgs[r.IntN(len(cfgs))]
		check(t, cfg, text, func() int { return r.IntN(9) })
		checkHeld(t, cfg, text)
	}
}

func FuzzSplits(f *testing.F) {
	for i, p := range pieces {
		f.Add(p+pieces[(i*7)%len(pieces)]+pieces[(i*13)%len(pieces)], uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, text string, which uint8, seed uint64) {
		cfgs := configs()
		cfg := cfgs[int(which)%len(cfgs)]
		r := rand.New(rand.NewPCG(seed, 0))
		check(t, cfg, text, func() int { return r.IntN(5) })
		checkHeld(t, cfg, text)
	})
}

// TestScanner compares the streaming scanner with encoding/json.
func TestScanner(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	tokens := []string{"{", "}", "[", "]", ",", ":", `"k"`, `"\u00e9\n"`, `"\x"`, "1", "-0.5E+3", "01", "-", "1.", "true", "tru", "null", " ", "false", `"`}
	valid := 0
	for range 300_000 {
		text := "{"
		if r.IntN(2) == 0 {
			text = `{"k":`
		}
		for range r.IntN(8) {
			text += tokens[r.IntN(len(tokens))]
		}
		_, got := wholeObject([]byte(text))
		want := json.Valid([]byte(text))
		if got != want {
			t.Fatalf("wholeObject(%q) = %v, encoding/json says %v", text, got, want)
		}
		if want {
			valid++
		}
	}
	if valid < 500 {
		t.Errorf("only %d valid texts were tried", valid)
	}
}

// TestHostile feeds what must neither crash, nor be held, nor take long.
func TestHostile(t *testing.T) {
	const n = 1 << 20
	for name, text := range map[string]string{
		"nesting":          `<tool_call>{"name": "f", "arguments": {"a": ` + strings.Repeat("[", n),
		"nesting captured": `<tool_call>{"arguments": {"a": ` + strings.Repeat(`{"a":`, n/5),
		"long capture":     `<tool_call>{"arguments": {"a": "` + strings.Repeat("x", n),
		"openings":         strings.Repeat("<tool_call>", n/11),
		"half markers":     strings.Repeat("<tool_call", n/10),
		"white space":      strings.Repeat(" ", n),
		"space in a call":  "<tool_call>{" + strings.Repeat("\n", n),
		"long name":        `<tool_call>{"name": "` + strings.Repeat("f", n),
		"many calls":       strings.Repeat(`<tool_call>{"name": "f", "arguments": {}}</tool_call>`, n/54),
		"reasoning space":  "<think>" + strings.Repeat("\n", n),
		"half close":       "<think>" + strings.Repeat("</think", n/7),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			cfg := Config{ToolFormat: Hermes, ReasoningFormat: Think, ToolsOffered: []string{"f"}, Parallel: true}
			p := New(cfg)
			out := 0
			for i := 0; i < len(text); i += 4 {
				events, _ := p.Feed([]byte(text[i:min(i+4, len(text))]), false)
				for _, e := range events {
					out += len(e.Text)
				}
				if len(p.held) > MaxHeldBytes || cap(p.held) > 2*MaxHeldBytes {
					t.Fatalf("%d bytes held, %d kept", len(p.held), cap(p.held))
				}
			}
			if p.index > MaxCalls {
				t.Errorf("%d calls", p.index)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%d bytes took %v", len(text), took)
			}
			if name != "white space" && name != "reasoning space" && name != "many calls" && out < n/2 {
				t.Errorf("only %d bytes came out", out)
			}
		})
	}
}

// TestReasoningIsWhole checks that thoughts and content together are the text
// without its tags and the white space beside them.
func TestReasoningIsWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	words := []string{"a", " ", "\n", "<", "</thin", "think>", "x y", "<b>"}
	for range 5_000 {
		thought, content := "", ""
		for range r.IntN(8) {
			thought += words[r.IntN(len(words))]
		}
		for range r.IntN(6) {
			content += words[r.IntN(len(words))]
		}
		cfg := Config{ReasoningFormat: Think}
		j := feed(t, cfg, "<think>"+thought+"</think>"+content, func() int { return 1 + r.IntN(4) })
		if !strings.Contains(thought, "</think>") {
			if want := strings.TrimSpace(thought); j.Reasoning != want {
				t.Fatalf("thought %q became %q", thought, j.Reasoning)
			}
			if want := strings.TrimLeft(content, " \n"); j.Content != want {
				t.Fatalf("content %q became %q", content, j.Content)
			}
		}
	}
}

func TestCustomTags(t *testing.T) {
	cfg := Config{ReasoningFormat: None, ReasoningOpen: "<<r", ReasoningClose: "aab"}
	if j := feed(t, cfg, "<<r aaaaab c", ones); j.Reasoning != "aaa" || j.Content != "c" {
		t.Errorf("got %+v", j)
	}
}

func BenchmarkFeed(b *testing.B) {
	text := []byte(strings.Repeat("A plain answer of some words, 1 < 2, and so on. ", 20) +
		`<tool_call>{"name": "f", "arguments": {"q": "` + strings.Repeat("word ", 100) + `"}}</tool_call>`)
	cfg := Config{ToolFormat: Hermes, ReasoningFormat: Think, ToolsOffered: []string{"f"}, Parallel: true}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		p := New(cfg)
		for i := 0; i < len(text); i += 4 {
			p.Feed(text[i:min(i+4, len(text))], false)
		}
		p.Feed(nil, true)
	}
}
