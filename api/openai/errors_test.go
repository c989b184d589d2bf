package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ieg"
	"ieg/api/openai"
	"ieg/api/openai/openaitest"
)

type errorBody struct {
	Error struct {
		Message string
		Type    string
		Param   *string
		Code    any
	}
	Loading *struct {
		Model    string
		Progress float64
	}
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ask sends one request and decodes an error, if it is one.
func ask(t *testing.T, s *openai.Server, method, path, body string, header http.Header) (*httptest.ResponseRecorder, errorBody) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:9430"
	for k, v := range header {
		if k == "Host" {
			r.Host = v[0]
			continue
		}
		r.Header[k] = v
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	var e errorBody
	if w.Code >= 400 {
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			t.Fatalf("%s %s: status %d with a body that is no JSON: %s", method, path, w.Code, w.Body)
		}
	}
	return w, e
}

// TestBadFields: each body is refused with 400, names the field, and reaches
// no kernel.
func TestBadFields(t *testing.T) {
	const chat, text, embed = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
	user := `"messages":[{"role":"user","content":"x"}]`
	tool := `"tools":[{"type":"function","function":{"name":"f"}}]`
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ path, body, param, says string }{
		{chat, `{}`, "messages", "missing"},
		{chat, `{"messages":"x"}`, "messages", "a list of messages, not a string"},
		{chat, `{"messages":[]}`, "messages", "1 to"},
		{chat, `{"messages":[1]}`, "messages[0]", "an object"},
		{chat, `{"messages":[{"content":"x"}]}`, "messages[0].role", "needs a role"},
		{chat, `{"messages":[{"role":"boss","content":"x"}]}`, "messages[0].role", `"boss"`},
		{chat, `{"messages":[{"role":"user"}]}`, "messages[0].content", "needs content"},
		{chat, `{"messages":[{"role":"user","content":5}]}`, "messages[0].content", "a string or a list"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content[0].type", "not supported here"},
		{chat, `{"messages":[{"role":"user","content":[{"type":"text"}]}]}`, "messages[0].content[0].text", "needs text"},
		{chat, `{"messages":[{"role":"assistant","tool_calls":[{"id":"x"}]}]}`, "messages[0].tool_calls[0].function.name", "needs"},
		{chat, `{"model":5,` + user + `}`, "model", "a string"},
		{chat, `{` + user + `,"n":0}`, "n", "1 to"},
		{chat, `{` + user + `,"n":1000}`, "n", "1 to"},
		{chat, `{` + user + `,"n":1.5}`, "n", "whole number"},
		{chat, `{` + user + `,"n":"2"}`, "n", "whole number, not a string"},
		{chat, `{` + user + `,"temperature":"hot"}`, "temperature", "a number"},
		{chat, `{` + user + `,"temperature":-1}`, "temperature", "0 to 2"},
		{chat, `{` + user + `,"top_p":2}`, "top_p", "0 to 1"},
		{chat, `{` + user + `,"top_k":-2}`, "top_k", "-1 to"},
		{chat, `{` + user + `,"min_p":-0.1}`, "min_p", "0 to 1"},
		{chat, `{` + user + `,"repetition_penalty":0}`, "repetition_penalty", "0.01"},
		{chat, `{` + user + `,"presence_penalty":3}`, "presence_penalty", "-2 to 2"},
		{chat, `{` + user + `,"frequency_penalty":-3}`, "frequency_penalty", "-2 to 2"},
		{chat, `{` + user + `,"stop":[]}`, "", ""},
		{chat, `{` + user + `,"stop":""}`, "stop", "1 to 256 bytes"},
		{chat, `{` + user + `,"stop":["` + long + `"]}`, "stop", "1 to 256 bytes"},
		{chat, `{` + user + `,"stop":[1]}`, "stop", "a string or a list"},
		{chat, `{` + user + `,"stop":[` + strings.Repeat(`"a",`, 16) + `"a"]}`, "stop", "limit is 16"},
		{chat, `{` + user + `,"seed":"x"}`, "seed", "whole number"},
		{chat, `{` + user + `,"max_tokens":0}`, "max_tokens", "1 to"},
		{chat, `{` + user + `,"max_completion_tokens":-5}`, "max_completion_tokens", "1 to"},
		{chat, `{` + user + `,"max_tokens":2,"min_tokens":3}`, "min_tokens", "more than max_tokens"},
		{chat, `{` + user + `,"logit_bias":[1]}`, "logit_bias", "an object"},
		{chat, `{` + user + `,"logit_bias":{"x":1}}`, "logit_bias", "token ids"},
		{chat, `{` + user + `,"logit_bias":{"300":1}}`, "logit_bias", "token ids"},
		{chat, `{` + user + `,"logit_bias":{"1":101}}`, "logit_bias", "-100 to 100"},
		{chat, `{` + user + `,"stop_token_ids":[300]}`, "stop_token_ids", "vocabulary"},
		{chat, `{` + user + `,"allowed_token_ids":[-1]}`, "allowed_token_ids", "vocabulary"},
		{chat, `{` + user + `,"top_logprobs":2}`, "top_logprobs", "logprobs: true"},
		{chat, `{` + user + `,"logprobs":true,"top_logprobs":21}`, "top_logprobs", "0 to 20"},
		{chat, `{` + user + `,"logprobs":3}`, "logprobs", "a boolean"},
		{chat, `{` + user + `,"stream":"yes"}`, "stream", "a boolean"},
		{chat, `{` + user + `,"stream_options":{"include_usage":true}}`, "stream_options", "stream: true"},
		{chat, `{` + user + `,"stream":true,"stream_options":{"include_usage":5}}`, "stream_options.include_usage", "a boolean"},
		{chat, `{` + user + `,"tools":{}}`, "tools", "a list"},
		{chat, `{` + user + `,"tools":[{"type":"web"}]}`, "tools[0].type", "not supported"},
		{chat, `{` + user + `,"tools":[{"type":"function","function":{"name":"a b"}}]}`, "tools[0].function.name", "needs a name"},
		{chat, `{` + user + `,"tools":[{"type":"function","function":{"name":"a","parameters":5}}]}`, "tools[0].function.parameters", "schema"},
		{chat, `{` + user + `,"tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]}`, "tools[1].function.name", "two tools"},
		{chat, `{` + user + `,"tools":[5]}`, "tools[0]", "tools[0] is a number where an object is wanted"},
		{chat, `{` + user + `,"tools":[{"type":"function","function":{"name":"a","strict":["x"]}}]}`, "tools[0].function.strict", "tools[0].function.strict is a list where a boolean is wanted"},
		{chat, `{` + user + `,"stop":["a",["b"]]}`, "stop", "a string or a list of strings; in it is a list where a string is wanted"},
		{chat, `{` + user + `,"stop_token_ids":[1.5]}`, "stop_token_ids", "in it is the number 1.5 where a whole number of at most 32 bits is wanted"},
		{chat, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":{}}}]}]}`, "messages[0].tool_calls", "a function.name in it is an object where a string is wanted"},
		{chat, `{"messages":[{"role":"user","content":[{"type":5}]}]}`, "messages[0].content", "a type in it is a number where a string is wanted"},
		{chat, `{` + user + `,"tool_choice":"required"}`, "tool_choice", "needs tools"},
		{chat, `{` + user + `,` + tool + `,"tool_choice":"maybe"}`, "tool_choice", "auto, none, required"},
		{chat, `{` + user + `,` + tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}}`, "tool_choice.function.name", "not among"},
		{chat, `{` + user + `,` + tool + `,"tool_choice":5}`, "tool_choice", "must be a word"},
		{chat, `{` + user + `,` + tool + `,"response_format":{"type":"json_object"}}`, "response_format", "combined with tools"},
		{chat, `{` + user + `,"functions":[{"name":"f"}]}`, "functions", "use tools"},
		{chat, `{` + user + `,"response_format":"json"}`, "response_format", "an object"},
		{chat, `{` + user + `,"response_format":{"type":"xml"}}`, "response_format", `"xml"`},
		{chat, `{` + user + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema.schema", "needs"},
		{chat, `{` + user + `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","not":{}}}}}`, "response_format", "#"},
		{chat, `{` + user + `,"structured_outputs":{"grammar":"root ::= x"}}`, "structured_outputs.grammar", "not run"},
		{chat, `{` + user + `,"structured_outputs":{"regex":"("}}`, "structured_outputs.regex", ""},
		{chat, `{` + user + `,"guided_choice":["a"],"guided_regex":"a"}`, "guided_choice", "together"},
		{chat, `{` + user + `,"prompt_logprobs":1}`, "prompt_logprobs", "not supported"},
		{chat, `{` + user + `,"bad_words":["x"]}`, "bad_words", "logit_bias"},
		{chat, `{` + user + `,"best_of":2}`, "best_of", "not supported"},
		{chat, `{` + user + `,"chat_template":"{{ x }}"}`, "chat_template", "own template"},
		{chat, `{` + user + `,"chat_template_kwargs":5}`, "chat_template_kwargs", "an object"},
		{chat, `{` + user + `,"reasoning_effort":"loads"}`, "reasoning_effort", "minimal"},
		{chat, `{` + user + `,"continue_final_message":true}`, "continue_final_message", "role assistant"},
		{chat, `{` + user + `,"continue_final_message":true,"add_generation_prompt":true}`, "continue_final_message", "together"},
		{chat, `{` + user + `,"priority":"high"}`, "priority", "whole number"},
		{chat, `{` + user + `,"cache_salt":"` + long + `"}`, "cache_salt", "limit is 256"},
		{chat, `{` + user + `,"request_id":"a b"}`, "request_id", "visible ASCII"},
		{chat, `{"model":"gemma","messages":[{"role":"assistant","content":"x"}]}`, "messages", "Turns must go"},
		{chat, `{"model":"embed",` + user + `}`, "model", "embeddings"},
		{text, `{}`, "prompt", "missing"},
		{text, `{"prompt":5}`, "prompt", "a string, a list"},
		{text, `{"prompt":[]}`, "prompt", "empty"},
		{text, `{"prompt":""}`, "prompt", "empty"},
		{text, `{"prompt":[1,"a"]}`, "prompt[0]", "a string, a list"},
		{text, `{"prompt":[[1],[]]}`, "prompt[1]", "a string, a list"},
		{text, `{"prompt":[300]}`, "prompt", "vocabulary"},
		{text, `{"prompt":"x","echo":true,"logprobs":1}`, "logprobs", "echo"},
		{text, `{"prompt":"x","logprobs":true}`, "logprobs", "whole number"},
		{text, `{"prompt":"x","suffix":"y"}`, "suffix", "not supported"},
		{text, `{"prompt":["a","b"],"n":100}`, "n", "choices"},
		{embed, `{"model":"embed"}`, "input", "missing"},
		{embed, `{"model":"embed","input":""}`, "input[0]", "empty"},
		{embed, `{"model":"embed","input":"x","encoding_format":"hex"}`, "encoding_format", "float, base64"},
		{embed, `{"model":"embed","input":"x","dimensions":9}`, "dimensions", "has 4"},
		{embed, `{"model":"plain","input":"x"}`, "model", "no embeddings"},
		{"/tokenize", `{}`, "prompt", "missing"},
		{"/detokenize", `{}`, "tokens", "missing"},
		{"/detokenize", `{"tokens":[1000]}`, "tokens", "vocabulary"},
	} {
		if c.says == "" && c.param == "" {
			continue
		}
		node := &openaitest.Node{Loaded: testModels(t)}
		w, e := ask(t, openai.New(testConfig(), node), "POST", c.path, c.body, nil)
		if w.Code != 400 || str(e.Error.Param) != c.param || !strings.Contains(e.Error.Message, c.says) || e.Error.Type != "invalid_request_error" {
			t.Errorf("%s %s\n got %d %s\nwant param %q and %q", c.path, c.body, w.Code, strings.TrimSpace(w.Body.String()), c.param, c.says)
		}
		if len(node.Calls()) > 0 {
			t.Errorf("%s %s: reached the kernel", c.path, c.body)
		}
	}
}

// TestErrors covers what is wrong beside the fields.
func TestErrors(t *testing.T) {
	user := `{"messages":[{"role":"user","content":"x"}]}`
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, c := range map[string]struct {
		method, path, body string
		header             http.Header
		status             int
		code               string
		says               string
	}{
		"not JSON":         {"POST", "/v1/chat/completions", `{`, nil, 400, "invalid_json", "not a JSON object"},
		"a list":           {"POST", "/v1/chat/completions", `[1]`, nil, 400, "invalid_json", "the body is not a JSON object: it is a list where an object is wanted"},
		"null":             {"POST", "/v1/chat/completions", `null`, nil, 400, "invalid_json", "object"},
		"trailing":         {"POST", "/v1/chat/completions", `{} {}`, nil, 400, "invalid_json", "more after"},
		"empty":            {"POST", "/v1/chat/completions", ``, nil, 400, "invalid_json", ""},
		"deep":             {"POST", "/v1/chat/completions", `{"x":` + deep + `}`, nil, 400, "invalid_json", "nested deeper"},
		"too large":        {"POST", "/v1/chat/completions", `{"x":"` + strings.Repeat("x", openai.MaxBodyBytes) + `"}`, nil, 413, "request_too_large", "longer than"},
		"a bare number":    {"POST", "/v1/chat/completions", `5`, nil, 400, "invalid_json", "the body is not a JSON object: it is a number where an object is wanted"},
		"coding":           {"POST", "/v1/chat/completions", user, http.Header{"Content-Encoding": {"identity, gzip"}}, 415, "unsupported_content_encoding", `not as "gzip"`},
		"coding of inputs": {"POST", "/v1/embeddings", user, http.Header{"Content-Encoding": {"zstd"}}, 415, "unsupported_content_encoding", "without Content-Encoding"},
		"identity":         {"POST", "/v1/completions", `{}`, http.Header{"Content-Encoding": {"Identity"}}, 400, "", "prompt is missing"},
		"media type":       {"POST", "/v1/chat/completions", user, http.Header{"Content-Type": {"text/plain"}}, 415, "unsupported_media_type", "application/json"},
		"method":           {"GET", "/v1/chat/completions", ``, nil, 405, "method_not_allowed", ""},
		"path":             {"GET", "/v2/nothing", ``, nil, 404, "unknown_url", ""},
		"unknown model":    {"POST", "/v1/chat/completions", `{"model":"nope"}`, nil, 404, "model_not_found", `no model "nope" here; loaded: plain, gpt-test, qwen, mistral, gemma, embed, badtemplate`},
		"unknown model id": {"GET", "/v1/models/a/b", ``, nil, 404, "model_not_found", "a/b"},
		"loading":          {"POST", "/v1/chat/completions", `{"model":"loading"}`, nil, 503, "model_loading", "25 %"},
		"failed":           {"POST", "/v1/completions", `{"model":"failed"}`, nil, 503, "model_failed", "corrupt"},
		"template":         {"POST", "/v1/chat/completions", `{"model":"badtemplate","messages":[{"role":"user","content":"x"}]}`, nil, 501, "chat_template", "line 1"},
		"long prompt":      {"POST", "/v1/completions", `{"prompt":"` + strings.Repeat("x", 1024) + `"}`, nil, 400, "context_length_exceeded", "has 1024 tokens"},
		"long chat":        {"POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`, nil, 400, "context_length_exceeded", "a context of 1024"},
		"long input":       {"POST", "/v1/embeddings", `{"model":"embed","input":["a","` + strings.Repeat("x", 1024) + `"]}`, nil, 400, "context_length_exceeded", "input[1] has 1026 tokens, and embed takes at most 1024 in one input; shorten it by 2 tokens or more"},
		"host":             {"GET", "/health", ``, http.Header{"Host": {"evil.example"}}, 403, "host_not_allowed", "evil.example"},
		"origin":           {"GET", "/v1/models", ``, http.Header{"Origin": {"http://evil.example"}}, 403, "origin_not_allowed", ""},
		"null origin":      {"GET", "/v1/models", ``, http.Header{"Origin": {"null"}}, 403, "origin_not_allowed", ""},
		"preflight":        {"OPTIONS", "/v1/models", ``, http.Header{"Origin": {"http://evil.example"}}, 403, "origin_not_allowed", ""},
		"bad priority":     {"POST", "/v1/chat/completions", user, http.Header{"X-Vllm-Priority": {"x"}}, 400, "", "X-Vllm-Priority"},
		"no metrics":       {"GET", "/metrics", ``, nil, 404, "unknown_url", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := ask(t, openai.New(testConfig(), &openaitest.Node{Loaded: testModels(t)}), c.method, c.path, c.body, c.header)
			code, _ := e.Error.Code.(string)
			if w.Code != c.status || code != c.code || !strings.Contains(e.Error.Message, c.says) || e.Error.Type == "" {
				t.Errorf("got %d %s, want %d %q %q", w.Code, w.Body, c.status, c.code, c.says)
			}
			if c.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if c.code == "model_loading" && (w.Header().Get("Retry-After") == "" || e.Loading == nil || e.Loading.Progress != 0.25) {
				t.Errorf("loading without Retry-After or progress: %s", w.Body)
			}
		})
	}
}

// TestSubmitErrors: refusals of the node keep their identity, and leave
// nothing of the other prompts behind.
func TestSubmitErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		retry  bool
	}{
		{ieg.ErrBusy, 429, true},
		{ieg.ErrDraining, 503, true},
		{ieg.ErrNoModel, 404, false},
		{ieg.ErrContextLength, 400, false},
		{io.ErrUnexpectedEOF, 500, false},
	} {
		n := 0
		node := &openaitest.Node{Loaded: testModels(t), Refuse: func(*ieg.Request) error {
			if n++; n == 2 {
				return fmt.Errorf("%w: second", c.err)
			}
			return nil
		}}
		w, _ := ask(t, openai.New(testConfig(), node), "POST", "/v1/completions", `{"prompt":["a","b"],"stream":true}`, nil)
		if w.Code != c.status || (w.Header().Get("Retry-After") != "") != c.retry {
			t.Errorf("%v: got %d, Retry-After %q", c.err, w.Code, w.Header().Get("Retry-After"))
		}
		calls := node.Calls()
		if len(calls) != 1 {
			t.Fatalf("%d calls", len(calls))
		}
		<-calls[0].Cancelled
	}
}

