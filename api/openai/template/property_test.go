package template

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// hostile are strings made to become control tokens.
func hostile(r *rand.Rand, control []string) string {
	pieces := []string{"a", " ", "\n", "<", ">", "|", "</think>", "<think>", "<image>", "ok", "[", "]", "im_end", "\U000F0000"}
	var b strings.Builder
	for range r.IntN(6) {
		if r.IntN(2) == 0 {
			t := control[r.IntN(len(control))]
			i := r.IntN(len(t))
			b.WriteString(strings.ToValidUTF8(t[:i], "") + strings.ToValidUTF8(t[r.IntN(len(t)):], ""))
			b.WriteString([]string{"", t}[r.IntN(2)])
		}
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// tamer replaces strings by ones that can't become anything: equal ones by
// equal ones, and white space at the ends stays.
func tamer() func(string) string {
	seen := map[string]string{}
	return func(s string) string {
		if strings.TrimSpace(s) == "" {
			return s
		}
		if seen[s] == "" {
			front, _, back := trimmed(s)
			seen[s] = front + strings.Repeat("Ω", 1+len(seen)) + back
		}
		return seen[s]
	}
}

// controlCount tokenises as an engine does: spelled control tokens count in
// Special parts, the longest at each place.
func controlCount(parts []Part, control []string) int {
	n := 0
	for _, p := range parts {
		for i := 0; p.Special && i < len(p.Text); {
			best := 0
			for _, c := range control {
				if strings.HasPrefix(p.Text[i:], c) {
					best = max(best, len(c))
				}
			}
			if best > 0 {
				n++
			}
			i += max(best, 1)
		}
	}
	return n
}

func chat(str func() string) Input {
	quote := func() json.RawMessage { b, _ := json.Marshal(str()); return b }
	key := func() string { return string(quote()) }
	return Input{
		Messages: []Message{
			{Role: "system", Content: str()},
			{Role: "user", Content: str(), Name: str()},
			{Role: "assistant", Content: str(), Reasoning: str(), ToolCalls: []ToolCall{{ID: "abcdefghi", Name: str(), Arguments: `{` + key() + `:[` + key() + `]}`}}},
			{Role: "tool", Content: str(), ToolCallID: "abcdefghi"},
			{Role: "assistant", Content: str()},
			{Role: "user", Content: str()},
		},
		Tools: []json.RawMessage{[]byte(`{"type":"function","function":{"name":` + key() + `,"description":` + key() + `,` + key() + `:` + key() + `}}`)},
		Vars:  map[string]json.RawMessage{"extra": quote()},
	}
}

// TestUserTextNeverBecomesControl compares chats of hostile strings with
// chats of harmless ones: the prompts must have the same number of control
// tokens, those of the template.
func TestUserTextNeverBecomesControl(t *testing.T) {
	for name, control := range controls {
		tmpl := load(t, name)
		for seed := range uint64(400) {
			checkControl(t, tmpl, control, name, seed)
		}
	}
}

func checkControl(t *testing.T, tmpl *Template, control []string, name string, seed uint64) {
	t.Helper()
	render := func(edit func(string) string) ([]Part, error) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := chat(func() string { return edit(hostile(r, control)) })
		in.BOS, in.EOS, in.Generate = ends[name][0], ends[name][1], true
		return tmpl.Render(in)
	}
	got, err := render(func(s string) string { return s })
	if err != nil {
		t.Fatalf("%s seed %d: %v", name, seed, err)
	}
	want, err := render(tamer())
	if err != nil {
		t.Fatalf("%s seed %d: %v", name, seed, err)
	}
	if g, w := controlCount(got, control), controlCount(want, control); g != w {
		t.Fatalf("%s seed %d: %d control tokens, the template has %d\n%+v", name, seed, g, w, got)
	}
}

// TestTemplatesThatJoin holds templates that build something new from what
// the user wrote.
func TestTemplatesThatJoin(t *testing.T) {
	control := []string{"<|end|>", "<s>", "[X]"}
	for name, c := range map[string]struct{ src, text string }{
		"replace":     {`<s>{{ messages[0].content | replace('<image>', '') }}`, "<|en<image>d|>"},
		"wrap":        {`<s><{{ messages[0].content }}>`, "|end|"},
		"wrap phi":    {`<s><|{{ messages[0].content }}|>`, "end"},
		"join parts":  {`<s>{{ messages[0].content.split('#') | join }}`, "<|e#nd|>"},
		"trimmed":     {`<s>{{ messages[0].content | trim }}|end|>`, "x < \n"},
		"cut":         {`<s>{{ messages[0].content[1:] }}{{ messages[0].content[:3] }}`, "|> <|end"},
		"repeat":      {`<s>{{ messages[0].content }}{{ messages[0].content }}`, "s><"},
		"reverse":     {`<s>{{ messages[0].content | reverse }}`, ">|dne|<"},
		"lower":       {`<s>{{ messages[0].content | lower }}`, "<|END|>"},
		"upper":       {`<s>{{ messages[0].content | upper }}`, "[x]"},
		"chars":       {`<s>{% for c in messages[0].content %}{{ c }}{% endfor %}`, "<|end|>"},
		"repr":        {`<s>{{ [messages[0].content] }}`, "<|end|>"},
		"from format": {`<s>{{ '<|%s|>' % messages[0].content }}`, "end"},
	} {
		tmpl, err := Compile(c.src, control)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := tmpl.Render(Input{Messages: []Message{{Role: "user", Content: c.text}}})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n := controlCount(parts, control); n != 1 {
			t.Errorf("%s: %d control tokens, want only the template's one: %+v", name, n, parts)
		}
	}
}

// TestBenignTextIsNotCut: what can't become a control token is tokenised in
// one piece with its surroundings.
func TestBenignTextIsNotCut(t *testing.T) {
	for name := range controls {
		tmpl := load(t, name)
		in := Input{Messages: []Message{{Role: "user", Content: "if a < b && c[0] > 1 { <b>x</b> }"}}, Generate: true,
			BOS: ends[name][0], EOS: ends[name][1],
			Tools: []json.RawMessage{[]byte(`{"type":"function","function":{"name":"f","description":"s","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}`)}}
		parts, err := tmpl.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) != 1 {
			t.Errorf("%s: cut into %+v", name, parts)
		}
	}
}

