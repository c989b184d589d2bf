package parse

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// joined is the concatenation of events by kind and call.
type joined struct {
	Content, Reasoning string
	Calls              []joinedCall
	Order              []string
}

type joinedCall struct {
	Name, Args      string
	Ended, Complete bool
}

func (j *joined) add(t testing.TB, events []Event) {
	t.Helper()
	for _, e := range events {
		tag := fmt.Sprint(e.Kind, e.Index)
		if n := len(j.Order); n == 0 || j.Order[n-1] != tag {
			j.Order = append(j.Order, tag)
		}
		switch e.Kind {
		case Content:
			j.Content += e.Text
		case Reasoning:
			j.Reasoning += e.Text
		case ToolStart:
			if e.Index != len(j.Calls) {
				t.Fatalf("call %d starts after %d calls", e.Index, len(j.Calls))
			}
			j.Calls = append(j.Calls, joinedCall{Name: e.Name})
		case ToolArgs, ToolEnd:
			if e.Index != len(j.Calls)-1 || j.Calls[e.Index].Ended {
				t.Fatalf("event %+v outside of its call", e)
			}
			c := &j.Calls[e.Index]
			c.Args += e.Text
			if e.Kind == ToolEnd {
				c.Ended, c.Complete = true, e.Complete
			}
		}
	}
}

// feed parses text cut into chunks by next, which returns chunk lengths ≥ 0.
func feed(t testing.TB, cfg Config, text string, next func() int) joined {
	t.Helper()
	p := New(cfg)
	var j joined
	for len(text) > 0 {
		n := min(next(), len(text))
		events, done := p.Feed([]byte(text[:n]), false)
		j.add(t, events)
		if done {
			events, again := p.Feed([]byte(text[n:]), true)
			if len(events) != 0 || !again {
				t.Fatalf("events after done: %v", events)
			}
			return j
		}
		text = text[n:]
	}
	events, done := p.Feed(nil, true)
	j.add(t, events)
	if !done {
		t.Fatal("the final Feed is not done")
	}
	return j
}

func ones() int { return 1 }

func all() int { return 1 << 30 }

func (j joined) String() string {
	var b strings.Builder
	if j.Reasoning != "" {
		fmt.Fprintf(&b, "reasoning %q\n", j.Reasoning)
	}
	if j.Content != "" {
		fmt.Fprintf(&b, "content %q\n", j.Content)
	}
	for i, c := range j.Calls {
		fmt.Fprintf(&b, "call %d %s(%s) complete=%v\n", i, c.Name, c.Args, c.Complete)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func configOf(t *testing.T, d *datadriven.TestData) Config {
	cfg := Config{ToolsOffered: []string{"get_weather", "search", "f"}, Parallel: true}
	d.MaybeScanArgs(t, "tool", &cfg.ToolFormat)
	d.MaybeScanArgs(t, "reason", &cfg.ReasoningFormat)
	cfg.InReasoning = d.HasArg("inside")
	cfg.AnyName = d.HasArg("any")
	cfg.Parallel = !d.HasArg("single")
	return cfg
}

// TestFormats runs the golden scripts: a text (with \n and the like escaped),
// parsed whole and byte by byte, which must agree. "steps" shows what each
// byte releases.
func TestFormats(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			cfg := configOf(t, d)
			text := strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(d.Input)
			if d.Cmd == "steps" {
				return steps(cfg, text)
			}
			whole, bytewise := feed(t, cfg, text, all), feed(t, cfg, text, ones)
			if whole.String() != bytewise.String() {
				d.Fatalf(t, "whole:\n%sbyte by byte:\n%s", whole, bytewise)
			}
			checkCalls(t, whole)
			return whole.String()
		})
	})
}

func steps(cfg Config, text string) string {
	var b strings.Builder
	p := New(cfg)
	read := ""
	for i := 0; i <= len(text); i++ {
		var events []Event
		if i < len(text) {
			read += text[i : i+1]
			events, _ = p.Feed([]byte(text[i:i+1]), false)
		} else {
			events, _ = p.Feed(nil, true)
			read += "∎"
		}
		for _, e := range events {
			fmt.Fprintf(&b, "%q → %s\n", read, describe(e))
			read = ""
		}
	}
	return b.String()
}

func describe(e Event) string {
	switch e.Kind {
	case Content:
		return fmt.Sprintf("content %q", e.Text)
	case Reasoning:
		return fmt.Sprintf("reasoning %q", e.Text)
	case ToolStart:
		return fmt.Sprintf("start %d %s", e.Index, e.Name)
	case ToolArgs:
		return fmt.Sprintf("args %d %q", e.Index, e.Text)
	}
	return fmt.Sprintf("end %d complete=%v", e.Index, e.Complete)
}

// checkCalls asserts what holds of every call.
func checkCalls(t testing.TB, j joined) {
	t.Helper()
	for i, c := range j.Calls {
		if !c.Ended {
			t.Errorf("call %d has no end", i)
		}
		if c.Complete != json.Valid([]byte(c.Args)) {
			t.Errorf("call %d: complete=%v, arguments %q", i, c.Complete, c.Args)
		}
		if !strings.HasPrefix(c.Args, "{") {
			t.Errorf("call %d: arguments %q are no object", i, c.Args)
		}
	}
}

func TestFormatFor(t *testing.T) {
	for _, c := range []struct{ template, arch, tool, reasoning string }{
		{"{% for m in messages %}<|im_start|>{{ m.role }}{% endfor %}", "llama", None, None},
		{"{% if tools %}<tools></tools><tool_call>{% endif %}", "qwen2", Hermes, None},
		{"{% if tools %}<tool_call>{% endif %}{% if '</think>' in c %}", "qwen3", Hermes, Think},
		{"{% if tools %}<tool_call><function={{ f }}>{% endif %}", "qwen3moe", None, None},
		{"{% if tools %}[AVAILABLE_TOOLS][TOOL_CALLS]{% endif %}[/THINK]", "llama", Mistral, Brackets},
		{"{% if tools %}<|start_header_id|>{\"name\": f, \"parameters\": d}{% endif %}", "llama", Llama3, None},
		{"{% if tools %}<|python_tag|>{% endif %}", "llama", Llama3, None},
		{"tool_calls <｜tool▁calls▁begin｜> </think>", "deepseek2", DeepSeek, Think},
		{"{% if tools %}{% endif %}", "llama4", Pythonic, None},
	} {
		tool, reasoning := FormatFor(c.template, c.arch)
		if tool != c.tool || reasoning != c.reasoning {
			t.Errorf("FormatFor(%q, %q) = %s, %s; want %s, %s", c.template, c.arch, tool, reasoning, c.tool, c.reasoning)
		}
	}
}

func TestOpensReasoning(t *testing.T) {
	for prompt, want := range map[string]bool{
		"<|im_start|>assistant\n<think>\n":             true,
		"<|im_start|>assistant\n<think>\n\n</think>\n": false,
		"<|im_start|>assistant\n":                      false,
	} {
		if got := OpensReasoning(prompt, Think); got != want {
			t.Errorf("OpensReasoning(%q) = %v", prompt, got)
		}
	}
	if OpensReasoning("<think>", None) {
		t.Error("a prompt can't open reasoning of format none")
	}
}

// TestMarkers checks what the matching relies on: inside a format no marker
// holds the first byte of one anywhere but at its start.
func TestMarkers(t *testing.T) {
	for name, f := range frames {
		for _, m := range f.opens {
			if i := strings.LastIndexByte(m.text, m.text[0]); i != 0 {
				t.Errorf("%s: marker %q repeats its first byte", name, m.text)
			}
		}
	}
}