func TestKeys(t *testing.T) {
	keys, err := openai.ReadKeys(strings.NewReader("# keys\nsk-one\n\n  sk-two  \n"))
	if err != nil || keys.Len() != 2 {
		t.Fatal(keys.Len(), err)
	}
	cfg := testConfig()
	cfg.Keys = keys
	s := openai.New(cfg, &openaitest.Node{Loaded: testModels(t)})
	for auth, want := range map[string]int{
		"": 401, "Bearer sk-three": 401, "Basic sk-one": 401, "Bearer": 401, "Bearer sk-one": 200, "bearer sk-two": 200, "Bearer sk-on": 401,
	} {
		h := http.Header{}
		if auth != "" {
			h.Set("Authorization", auth)
		}
		w, e := ask(t, s, "GET", "/v1/models", "", h)
		if w.Code != want || want == 401 && (e.Error.Code != "invalid_api_key" || w.Header().Get("WWW-Authenticate") == "") {
			t.Errorf("%q: got %d %s", auth, w.Code, w.Body)
		}
	}
	for _, open := range []string{"/health", "/ping", "/version"} {
		if w, _ := ask(t, s, "GET", open, "", nil); w.Code != 200 {
			t.Errorf("%s needs a key: %d", open, w.Code)
		}
	}
	for _, bad := range []string{"", "# none\n", "two words\n", strings.Repeat("k", 300)} {
		if _, err := openai.ReadKeys(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
	off := openai.Config{}
	if err := off.Validate(); err == nil {
		t.Error("no keys off loopback: no error")
	}
	off.Keys = keys
	if err := off.Validate(); err != nil {
		t.Error(err)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	cfg := testConfig()
	cfg.AllowedHosts, cfg.AllowedOrigins = []string{"node.test"}, []string{"https://app.test"}
	s := openai.New(cfg, &openaitest.Node{Loaded: testModels(t)})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:1": 200, "127.0.0.1": 200, "127.9.9.9:80": 200, "[::1]:9430": 200, "[::1]": 200,
		"app.localhost": 200, "node.test:9430": 200, "NODE.test.": 200, "localhost.evil.example": 403, "10.0.0.1": 403, "": 403, "evil.example:9430": 403,
	} {
		if w, _ := ask(t, s, "GET", "/version", "", http.Header{"Host": {host}}); w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
	for origin, want := range map[string]int{
		"http://localhost:3000": 204, "http://127.0.0.1": 204, "https://app.test": 204, "http://app.test": 403, "https://evil.example": 403, "file://": 403,
	} {
		w, _ := ask(t, s, "OPTIONS", "/v1/chat/completions", "", http.Header{"Origin": {origin}})
		if w.Code != want || want == 204 && w.Header().Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("Origin %q: %d %v", origin, w.Code, w.Header())
		}
	}
	open := openai.New(openai.Config{}, &openaitest.Node{Loaded: testModels(t)})
	if w, _ := ask(t, open, "GET", "/version", "", http.Header{"Host": {"any.example"}}); w.Code != 200 {
		t.Errorf("off loopback without a list: %d", w.Code)
	}
}

func TestHealthAndModels(t *testing.T) {
	node := &openaitest.Node{Loaded: testModels(t)}
	cfg := testConfig()
	cfg.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	s := openai.New(cfg, node)
	w, _ := ask(t, s, "GET", "/health", "", nil)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `{"id":"loading","state":"loading","progress":0.25}`) || !strings.Contains(w.Body.String(), `{"id":"failed","state":"failed","error":"the file is corrupt"}`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(w.Body.String(), `{"status":"ok"`) {
		t.Errorf("a model that failed beside those that serve: %s", w.Body)
	}
	if w, _ := ask(t, s, "GET", "/metrics", "", nil); w.Body.String() != "up 1\n" {
		t.Errorf("metrics: %s", w.Body)
	}
	if w, _ := ask(t, s, "GET", "/version", "", nil); strings.TrimSpace(w.Body.String()) != `{"version":"1.2.3"}` {
		t.Errorf("version: %s", w.Body)
	}
	w, _ = ask(t, s, "GET", "/v1/models", "", nil)
	var list struct {
		Data []struct {
			ID, Root    string
			MaxModelLen int `json:"max_model_len"`
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID+"="+m.Root)
	}
	if got := strings.Join(ids, " "); got != "plain=plain gpt-test=plain qwen=qwen mistral=mistral gemma=gemma embed=embed badtemplate=badtemplate" {
		t.Errorf("models: %s", got)
	}
	if w, _ := ask(t, s, "GET", "/v1/models/gpt-test", "", nil); w.Code != 200 || !strings.Contains(w.Body.String(), `"id":"gpt-test"`) {
		t.Errorf("one model: %d %s", w.Code, w.Body)
	}

	s.SetDraining(true)
	if w, _ := ask(t, s, "GET", "/health", "", nil); w.Code != 503 || !strings.Contains(w.Body.String(), `"draining"`) {
		t.Errorf("draining: %d %s", w.Code, w.Body)
	}
	if w, e := ask(t, s, "POST", "/v1/completions", `{"prompt":"x"}`, nil); w.Code != 503 || e.Error.Code != "draining" || w.Header().Get("Retry-After") == "" {
		t.Errorf("draining: %d %s", w.Code, w.Body)
	}
	for _, c := range []struct {
		models []openai.Model
		status string
	}{{node.Loaded[5:6], "loading"}, {node.Loaded[6:7], "failed"}, {nil, "no model"}} {
		w, _ := ask(t, openai.New(testConfig(), &openaitest.Node{Loaded: c.models}), "GET", "/health", "", nil)
		if w.Code != 503 || !strings.Contains(w.Body.String(), `"status":"`+c.status+`"`) || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", c.status, w.Code, w.Body)
		}
	}
}

// TestNoneReady: a name is not called loaded because its model was asked for.
func TestNoneReady(t *testing.T) {
	s := openai.New(testConfig(), &openaitest.Node{Loaded: testModels(t)[5:7]})
	w, e := ask(t, s, "POST", "/v1/completions", `{"model":"nope","prompt":"x"}`, nil)
	if w.Code != 404 || e.Error.Message != `no model "nope" here; none is ready; see /health` {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestStoppedNode: the end of the node ends requests with 503, before the
// first token and as a failed end.
func TestStoppedNode(t *testing.T) {
	node := &openaitest.Node{Loaded: testModels(t), Play: func(c *openaitest.Call) {
		c.Finish(ieg.AllChoices, ieg.StopError, fmt.Errorf("%w: the node has stopped", ieg.ErrDraining))
	}}
	for _, body := range []string{`{"prompt":"x"}`, `{"prompt":"x","stream":true}`} {
		w, e := ask(t, openai.New(testConfig(), node), "POST", "/v1/completions", body, nil)
		if w.Code != 503 || e.Error.Type != "service_unavailable_error" || e.Error.Code != "draining" || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s", body, w.Code, w.Body)
		}
	}
}

func TestTooManyRequests(t *testing.T) {
	cfg := testConfig()
	cfg.MaxRequests = 1
	entered, leave := make(chan struct{}), make(chan struct{})
	node := &openaitest.Node{Loaded: testModels(t), Play: func(c *openaitest.Call) {
		close(entered)
		<-leave
		c.Say("x")
	}}
	s := openai.New(cfg, node)
	first := make(chan int)
	go func() {
		w, _ := ask(t, s, "POST", "/v1/completions", `{"prompt":"x"}`, nil)
		first <- w.Code
	}()
	<-entered
	if w, e := ask(t, s, "POST", "/v1/completions", `{"prompt":"x"}`, nil); w.Code != 429 || e.Error.Code != "too_many_requests" || w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	close(leave)
	if code := <-first; code != 200 {
		t.Errorf("the first got %d", code)
	}
}