func FuzzRender(f *testing.F) {
	f.Add("hi", "f", `{"a":1}`, uint8(0))
	f.Add("<|im_end|>", "<|", `{"|im_end|>":"<"}`, uint8(1))
	f.Add("[/INST]", "</s", `{"s>":"["}`, uint8(2))
	names := []string{"chatml", "smollm", "gemma", "llama", "qwen", "mistral", "deepseek"}
	loaded := map[string]*Template{}
	for _, n := range names {
		src := ""
		if n != "chatml" {
			b, err := os.ReadFile("testdata/" + n + ".jinja")
			if err != nil {
				f.Fatal(err)
			}
			src = string(b)
		}
		tmpl, err := Compile(src, controls[n])
		if err != nil {
			f.Fatal(err)
		}
		loaded[n] = tmpl
	}
	f.Fuzz(func(t *testing.T, text, name, args string, which uint8) {
		n := names[int(which)%len(names)]
		text, name, args = strings.ToValidUTF8(text, ""), strings.ToValidUTF8(name, ""), strings.ToValidUTF8(args, "")
		build := func(text, name string) ([]Part, error) {
			quoted, _ := json.Marshal(name)
			return loaded[n].Render(Input{
				Messages: []Message{{Role: "user", Content: text},
					{Role: "assistant", Null: true, ToolCalls: []ToolCall{{ID: "abcdefghi", Name: name, Arguments: args}}},
					{Role: "tool", Content: text, ToolCallID: "abcdefghi"}},
				Tools: []json.RawMessage{[]byte(`{"type":"function","function":{"name":` + string(quoted) + `}}`)},
				BOS:   ends[n][0], EOS: ends[n][1], Generate: true,
			})
		}
		got, err := build(text, name)
		if err != nil {
			return
		}
		args = `{}`
		want, err := build("Ω", "Ω")
		if err != nil {
			t.Fatal(err)
		}
		if g, w := controlCount(got, controls[n]), controlCount(want, controls[n]); g != w {
			t.Fatalf("%s: %d control tokens, the template has %d: %+v", n, g, w, got)
		}
	})
}
