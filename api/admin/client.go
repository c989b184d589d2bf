package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"syscall"

	"ieg"
)

// Client speaks to one node's admin socket. It may be used from any goroutine.
type Client struct {
	path string
	http *http.Client
}

// NewClient makes a client for the socket at path; it connects when used.
func NewClient(path string) *Client {
	d := &net.Dialer{Timeout: DialTimeout}
	return &Client{path: path, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", path)
		},
	}}}
}

// Path is the socket that the client uses.
func (c *Client) Path() string { return c.path }

// Status is what the node published last.
func (c *Client) Status(ctx context.Context) (ieg.Status, error) {
	return get[ieg.Status](ctx, c, "/v1/status")
}

// Explain tells the story of a request, by number or by its client's id.
func (c *Client) Explain(ctx context.Context, id string) (ieg.Explain, error) {
	return get[ieg.Explain](ctx, c, "/v1/explain/"+url.PathEscape(id))
}

// Deaths lists the last ends of engines, newest first.
func (c *Client) Deaths(ctx context.Context) ([]Death, error) {
	return get[[]Death](ctx, c, "/v1/deaths")
}

// Devices lists the host's devices.
func (c *Client) Devices(ctx context.Context) ([]Device, error) {
	return get[[]Device](ctx, c, "/v1/devices")
}

// Config is the node's effective configuration.
func (c *Client) Config(ctx context.Context) (Config, error) {
	return get[Config](ctx, c, "/v1/config")
}

// Version says what runs.
func (c *Client) Version(ctx context.Context) (Version, error) {
	return get[Version](ctx, c, "/v1/version")
}

// Models lists the models.
func (c *Client) Models(ctx context.Context) ([]Model, error) {
	return get[[]Model](ctx, c, "/v1/models")
}

// LoadModel starts loading a model.
func (c *Client) LoadModel(ctx context.Context, m LoadModel) (Model, error) {
	var out Model
	err := c.call(ctx, http.MethodPost, "/v1/models/load", m, &out)
	return out, err
}

// UnloadModel unloads a model and waits until it is gone.
func (c *Client) UnloadModel(ctx context.Context, u UnloadModel) error {
	return c.call(ctx, http.MethodPost, "/v1/models/unload", u, nil)
}

// Drain starts the end of the node.
func (c *Client) Drain(ctx context.Context, d Drain) error {
	return c.call(ctx, http.MethodPost, "/v1/drain", d, nil)
}

// Segments lists the kept segments of the flight recorder.
func (c *Client) Segments(ctx context.Context) ([]Segment, error) {
	return get[[]Segment](ctx, c, "/v1/recorder")
}

// OpenSegment reads one segment; the caller closes it.
func (c *Client) OpenSegment(ctx context.Context, name string, redact bool) (io.ReadCloser, error) {
	path := "/v1/recorder/" + url.PathEscape(name)
	if redact {
		path += "?redact=1"
	}
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	var v T
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	err := c.call(ctx, http.MethodGet, path, nil, &v)
	return v, err
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, AnswerBytesMax)).Decode(out); err != nil {
		return fmt.Errorf("%w: answer of the node on %s: %w", ieg.ErrProtocol, c.path, err)
	}
	return nil
}

// do sends a request and returns an answer that is a success; the caller
// closes its body.
func (c *Client) do(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+hostName+path, body)
	if err != nil {
		return nil, err
	}
	resp, cutOff, err := c.try(req)
	for n := 1; n < triesMax && method == http.MethodGet && cutOff; n++ {
		resp, cutOff, err = c.try(req)
	}
	if err != nil {
		return nil, c.explainDial(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var e Error
	if err := json.NewDecoder(io.LimitReader(resp.Body, RequestBytesMax)).Decode(&e); err != nil || e.Message == "" {
		return nil, fmt.Errorf("%w: the node on %s answered %s", ieg.ErrProtocol, c.path, resp.Status)
	}
	return nil, e.err()
}

// try sends a request once. cutOff tells that its connection ended without a
// byte of an answer: the node, with as many as it takes, let this one go as
// silent before the request came. How the HTTP client words that depends on
// what it was doing then, so its errors are not asked.
func (c *Client) try(req *http.Request) (resp *http.Response, cutOff bool, err error) {
	var connected, answered atomic.Bool // the hooks run in the transport's goroutines
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn:              func(httptrace.GotConnInfo) { connected.Store(true) },
		GotFirstResponseByte: func() { answered.Store(true) },
	})
	resp, err = c.http.Do(req.WithContext(ctx))
	cutOff = err != nil && req.Context().Err() == nil && connected.Load() && !answered.Load()
	return resp, cutOff, err
}

func (c *Client) explainDial(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w on %s; start one by 'ieg up'", ErrNotRunning, c.path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: %s belongs to another user; ask its owner, or join the admin group", ErrPermission, c.path)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("admin socket %s: %w", c.path, err)
}
