package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// LineBytesMax bounds one line of a stream.
const LineBytesMax = 4 << 20

// Client talks to one server.
type Client struct {
	Base string // "http://127.0.0.1:9430"
	Key  string // API key or ""
	// OnToken, if set, is called for each chunk with output as it arrives.
	OnToken func()
	http    http.Client
}

// New returns a client that opens a connection per request: a server may end
// an idle one at the moment it is used again, which is no fault of either.
func New(base string) *Client {
	t := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	return &Client{Base: base, http: http.Client{Transport: t}}
}

// Usage is the usage object of a response.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// Trace is what one streamed request looked like from outside.
type Trace struct {
	Start  time.Time
	Tokens []time.Time // arrival of each chunk with output
	End    time.Time
	Text   string
	IDs    []int // of the output, where the server tells them
	Finish string
	Usage  Usage
	Err    error
}

// TTFT is the time to the first chunk with output.
func (t *Trace) TTFT() time.Duration {
	if len(t.Tokens) == 0 {
		return 0
	}
	return t.Tokens[0].Sub(t.Start)
}

// MaxGap is the longest gap between chunks that overlaps [from, to].
func (t *Trace) MaxGap(from, to time.Time) time.Duration {
	var worst time.Duration
	for i := 1; i < len(t.Tokens); i++ {
		if a, b := t.Tokens[i-1], t.Tokens[i]; a.Before(to) && b.After(from) {
			worst = max(worst, b.Sub(a))
		}
	}
	return worst
}

// chunk is the part of a streamed object that the client reads.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content   string          `json:"content"`
			ToolCalls json.RawMessage `json:"tool_calls"`
		} `json:"delta"`
		Text   string `json:"text"`
		IDs    []int  `json:"token_ids"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *Usage          `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// Body is a request's JSON object.
type Body map[string]any

// Stream posts body with stream set and follows the answer to its end.
func (c *Client) Stream(ctx context.Context, path string, body Body) *Trace {
	b := Body{"stream": true, "stream_options": Body{"include_usage": true}}
	for k, v := range body {
		b[k] = v
	}
	t := &Trace{Start: time.Now()}
	resp, err := c.post(ctx, path, b)
	if err != nil {
		t.Err = err
		return t
	}
	defer resp.Body.Close()
	t.Err = t.follow(resp.Body, c.OnToken)
	t.End = time.Now()
	return t
}

// lines reads a stream of events.
func lines(r io.Reader) *bufio.Scanner {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 64<<10), LineBytesMax)
	return sc
}

// follow reads server-sent events until [DONE].
func (t *Trace) follow(r io.Reader, onToken func()) error {
	sc := lines(r)
	var text strings.Builder
	defer func() { t.Text = text.String() }()
	for sc.Scan() {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		if string(data) == "[DONE]" {
			return nil
		}
		now := time.Now()
		var ch chunk
		if err := json.Unmarshal(data, &ch); err != nil {
			return fmt.Errorf("event %q: %w", data, err)
		}
		if len(ch.Error) > 0 {
			return fmt.Errorf("the server says: %s", ch.Error)
		}
		if ch.Usage != nil {
			t.Usage = *ch.Usage
		}
		for _, x := range ch.Choices {
			if x.Delta.Content != "" || x.Text != "" || len(x.Delta.ToolCalls) > 0 {
				t.Tokens = append(t.Tokens, now)
				if onToken != nil {
					onToken()
				}
			}
			t.IDs = append(t.IDs, x.IDs...)
			text.WriteString(x.Delta.Content)
			text.WriteString(x.Text)
			if x.Finish != "" {
				t.Finish = x.Finish
			}
		}
	}
	if err := sc.Err(); err != nil {
		return err
	}
	return fmt.Errorf("the stream ended without [DONE]")
}

// Post posts body and decodes the answer into out.
func (c *Client) Post(ctx context.Context, path string, body Body, out any) error {
	resp, err := c.post(ctx, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(out)
}

func (c *Client) post(ctx context.Context, path string, body Body) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		msg, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
		return nil, &StatusError{Code: resp.StatusCode, Body: string(msg)}
	}
	return resp, nil
}

// StatusError is an answer other than 200.
type StatusError struct {
	Code int
	Body string
}

// Error tells code and body.
func (e *StatusError) Error() string { return fmt.Sprintf("status %d: %s", e.Code, e.Body) }

// All streams every body at once and returns their traces in order.
func (c *Client) All(ctx context.Context, path string, bodies []Body) []*Trace {
	out := make([]*Trace, len(bodies))
	var wg sync.WaitGroup
	for i, b := range bodies {
		wg.Go(func() { out[i] = c.Stream(ctx, path, b) })
	}
	wg.Wait()
	return out
}

// Clients streams the bodies with n of them under way at a time and returns
// their traces in order.
func (c *Client) Clients(ctx context.Context, n int, path string, bodies []Body) []*Trace {
	out := make([]*Trace, len(bodies))
	next := make(chan int)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for i := range next {
				out[i] = c.Stream(ctx, path, bodies[i])
			}
		})
	}
	for i := range bodies {
		next <- i
	}
	close(next)
	wg.Wait()
	return out
}
