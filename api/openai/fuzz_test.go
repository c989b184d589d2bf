package openai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"ieg"
	"ieg/api/parse"
)

// FuzzRequest sends any body to any route: the answer is JSON or a complete
// stream, an error has a message without the program's own words, and nothing
// fails on this side.
func FuzzRequest(f *testing.F) {
	for i, body := range []string{
		`{"messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","content":"y"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"required"}`,
		`{"prompt":["a",[1,2]],"n":2,"logprobs":1,"logit_bias":{"1":2},"stop":"x","seed":-5}`,
		`{"input":"x","dimensions":1,"encoding_format":"base64"}`,
		`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"string"}}},"priority":-1}`,
		`{"tokens":[1,2]}`,
		`{"prompt":"x","stop":[1],"logit_bias":[],"stream_options":5}`,
		`{"input":[[1,"x"]],"dimensions":{}}`,
		`{"messages":[{"role":"assistant","content":[{"text":{}}],"tool_calls":[{"function":{"name":5}}]}]}`,
		`{"tokens":["x",2.5]}`,
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","strict":[1]}}]}`,
		`[1]`,
	} {
		f.Add(uint8(i), body)
	}
	routes := []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/tokenize", "/detokenize"}
	s := newQuiet()
	f.Fuzz(func(t *testing.T, route uint8, body string) {
		r := httptest.NewRequest(http.MethodPost, routes[int(route)%len(routes)], strings.NewReader(body))
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("status %d for %s: %s", w.Code, body, w.Body)
		}
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			checkStream(t, w.Body.String())
			return
		}
		var v struct{ Error *struct{ Message string } }
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			t.Fatalf("no JSON: %s", w.Body)
		}
		if (w.Code >= 400) != (v.Error != nil && v.Error.Message != "") {
			t.Fatalf("status %d with %s", w.Code, w.Body)
		}
		for _, s := range []string{"unmarshal", "Go struct", "Go value", "RawMessage", "json:"} {
			if v.Error != nil && strings.Contains(v.Error.Message, s) && !strings.Contains(body, s) {
				t.Fatalf("an error tells of the program: %s", w.Body)
			}
		}
	})
}

func checkStream(t *testing.T, body string) {
	t.Helper()
	events := strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n")
	if events[len(events)-1] != "data: [DONE]" {
		t.Fatalf("stream without an end: %s", body)
	}
	for _, e := range events[:len(events)-1] {
		if !json.Valid([]byte(strings.TrimPrefix(e, "data: "))) {
			t.Fatalf("event that is no JSON: %s", e)
		}
	}
}

// FuzzAppendString compares the escaper with encoding/json.
func FuzzAppendString(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte("q\"b\\n\nt\tr\r\x00\x1f\x7f é \u2028 \U0001F600"))
	f.Add([]byte("\xff\xc3(\xe2\x82 \xed\xa0\x80"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := appendString(nil, in)
		if string(out) != string(appendString(nil, string(in))) {
			t.Fatal("strings and bytes differ")
		}
		if !utf8.Valid(out) {
			t.Fatalf("%q is no UTF-8", out)
		}
		var got, want string
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		std, _ := json.Marshal(string(in))
		if err := json.Unmarshal(std, &want); err != nil || got != want {
			t.Fatalf("%q: got %q, want %q", in, got, want)
		}
	})
}

// FuzzCheckDepth: what passes is never deeper than the limit.
func FuzzCheckDepth(f *testing.F) {
	f.Add(`{"a":[1,"]\"{"]}`)
	f.Add(strings.Repeat("[", 70))
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) || checkDepth([]byte(body)) != nil {
			return
		}
		var v any
		if json.Unmarshal([]byte(body), &v) == nil && depthOf(v) > MaxBodyDepth {
			t.Fatalf("depth %d passed", depthOf(v))
		}
	})
}

func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			deepest = max(deepest, depthOf(x))
		}
		return deepest + 1
	case map[string]any:
		for _, x := range v {
			deepest = max(deepest, depthOf(x))
		}
		return deepest + 1
	}
	return 0
}

// nobody is a ResponseWriter that counts.
type nobody struct {
	h      http.Header
	bytes  int
	writes int
}

func (n *nobody) Header() http.Header         { return n.h }
func (n *nobody) WriteHeader(int)             {}
func (n *nobody) Write(b []byte) (int, error) { n.bytes += len(b); n.writes++; return len(b), nil }
func (n *nobody) Flush()                      {}

func benchExchange(parser parse.Config) (*exchange, *stream, *sink) {
	s := newQuiet()
	m := &s.node.Models()[0]
	w := &nobody{h: http.Header{}}
	opt := common{n: 1, stream: true, requestID: strings.Repeat("0", 32), sampling: ieg.Sampling{Logprobs: -1}}
	x := s.newExchange(w, httptest.NewRequest("POST", "/", nil), m, opt, "chatcmpl-", "")
	x.parser = parser
	x.add([]ieg.Token{1}, ieg.Span{}, 0, 10, nil)
	st := newStream(x, true)
	x.out = st
	return x, st, x.sinkFor(0)
}

// BenchmarkToken is the whole way of a token through the door: Parse and Emit
// on the loop's side, formatting and a write on the client's.
func BenchmarkToken(b *testing.B) {
	for name, cfg := range map[string]parse.Config{
		"plain":  {},
		"parsed": {ToolFormat: parse.Hermes, ReasoningFormat: parse.Think, ToolsOffered: []string{"f"}},
	} {
		b.Run(name, func(b *testing.B) {
			x, st, sk := benchExchange(cfg)
			r := ieg.SeqResult{Sampled: true, Token: 5, Text: []byte(" token")}
			b.ReportAllocs()
			for b.Loop() {
				sk.Parse(0, &r)
				sk.Emit(0, &r)
				<-x.box.wake
				if e := x.drain(); e != nil {
					b.Fatal(e)
				}
				if err := st.flush(); err != nil {
					b.Fatal(err)
				}
				x.box.wrote()
			}
		})
	}
}

// BenchmarkTokenLoop is the part that the runtime's loop pays.
func BenchmarkTokenLoop(b *testing.B) {
	x, _, sk := benchExchange(parse.Config{})
	r := ieg.SeqResult{Sampled: true, Token: 5, Text: []byte(" token")}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		sk.Parse(0, &r)
		sk.Emit(0, &r)
		if n++; n%16 == 0 {
			x.box.take()
			x.box.wrote()
		}
	}
}

// TestTokenAllocates nothing in the steady state.
func TestTokenAllocates(t *testing.T) {
	x, st, sk := benchExchange(parse.Config{})
	r := ieg.SeqResult{Sampled: true, Token: 5, Text: []byte(" token")}
	step := func() {
		sk.Parse(0, &r)
		sk.Emit(0, &r)
		<-x.box.wake
		x.drain()
		_ = st.flush()
		x.box.wrote()
	}
	for range 8 {
		step()
	}
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("%.1f allocations a token", n)
	}
}
