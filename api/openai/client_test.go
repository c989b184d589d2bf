package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http/httptest"
	"strings"
	"testing"

	client "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"ieg"
	"ieg/api/openai"
	"ieg/api/openai/openaitest"
)

// dial starts a server over TCP and a client of OpenAI's own library.
func dial(t *testing.T, play func(*openaitest.Call)) (*client.Client, *openaitest.Node) {
	t.Helper()
	keys, err := openai.ReadKeys(strings.NewReader("sk-test\n"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := testConfig()
	cfg.Keys = keys
	node := &openaitest.Node{Loaded: testModels(t), Play: play}
	srv := httptest.NewServer(openai.New(cfg, node).Handler())
	t.Cleanup(srv.Close)
	c := client.NewClient(option.WithBaseURL(srv.URL+"/v1/"), option.WithAPIKey("sk-test"), option.WithMaxRetries(0))
	return &c, node
}

var hello = []client.ChatCompletionMessageParamUnion{client.SystemMessage("be kind"), client.UserMessage("hi")}

func TestClientChat(t *testing.T) {
	c, node := dial(t, func(c *openaitest.Call) { c.Say("Hel", "lo") })
	r, err := c.Chat.Completions.New(context.Background(), client.ChatCompletionNewParams{
		Model: "plain", Messages: hello, N: client.Int(2), Seed: client.Int(5), Temperature: client.Float(0),
		Stop: client.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"x"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Choices) != 2 || r.Choices[1].Index != 1 || r.Choices[1].Message.Content != "Hello" || r.Choices[0].FinishReason != "stop" {
		t.Errorf("choices %+v", r.Choices)
	}
	u := r.Usage
	if p := int64(len(node.Calls()[0].Request.Prompt)); u.PromptTokens != p || u.CompletionTokens != 6 || u.TotalTokens != p+6 || u.PromptTokensDetails.CachedTokens != p/2 {
		t.Errorf("usage %+v", u)
	}
	if req := node.Calls()[0].Request; req.Sampling.Seed != 5 || req.N != 2 || req.Sampling.Stop[0] != "x" || req.Class != ieg.P1 {
		t.Errorf("request %+v", req)
	}
}

func TestClientStream(t *testing.T) {
	c, _ := dial(t, func(c *openaitest.Call) { c.Say("a", "b", "ü\n") })
	st := c.Chat.Completions.NewStreaming(context.Background(), client.ChatCompletionNewParams{
		Model: "plain", Messages: hello, N: client.Int(2),
		StreamOptions: client.ChatCompletionStreamOptionsParam{IncludeUsage: client.Bool(true)},
	})
	acc := client.ChatCompletionAccumulator{}
	for st.Next() {
		if !acc.AddChunk(st.Current()) {
			t.Fatal("the chunks don't fit together")
		}
	}
	if err := st.Err(); err != nil {
		t.Fatal(err)
	}
	if len(acc.Choices) != 2 || acc.Choices[0].Message.Content != "abü\n" || acc.Choices[1].FinishReason != "stop" || acc.Usage.CompletionTokens != 8 {
		t.Errorf("%+v %+v", acc.Choices, acc.Usage)
	}
}

func TestClientTools(t *testing.T) {
	tools := []client.ChatCompletionToolUnionParam{client.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	call := `<tool_call>{"name": "get_weather", "arguments": {"city": "Köln"}}</tool_call>`
	c, node := dial(t, func(c *openaitest.Call) { c.Say(call[:20], call[20:50], call[50:], "\n", call) })
	p := client.ChatCompletionNewParams{Model: "qwen", Messages: hello, Tools: tools}
	st := c.Chat.Completions.NewStreaming(context.Background(), p)
	acc := client.ChatCompletionAccumulator{}
	finished := 0
	for st.Next() {
		if !acc.AddChunk(st.Current()) {
			t.Fatal("the chunks don't fit together")
		}
		if f, ok := acc.JustFinishedToolCall(); ok {
			finished++
			if f.Name != "get_weather" || f.Arguments != `{"city": "Köln"}` {
				t.Errorf("streamed call %+v", f)
			}
		}
	}
	if err := st.Err(); err != nil || finished != 2 || acc.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("%v, %d calls, %s", err, finished, acc.Choices[0].FinishReason)
	}
	r, err := c.Chat.Completions.New(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	calls := r.Choices[0].Message.ToolCalls
	if len(calls) != 2 || calls[0].ID == calls[1].ID || !strings.HasPrefix(calls[0].ID, "call_") || calls[1].Function.Arguments != `{"city": "Köln"}` {
		t.Errorf("calls %+v", calls)
	}
	if got := node.Calls()[1].Request.Tools; len(got) != 1 || got[0] != "get_weather" {
		t.Errorf("tools of the request: %v", got)
	}
	// The answer goes back as history.
	p.Messages = append(p.Messages, r.Choices[0].Message.ToParam(), client.ToolMessage("20 °C", calls[0].ID), client.ToolMessage("21 °C", calls[1].ID))
	if _, err := c.Chat.Completions.New(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	var prompt []byte
	for _, tok := range node.Calls()[2].Request.Prompt {
		if tok < 256 {
			prompt = append(prompt, byte(tok))
		}
	}
	if !strings.Contains(string(prompt), `{"name": "get_weather", "arguments": {"city": "Köln"}}`) || !strings.Contains(string(prompt), "<tool_response>\n21 °C\n</tool_response>") {
		t.Errorf("prompt %s", prompt)
	}
}

func TestClientSchema(t *testing.T) {
	c, node := dial(t, func(c *openaitest.Call) { c.Say(`{"answer": `, `42}`) })
	schema := map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "integer"}}, "required": []string{"answer"}, "additionalProperties": false}
	r, err := c.Chat.Completions.New(context.Background(), client.ChatCompletionNewParams{
		Model: "plain", Messages: hello,
		ResponseFormat: client.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "answer", Schema: schema, Strict: client.Bool(true)},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Answer int }
	if err := json.Unmarshal([]byte(r.Choices[0].Message.Content), &out); err != nil || out.Answer != 42 {
		t.Error(r.Choices[0].Message.Content, err)
	}
	if g := node.Calls()[0].Request.Sampling.Grammar; !strings.Contains(g, "answer") {
		t.Errorf("grammar %q", g)
	}
}

func TestClientLogprobs(t *testing.T) {
	c, _ := dial(t, func(c *openaitest.Call) {
		for _, b := range []string{"a", "\xc3", "\xa9"} {
			text := b
			if b == "\xc3" {
				text = ""
			} else if b == "\xa9" {
				text = "é"
			}
			c.Result(0, ieg.SeqResult{Sampled: true, Text: []byte(text), Logprob: &ieg.Logprob{
				Chosen: ieg.TokenLogprob{Token: 1, Logprob: -1, Bytes: []byte(b)},
				Top:    []ieg.TokenLogprob{{Token: 2, Logprob: float32(math.Inf(-1)), Bytes: []byte("x")}}}})
		}
		c.Stop(0, ieg.StopLength)
		c.Finish(ieg.AllChoices, ieg.StopLength, nil)
	})
	p := client.ChatCompletionNewParams{Model: "plain", Messages: hello, Logprobs: client.Bool(true), TopLogprobs: client.Int(1)}
	r, err := c.Chat.Completions.New(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	lp := r.Choices[0].Logprobs.Content
	if len(lp) != 3 || lp[0].Logprob != -1 || lp[1].Bytes[0] != 0xc3 || lp[2].TopLogprobs[0].Logprob != -9999 || r.Choices[0].FinishReason != "length" {
		t.Errorf("%+v", lp)
	}
	st := c.Chat.Completions.NewStreaming(context.Background(), p)
	n := 0
	for st.Next() {
		for _, ch := range st.Current().Choices {
			n += len(ch.Logprobs.Content)
		}
	}
	if st.Err() != nil || n != 3 {
		t.Errorf("%d log-probabilities in the stream, %v", n, st.Err())
	}
}

func TestClientEmbeddings(t *testing.T) {
	c, _ := dial(t, func(c *openaitest.Call) { c.Vector(float32(c.Request.Prompt[1]), 0.5, 0, -1) })
	for _, format := range []client.EmbeddingNewParamsEncodingFormat{client.EmbeddingNewParamsEncodingFormatFloat, ""} {
		r, err := c.Embeddings.New(context.Background(), client.EmbeddingNewParams{
			Model: "embed", Input: client.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"A", "B"}}, EncodingFormat: format,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Data) != 2 || r.Data[1].Embedding[0] != 'B' || r.Data[1].Embedding[3] != -1 || r.Usage.PromptTokens != 6 {
			t.Errorf("%+v", r)
		}
	}
}

func TestClientErrors(t *testing.T) {
	c, node := dial(t, func(c *openaitest.Call) {
		c.Token(0, "a")
		c.Taken()
		c.Finish(ieg.AllChoices, ieg.StopError, ieg.ErrEngineLost)
	})
	_, err := c.Chat.Completions.New(context.Background(), client.ChatCompletionNewParams{Model: "nope", Messages: hello})
	var e *client.Error
	if !errors.As(err, &e) || e.StatusCode != 404 || e.Code != "model_not_found" || e.Param != "model" {
		t.Errorf("%v", err)
	}
	st := c.Chat.Completions.NewStreaming(context.Background(), client.ChatCompletionNewParams{Model: "plain", Messages: hello})
	for st.Next() {
		for _, ch := range st.Current().Choices {
			if ch.FinishReason != "" {
				t.Errorf("finish_reason %q in a stream that failed", ch.FinishReason)
			}
		}
	}
	if st.Err() == nil || !strings.Contains(st.Err().Error(), "engine lost") {
		t.Errorf("stream error: %v", st.Err())
	}

	// Cancelling the context cancels the request.
	ctx, cancel := context.WithCancel(context.Background())
	node.Play = func(c *openaitest.Call) { c.Token(0, "a") }
	st = c.Chat.Completions.NewStreaming(ctx, client.ChatCompletionNewParams{Model: "plain", Messages: hello})
	if !st.Next() {
		t.Fatal(st.Err())
	}
	cancel()
	calls := node.Calls()
	<-calls[len(calls)-1].Cancelled
}

func TestClientCompletionsAndModels(t *testing.T) {
	c, _ := dial(t, func(c *openaitest.Call) { c.Say("x", "y") })
	r, err := c.Completions.New(context.Background(), client.CompletionNewParams{
		Model: "plain", Prompt: client.CompletionNewParamsPromptUnion{OfArrayOfStrings: []string{"a", "b"}}, Echo: client.Bool(true),
	})
	if err != nil || len(r.Choices) != 2 || r.Choices[1].Text != "bxy" || r.Choices[1].Index != 1 {
		t.Errorf("%+v %v", r, err)
	}
	st := c.Completions.NewStreaming(context.Background(), client.CompletionNewParams{Model: "plain", Prompt: client.CompletionNewParamsPromptUnion{OfString: client.String("a")}})
	text := ""
	for st.Next() {
		text += st.Current().Choices[0].Text
	}
	if st.Err() != nil || text != "xy" {
		t.Errorf("%q %v", text, st.Err())
	}
	m, err := c.Models.Get(context.Background(), "gpt-test")
	if err != nil || m.ID != "gpt-test" || m.Created != 1_700_000_000 {
		t.Errorf("%+v %v", m, err)
	}
	page, err := c.Models.List(context.Background())
	if err != nil || len(page.Data) != 7 {
		t.Errorf("%+v %v", page, err)
	}
}
