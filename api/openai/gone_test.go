package openai_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"ieg"
	"ieg/api/openai"
	"ieg/api/openai/openaitest"
)

// leaving is a puppet whose calls last until the client has left, if wait
// says so.
type leaving struct {
	*openaitest.Node
	wait atomic.Bool
}

func (n *leaving) Tokenize(ctx context.Context, model string, parts []openai.Part) ([]ieg.Token, error) {
	if n.wait.Load() {
		<-ctx.Done()
	}
	return n.Node.Tokenize(ctx, model, parts)
}

func (n *leaving) Detokenize(ctx context.Context, model string, toks []ieg.Token) (string, error) {
	if n.wait.Load() {
		<-ctx.Done()
	}
	return n.Node.Detokenize(ctx, model, toks)
}

// halfClose sends a request over TCP, ends the sending side and returns all
// that comes.
func halfClose(t *testing.T, addr, path, body string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(c) // a reset is an aborted connection too
	return string(got)
}

// honest tells what is wrong with what a half-closed client got: it must be
// nothing, torn, or a right answer.
func honest(got, sign string) error {
	if got == "" {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
	if err != nil {
		return nil // torn
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil // torn
	}
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(body), sign) {
		return errors.New(got)
	}
	return nil
}

// TestHalfClosed: a client that ends its sending side after the request looks
// to net/http as if it had left. It is answered rightly or not at all, and no
// fault of the node is logged.
func TestHalfClosed(t *testing.T) {
	var logged bytes.Buffer
	cfg := testConfig()
	cfg.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var endless atomic.Bool
	node := &leaving{Node: &openaitest.Node{Loaded: testModels(t)}}
	node.Play = func(c *openaitest.Call) {
		if endless.Load() {
			if c.Request.Kind == ieg.Generate {
				c.Token(0, "a")
			}
			<-c.Cancelled
			c.Finish(ieg.AllChoices, ieg.StopCancel, ieg.ErrCancelled)
			return
		}
		if c.Request.Kind == ieg.Embed {
			c.Vector(1, 2)
			return
		}
		c.Say("hi")
	}
	srv := httptest.NewServer(openai.New(cfg, node).Handler())
	for _, c := range []struct{ path, body, sign string }{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, `"content":"hi"`},
		{"/v1/chat/completions", streamBody, "data: [DONE]"},
		{"/v1/completions", `{"prompt":"x"}`, `"text":"hi"`},
		{"/v1/completions", `{"prompt":[65],"echo":true}`, `"text":"Ahi"`},
		{"/v1/completions", `{"prompt":"x","stream":true}`, "data: [DONE]"},
		{"/v1/embeddings", `{"model":"embed","input":["x","y"]}`, `"embedding":[1,2]`},
		{"/tokenize", `{"prompt":"x","return_token_strs":true}`, `"token_strs":[`},
		{"/detokenize", `{"tokens":[65]}`, `"prompt":"A"`},
	} {
		for i := range 50 {
			node.wait.Store(i%3 == 1)
			endless.Store(i%3 == 2)
			if err := honest(halfClose(t, srv.Listener.Addr().String(), c.path, c.body), c.sign); err != nil {
				t.Errorf("%s %s, try %d: %v", c.path, c.body, i, err)
			}
		}
	}
	srv.Close()
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}

// TestHalfClosedRefusal: what the client did wrong it is told all the same.
func TestHalfClosedRefusal(t *testing.T) {
	srv := httptest.NewServer(openai.New(testConfig(), &openaitest.Node{Loaded: testModels(t)}).Handler())
	defer srv.Close()
	got := halfClose(t, srv.Listener.Addr().String(), "/v1/completions", `{"prompt":5}`)
	resp, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got)), nil)
	if err != nil {
		t.Fatalf("%v: %q", err, got)
	}
	var e errorBody
	if err := json.NewDecoder(resp.Body).Decode(&e); err != nil || resp.StatusCode != 400 || str(e.Error.Param) != "prompt" {
		t.Errorf("%v: %s", err, got)
	}
}
