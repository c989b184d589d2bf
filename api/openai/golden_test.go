package openai_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/api/openai"
	"ieg/api/openai/openaitest"
)

// testConfig has a fixed clock and counts instead of chance.
func testConfig() openai.Config {
	var n atomic.Uint64
	return openai.Config{
		Loopback: true, Version: "1.2.3",
		Random: func() uint64 { return n.Add(1) },
		Wall:   func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
}

func templateFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("template/testdata/" + name + ".jinja")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testModels are a model for each case that matters.
func testModels(t testing.TB) []openai.Model {
	t.Helper()
	plain := openaitest.Model("plain")
	plain.Aliases = []string{"gpt-test"}
	qwen := openaitest.Model("qwen")
	qwen.ChatTemplate = templateFile(t, "qwen")
	mistral := openaitest.Model("mistral")
	mistral.ChatTemplate, mistral.AddBOS = templateFile(t, "mistral"), true
	mistral.ControlText = []string{"[INST]", "[/INST]", "<s>", "</s>", "[TOOL_CALLS]"}
	mistral.EOSText, mistral.EOS = "</s>", 259
	gemma := openaitest.Model("gemma")
	gemma.ChatTemplate = templateFile(t, "gemma")
	embed := openaitest.Model("embed")
	embed.Generative, embed.Embedding, embed.DModel, embed.AddBOS, embed.AddEOS = false, true, 4, true, true
	loading := openaitest.Model("loading")
	loading.Ready, loading.Loading = false, 0.25
	failed := openaitest.Model("failed")
	failed.Ready, failed.Error = false, "the file is corrupt"
	bad := openaitest.Model("badtemplate")
	bad.ChatTemplate = "{% if %}"
	return []openai.Model{plain, qwen, mistral, gemma, embed, loading, failed, bad}
}

var errorNames = map[string]error{
	"busy": ieg.ErrBusy, "draining": ieg.ErrDraining, "no-model": ieg.ErrNoModel, "context": ieg.ErrContextLength,
	"engine-lost": ieg.ErrEngineLost, "memory": ieg.ErrOutOfMemory, "cancelled": ieg.ErrCancelled,
	"deadline": ieg.ErrDeadline, "unsupported": ieg.ErrUnsupported, "other": errors.New("something else"), "none": nil,
}

var reasonNames = map[string]ieg.StopReason{
	"stop": ieg.StopEnd, "length": ieg.StopLength, "tool_calls": ieg.StopToolCall, "cancelled": ieg.StopCancel,
	"deadline": ieg.StopDeadline, "error": ieg.StopError, "limit": ieg.StopLimit,
}

// play runs the script of a golden case.
func play(t *testing.T, c *openaitest.Call, script string) {
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "say":
			c.Say(strings.Split(unquote(rest), "|")...)
		case "token":
			choice, text, _ := strings.Cut(rest, " ")
			c.Token(number(t, choice), unquote(text))
		case "logprob":
			f := strings.Fields(rest)
			r := ieg.SeqResult{Sampled: true, Token: ieg.Token(f[1][0]), Text: []byte(f[1])}
			r.Logprob = &ieg.Logprob{Chosen: ieg.TokenLogprob{Token: ieg.Token(f[1][0]), Logprob: -0.5, Bytes: []byte(f[1])}}
			for i, alt := range f[1:] {
				r.Logprob.Top = append(r.Logprob.Top, ieg.TokenLogprob{Token: ieg.Token(alt[0]), Logprob: -0.5 - float32(i), Bytes: []byte(alt)})
			}
			c.Result(number(t, f[0]), r)
		case "stop":
			choice, reason, _ := strings.Cut(rest, " ")
			c.Stop(number(t, choice), reasonNames[reason])
		case "stopped": // by a stop string or token
			f := strings.Fields(rest)
			r := ieg.SeqResult{Sampled: true, Stop: ieg.StopEnd, Token: ieg.Token(number(t, f[1]))}
			if len(f) > 2 {
				r.StopText = f[2]
			}
			c.Result(number(t, f[0]), r)
			c.Finish(number(t, f[0]), ieg.StopEnd, nil)
		case "final": // the last token comes with text
			choice, text, _ := strings.Cut(rest, " ")
			c.Result(number(t, choice), ieg.SeqResult{Sampled: true, Stop: ieg.StopEnd, Text: []byte(unquote(text))})
			c.Finish(number(t, choice), ieg.StopEnd, nil)
		case "fail":
			f := strings.Fields(rest)
			err := errorNames[f[1]]
			if err != nil {
				err = fmt.Errorf("%w: details", err)
			}
			c.Finish(ieg.AllChoices, reasonNames[f[0]], err)
		case "cut": // by a limit of the graph
			choice, limit, _ := strings.Cut(rest, " ")
			c.Finish(number(t, choice), ieg.StopLimit, errors.New(limit))
		case "end":
			c.Finish(ieg.AllChoices, ieg.StopEnd, nil)
		case "taken":
			c.Taken()
		case "vector":
			var v []float32
			for _, f := range strings.Fields(rest) {
				x, _ := strconv.ParseFloat(f, 32)
				v = append(v, float32(x))
			}
			c.Vector(v...)
		case "idle": // plays nothing
		default:
			t.Errorf("unknown line %q", line)
		}
	}
}

func unquote(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}

func number(t *testing.T, s string) int32 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		t.Error(err)
	}
	return int32(n)
}

// show prints what the kernel was asked for.
func show(r *ieg.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# request %s model %s class %s n %d max %d", r.Name, r.Model, r.Class, r.N, r.MaxTokens)
	if r.Tenant != "" {
		fmt.Fprintf(&b, " tenant %q", r.Tenant)
	}
	if r.NoStore {
		b.WriteString(" no-store")
	}
	if len(r.Tools) > 0 {
		fmt.Fprintf(&b, " tools %v", r.Tools)
	}
	fmt.Fprintf(&b, "\n# sampling %+v\n", r.Sampling)
	var prompt strings.Builder
	for _, tok := range r.Prompt {
		if tok < 256 {
			prompt.WriteByte(byte(tok))
		} else {
			fmt.Fprintf(&prompt, "⟨%d⟩", tok)
		}
	}
	fmt.Fprintf(&b, "# prompt %q\n", prompt.String())
	return b.String()
}

// TestGolden plays scripts. An input is the body, and after a line "--" what
// the runtime does. With show the requests are printed.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			body, script, _ := strings.Cut(d.Input, "\n--\n")
			node := &openaitest.Node{Loaded: testModels(t)}
			node.Play = func(c *openaitest.Call) {
				play(t, c, script)
			}
			s := openai.New(testConfig(), node)
			r := httptest.NewRequest(http.MethodPost, d.CmdArgs[0].Key, strings.NewReader(body))
			r.Host = "localhost"
			for _, a := range d.CmdArgs[1:] {
				if len(a.Vals) == 1 {
					r.Header.Set(a.Key, a.Vals[0])
				}
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			node.Wait()
			var b strings.Builder
			if d.HasArg("show") {
				for _, c := range node.Calls() {
					b.WriteString(show(c.Request))
				}
			}
			fmt.Fprintf(&b, "%d %s", w.Code, w.Header().Get("Content-Type"))
			for _, h := range []string{"X-Request-Id", "Retry-After"} {
				if v := w.Header().Get(h); v != "" {
					fmt.Fprintf(&b, " %s: %s", h, v)
				}
			}
			out := strings.ReplaceAll(w.Body.String(), "\n\n", "\n")
			return b.String() + "\n" + strings.TrimRight(out, "\n") + "\n"
		})
	})
}
