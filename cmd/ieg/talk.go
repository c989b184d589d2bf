package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"ieg"
)

// talk is a conversation over the HTTP API.
type talk struct {
	base, model, key string
	o                chatOptions
	turns            []message

	// of the last answer
	id, finish  string
	first, took time.Duration
	usage       usage
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// chatRequest is the part of the API's request that is used here.
type chatRequest struct {
	Model         string    `json:"model"`
	Messages      []message `json:"messages"`
	Stream        bool      `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temperature float64 `json:"temperature"`
	TopP        float64 `json:"top_p"`
	MaxTokens   int     `json:"max_completion_tokens,omitempty"`
	Seed        *int64  `json:"seed,omitempty"`
}

// chunk is the part of a streamed event that is used here.
type chunk struct {
	ID      string `json:"id"`
	Choices []struct {
		Delta struct {
			Content   string `json:"content"`
			Reasoning string `json:"reasoning_content"`
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage    `json:"usage"`
	Error *apiError `json:"error"`
}

type apiError struct {
	Message string `json:"message"`
	Code    any    `json:"code"`
}

func newTalk(listen, model, key string, o chatOptions) *talk {
	return &talk{base: "http://" + reachable(listen), model: model, key: key, o: o}
}

// reachable turns an address that stands for all into one to connect to.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// turn asks with all turns so far, shows the answer as it comes and keeps it.
func (t *talk) turn(ctx context.Context, prompt string, show func(string)) (string, error) {
	t.id, t.finish, t.first, t.took, t.usage = "", "", 0, 0, usage{}
	began := time.Now()
	resp, err := t.post(ctx, prompt)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var text strings.Builder
	done, err := readEvents(resp.Body, func(data []byte) error {
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return fmt.Errorf("%w: event of the node: %w", ieg.ErrProtocol, err)
		}
		if c.Error != nil {
			return errors.New(c.Error.Message)
		}
		if c.ID != "" {
			t.id = c.ID
		}
		if c.Usage != nil {
			t.usage = *c.Usage
		}
		for _, ch := range c.Choices {
			if ch.Finish != "" {
				t.finish = ch.Finish
			}
			s := ch.Delta.Reasoning + ch.Delta.Content
			if s != "" && t.first == 0 {
				t.first = time.Since(began)
			}
			text.WriteString(ch.Delta.Content)
			show(s)
		}
		return nil
	})
	t.took = time.Since(began)
	if ctx.Err() != nil {
		return text.String(), ctx.Err()
	}
	if err == nil && !done {
		err = fmt.Errorf("%w: the answer broke off", ieg.ErrEngineLost)
	}
	if err != nil {
		return text.String(), err
	}
	t.turns = append(t.turns, message{"user", prompt}, message{"assistant", text.String()})
	t.turns = t.turns[max(0, len(t.turns)-2*HistoryTurnsMax):]
	return text.String(), nil
}

func (t *talk) post(ctx context.Context, prompt string) (*http.Response, error) {
	req := chatRequest{Model: t.model, Stream: true, Temperature: t.o.temperature, TopP: t.o.topP, MaxTokens: t.o.maxTokens}
	req.StreamOptions.IncludeUsage = true
	if t.o.seed >= 0 {
		req.Seed = &t.o.seed
	}
	if t.o.system != "" {
		req.Messages = append(req.Messages, message{"system", t.o.system})
	}
	req.Messages = append(append(req.Messages, t.turns...), message{"user", prompt})
	body, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	hr.Header.Set("Content-Type", "application/json")
	if t.key != "" {
		hr.Header.Set("Authorization", "Bearer "+t.key)
	}
	resp, err := http.DefaultClient.Do(hr)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("the node's API can't be reached: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, refusal(resp)
}

// refusal gives an error of the API its identity.
func refusal(resp *http.Response) error {
	var c chunk
	b, err := io.ReadAll(io.LimitReader(resp.Body, ErrorBodyBytesMax))
	if err != nil || json.Unmarshal(b, &c) != nil || c.Error == nil {
		return fmt.Errorf("the node answered %s", resp.Status)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", ieg.ErrBusy, c.Error.Message)
	case http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %s", ieg.ErrBusy, c.Error.Message)
	case http.StatusNotFound:
		return fmt.Errorf("%w: %s", ieg.ErrNoModel, c.Error.Message)
	case http.StatusUnauthorized:
		return fmt.Errorf("%s; put a key into IEG_API_KEY", c.Error.Message)
	}
	return errors.New(c.Error.Message)
}

// readEvents calls f with the data of each server-sent event. done tells that
// the stream ended as a whole one does.
func readEvents(r io.Reader, f func(data []byte) error) (done bool, err error) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, EventBytesMax)
	var data []byte
	for s.Scan() {
		line := s.Bytes()
		switch {
		case len(line) == 0 && len(data) > 0:
			if string(data) == "[DONE]" {
				return true, nil
			}
			if err := f(data); err != nil {
				return false, err
			}
			data = data[:0]
		case bytes.HasPrefix(line, []byte("data:")):
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...)
		}
	}
	return false, s.Err()
}
