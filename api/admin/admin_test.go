package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg"
)

// fakeNode answers with fixed facts and keeps what it was asked.
type fakeNode struct {
	loaded   []LoadModel
	unloaded []UnloadModel
	drains   []Drain
	redacted []bool
	loadErr  error
	kv       *fakeKV
}

func (f *fakeNode) Status() ieg.Status {
	return ieg.Status{Now: 5, Engines: []ieg.EngineStatus{{
		Info:  ieg.EngineInfo{ID: 1, Layout: ieg.Streams, Probe: []ieg.LayoutProbe{{Layout: ieg.Streams, Chosen: true}}},
		State: ieg.EngineUp,
	}}}
}

func (f *fakeNode) Explain(id string) (ieg.Explain, error) {
	if id != "r12" {
		return ieg.Explain{}, ErrNotFound
	}
	return ieg.Explain{ID: 12, Nodes: []ieg.NodeExplain{{ID: 2, Stage: ieg.StageDecode, State: ieg.NodeRunning}}}, nil
}
func (f *fakeNode) Deaths() []Death   { return nil }
func (f *fakeNode) Devices() []Device { return []Device{{Spec: ieg.ResourceSpec{ID: "cpu"}}} }
func (f *fakeNode) Config() Config    { return Config{YAML: "listen: x\n"} }
func (f *fakeNode) Version() Version  { return Version{Version: "v1", PID: os.Getpid()} }
func (f *fakeNode) Models() []Model   { return []Model{{State: "ready"}} }
func (f *fakeNode) LoadModel(_ context.Context, m LoadModel) (Model, error) {
	f.loaded = append(f.loaded, m)
	return Model{Engine: 7}, f.loadErr
}
func (f *fakeNode) UnloadModel(_ context.Context, u UnloadModel) error {
	f.unloaded = append(f.unloaded, u)
	return nil
}
func (f *fakeNode) Segments() ([]Segment, error) { return []Segment{{Name: "s1"}}, nil }
func (f *fakeNode) OpenSegment(_ string, redact bool) (io.ReadCloser, error) {
	f.redacted = append(f.redacted, redact)
	return io.NopCloser(strings.NewReader("bytes")), nil
}
func (f *fakeNode) Drain(d Drain) error { f.drains = append(f.drains, d); return nil }

func (f *fakeNode) node() Node {
	n := Node{Observer: f, Host: f, Models: f, Recorder: f, Drainer: f}
	if f.kv != nil {
		n.KV = f.kv
	}
	return n
}

// serve starts a server on a socket of its own.
func serve(t *testing.T, f *fakeNode) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(path, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(f.node(), "")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
		l.Close()
		if _, err := os.Stat(path); err == nil {
			t.Errorf("the socket file is left behind")
		}
	})
	return NewClient(path)
}

