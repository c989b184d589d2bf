package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"ieg/api/parse"
)

var weather = Tool{Name: "get_weather", Parameters: json.RawMessage(
	`{"type":"object","properties":{"city":{"type":"string","maxLength":20},"days":{"type":"integer","minimum":1,"maximum":7},"deep":{"type":"array","items":{"type":["number","boolean","null"]},"maxItems":2}},"required":["city"]}`)}

// toolScript reads lines of "name schema".
func toolScript(t *testing.T, d *datadriven.TestData) (string, error) {
	var format string
	d.ScanArgs(t, "format", &format)
	var tools []Tool
	for _, line := range strings.Split(d.Input, "\n") {
		name, schema, _ := strings.Cut(line, " ")
		tools = append(tools, Tool{name, json.RawMessage(schema)})
	}
	out, triggers, err := ToolCalls(format, tools, d.HasArg("parallel"))
	if err != nil {
		return "", err
	}
	return out + fmt.Sprintf("triggers %q\n", triggers), nil
}

// TestToolCallsParse checks that whatever a tool grammar lets through, the
// parser of the same format reads as calls with valid arguments and nothing
// else, and that the text begins with a trigger.
func TestToolCallsParse(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	valid := validator(t, string(weather.Parameters))
	tools := []Tool{weather, {Name: "stop"}}
	for _, format := range parse.ToolFormats() {
		for _, parallel := range []bool{false, true} {
			text, triggers, err := ToolCalls(format, tools, parallel)
			if format == parse.None {
				if err == nil {
					t.Error("a grammar for no format")
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			g, err := parseGBNF(text)
			if err != nil {
				t.Fatalf("%s: %v\n%s", format, err, text)
			}
			most := 0
			for range 300 {
				walk := g.walk(r)
				n := checkCalls(t, format, walk, parallel, valid)
				most = max(most, n)
				if format != parse.Llama3 && !startsWithAny(walk, triggers) {
					t.Fatalf("%s: %q begins with none of %q", format, walk, triggers)
				}
			}
			if parallel != (most > 1) {
				t.Errorf("%s: parallel=%v, but up to %d calls", format, parallel, most)
			}
		}
	}
}

func startsWithAny(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func checkCalls(t *testing.T, format, text string, parallel bool, valid func(string) error) int {
	t.Helper()
	p := parse.New(parse.Config{ToolFormat: format, ToolsOffered: []string{"get_weather", "stop"}, Parallel: parallel})
	events, done := p.Feed([]byte(text), true)
	if !done {
		t.Fatalf("%s: %q is not done", format, text)
	}
	name, args, calls := "", "", 0
	for _, e := range events {
		switch e.Kind {
		case parse.Content, parse.Reasoning:
			t.Fatalf("%s: %q has content %q", format, text, e.Text)
		case parse.ToolStart:
			name, args = e.Name, ""
		case parse.ToolArgs:
			args += e.Text
		case parse.ToolEnd:
			calls++
			if !e.Complete || name == "get_weather" && valid(args) != nil || name == "stop" && strings.Join(strings.Fields(args), "") != "{}" {
				t.Fatalf("%s: %q gives %s(%s), complete=%v", format, text, name, args, e.Complete)
			}
		}
	}
	return calls
}

func TestToolRefusals(t *testing.T) {
	for want, tools := range map[string][]Tool{
		"#/tools":                               nil,
		"#/tools/1":                             {weather, {Name: "a b"}},
		"#/tools/0/parameters/type":             {{Name: "f", Parameters: json.RawMessage(`{"type":"string"}`)}},
		"#/tools/0/parameters/properties/x/not": {{Name: "f", Parameters: json.RawMessage(`{"properties":{"x":{"not":{}}}}`)}},
	} {
		_, _, err := ToolCalls(parse.Hermes, tools, false)
		if err == nil || !strings.Contains(err.Error(), want+":") {
			t.Errorf("want an error at %s, got %v", want, err)
		}
	}
}
