package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// nativeChunk is the part of an event of llama-server's own protocol that the
// client reads.
type nativeChunk struct {
	Content string          `json:"content"`
	IDs     []int           `json:"tokens"`
	Stop    bool            `json:"stop"`
	Reason  string          `json:"stop_type"`
	Prompt  int             `json:"tokens_evaluated"`
	Output  int             `json:"tokens_predicted"`
	Error   json.RawMessage `json:"error"`
	Timings struct {
		Cached int `json:"cache_n"`
	} `json:"timings"`
}

// Native streams a completion by llama-server's own protocol, which tells the
// tokens of the output: body has "prompt" and "n_predict".
func (c *Client) Native(ctx context.Context, body Body) *Trace {
	b := Body{"stream": true, "return_tokens": true}
	for k, v := range body {
		b[k] = v
	}
	t := &Trace{Start: time.Now()}
	resp, err := c.post(ctx, "/completion", b)
	if err != nil {
		t.Err = err
		return t
	}
	defer resp.Body.Close()
	t.Err = t.followNative(resp.Body)
	t.End = time.Now()
	return t
}

// followNative reads events until the one that ends the output.
func (t *Trace) followNative(r io.Reader) error {
	sc := lines(r)
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		now := time.Now()
		var ch nativeChunk
		if err := json.Unmarshal(data, &ch); err != nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		if len(ch.Error) > 0 {
			return fmt.Errorf("the server says: %s", ch.Error)
		}
		if len(ch.IDs) > 0 {
			t.Tokens = append(t.Tokens, now)
			t.IDs = append(t.IDs, ch.IDs...)
			t.Text += ch.Content
		}
		if ch.Stop {
			t.Finish = ch.Reason
			t.Usage = Usage{PromptTokens: ch.Prompt, CompletionTokens: ch.Output}
			t.Usage.Details.Cached = ch.Timings.Cached
			return nil
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the stream ended without its last event")
}