func TestRoundTrips(t *testing.T) {
	f := &fakeNode{}
	c := serve(t, f)
	ctx := context.Background()

	st, err := c.Status(ctx)
	if err != nil || st.Now != 5 || st.Engines[0].Info.Layout != ieg.Streams || !st.Engines[0].Info.Probe[0].Chosen {
		t.Errorf("status: %+v, %v", st, err)
	}
	ex, err := c.Explain(ctx, "r12")
	if err != nil || ex.ID != 12 || ex.Nodes[0].Stage != ieg.StageDecode || ex.Nodes[0].State != ieg.NodeRunning {
		t.Errorf("explain: %+v, %v", ex, err)
	}
	if _, err := c.Explain(ctx, "chatcmpl-x/../y"); !errors.Is(err, ErrNotFound) {
		t.Errorf("explain of an unknown id: %v", err)
	}
	if d, err := c.Deaths(ctx); err != nil || d == nil || len(d) != 0 {
		t.Errorf("deaths: %v, %v", d, err)
	}
	if m, err := c.LoadModel(ctx, LoadModel{Path: "/m.gguf", Context: 9}); err != nil || m.Engine != 7 || f.loaded[0].Context != 9 {
		t.Errorf("load: %+v, %v", m, err)
	}
	if err := c.UnloadModel(ctx, UnloadModel{Name: "m", Force: true}); err != nil || !f.unloaded[0].Force {
		t.Errorf("unload: %v", err)
	}
	if err := c.Drain(ctx, Drain{Now: true}); err != nil || !f.drains[0].Now {
		t.Errorf("drain: %v", err)
	}
	body, err := c.OpenSegment(ctx, "s1", true)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if b, _ := io.ReadAll(body); string(b) != "bytes" || !f.redacted[0] {
		t.Errorf("segment: %q", b)
	}
	for _, call := range []func() error{
		func() error { _, err := c.Devices(ctx); return err },
		func() error { _, err := c.Config(ctx); return err },
		func() error { _, err := c.Version(ctx); return err },
		func() error { _, err := c.Models(ctx); return err },
		func() error { _, err := c.Segments(ctx); return err },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorsKeepIdentity(t *testing.T) {
	f := &fakeNode{}
	c := serve(t, f)
	for _, row := range codes {
		f.loadErr = row.err
		_, err := c.LoadModel(context.Background(), LoadModel{Path: "x"})
		if !errors.Is(err, row.err) || err.Error() != row.err.Error() {
			t.Errorf("%s arrives as %v", row.code, err)
		}
	}
	if _, err := c.LoadModel(context.Background(), LoadModel{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("no path: %v", err)
	}
	if _, err := c.OpenSegment(context.Background(), "..", false); err == nil {
		t.Error("a segment named .. was opened")
	}
}

// TestBadBodies: what is wrong is told in the words of JSON.
func TestBadBodies(t *testing.T) {
	c := serve(t, &fakeNode{})
	for body, want := range map[string]string{
		`{"path":5}`: "invalid request: path can't be of type number",
		`[1]`:        "invalid request: the body can't be of type array",
		`{"x":1}`:    `invalid request: unknown field "x"`,
	} {
		_, err := c.do(context.Background(), http.MethodPost, "/v1/models/load", json.RawMessage(body))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	member := func(uid uint32, gid int) bool { return uid == 30 && gid == 5 }
	for _, row := range []struct {
		uid, gid uint32
		group    int
		want     permission
	}{
		{0, 0, -1, read | write | content},
		{10, 10, -1, read | write | content},
		{20, 20, -1, 0},
		{20, 5, 5, read | write},
		{30, 30, 5, read | write},
		{31, 31, 5, 0},
	} {
		if got := (peer{uid: row.uid, gid: row.gid}).granted(10, row.group, member); got != row.want {
			t.Errorf("uid %d gid %d, group %d: %b, want %b", row.uid, row.gid, row.group, got, row.want)
		}
	}
	s, err := NewServer((&fakeNode{}).node(), "")
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder() // a request without credentials
	s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", "http://ieg/v1/status", nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("without credentials: %d", w.Code)
	}
}

func TestBrowsersAreRefused(t *testing.T) {
	c := serve(t, &fakeNode{})
	for _, row := range []struct {
		host, header, value string
		want                int
	}{
		{"ieg", "", "", 200},
		{"localhost", "", "", 200},
		{"evil.example", "", "", 403},
		{"ieg", "Origin", "null", 403},
		{"ieg", "Referer", "x", 403},
		{"ieg", "Sec-Fetch-Site", "none", 403},
	} {
		req, _ := http.NewRequest("GET", "http://"+row.host+"/v1/version", nil)
		if row.header != "" {
			req.Header.Set(row.header, row.value)
		}
		resp, err := c.http.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != row.want {
			t.Errorf("%+v: %d", row, resp.StatusCode)
		}
	}
}

func TestStaleSocketIsReplacedAndALiveOneIsNot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "s")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	if _, err := NewClient(path).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a dead socket: %v", err)
	}
	l, err := Listen(path, "")
	if err != nil {
		t.Fatalf("stale: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	_, err = Listen(path, "")
	if !errors.Is(err, ErrAlreadyRunning) || !strings.Contains(err.Error(), "pid ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("live: %v", err)
	}
	l.Close()
	l, err = Listen(path, "")
	if err != nil {
		t.Fatalf("after close: %v", err)
	}
	l.Close()
	if _, err := NewClient(path).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after close: %v", err)
	}
}

func TestBadPlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file, ""); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file: %v", err)
	}
	if _, err := Listen(filepath.Join(dir, strings.Repeat("x", SocketPathMax)), ""); err == nil {
		t.Error("a path that is too long was taken")
	}
	if _, err := Listen(filepath.Join(dir, "s"), "no-such-group-here"); err == nil {
		t.Error("an unknown group was taken")
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(filepath.Join(open, "s"), ""); err == nil || !strings.Contains(err.Error(), "everybody") {
		t.Errorf("a folder open to all: %v", err)
	}
}

func FuzzBodies(f *testing.F) {
	f.Add("/v1/models/load", []byte(`{"path":"/m.gguf","aliases":["a"]}`))
	f.Add("/v1/models/unload", []byte(`{"name":"m"}`))
	f.Add("/v1/drain", []byte(`{}`))
	f.Add("/v1/models/load", []byte(`{"path":"x","unknown":1}`))
	f.Add("/v1/models/load", []byte(`{} {}`))
	f.Add("/v1/kv/pin", []byte(`{"hash":"abcd","for_ns":1}`))
	f.Add("/v1/kv/drop", []byte(`{"tenant":"a"}`))
	f.Add("/v1/kv/flush", []byte(`{"within_ns":1}`))
	s, err := NewServer((&fakeNode{kv: &fakeKV{}}).node(), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		req, err := http.NewRequest("POST", "http://ieg/", bytes.NewReader(body))
		if err != nil {
			return
		}
		req.URL.Path = path
		req = req.WithContext(context.WithValue(req.Context(), peerKey{}, peer{}))
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, req)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("%s %q: %d %s", path, body, w.Code, w.Body)
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("no JSON: %s", w.Body)
		}
	})
}
