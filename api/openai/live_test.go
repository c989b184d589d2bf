package openai_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ieg"
	"ieg/api/openai"
	"ieg/api/openai/openaitest"
)

// pipes is a listener over in-memory connections, so that whole servers run
// under synctest's clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	select {
	case <-p.done:
	default:
		close(p.done)
	}
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.IPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// live runs a whole server for the time of a test, under a fake clock.
func live(t *testing.T, cfg openai.Config, play func(*openaitest.Call), f func(node *openaitest.Node, p *pipes)) {
	models := testModels(t)
	synctest.Test(t, func(t *testing.T) {
		node := &openaitest.Node{Loaded: models, Play: play}
		p := newPipes()
		srv := openai.New(cfg, node).HTTPServer()
		go func() { _ = srv.Serve(p) }()
		f(node, p)
		_ = srv.Close()
		_ = p.Close()
		synctest.Wait()
	})
}

const streamBody = `{"stream":true,"messages":[{"role":"user","content":"x"}]}`

func post(t *testing.T, c net.Conn, body string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
}

// TestKeepAlive: nothing leaves before the first token or the keep-alive; a
// failure after that is an event, one before it a status.
func TestKeepAlive(t *testing.T) {
	live(t, testConfig(), func(c *openaitest.Call) {
		<-time.After(12 * time.Second) // the fake clock's
		c.Say("hi")
	}, func(node *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		post(t, c, streamBody)
		start := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != 5*time.Second || resp.StatusCode != 200 {
			t.Errorf("status %d after %v, want 200 after 5s", resp.StatusCode, d)
		}
		body, _ := io.ReadAll(resp.Body)
		if d := time.Since(start); d != 12*time.Second {
			t.Errorf("complete after %v", d)
		}
		if n := strings.Count(string(body), ": keep-alive\n\n"); n != 2 {
			t.Errorf("%d keep-alives, want 2", n)
		}
		if !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Errorf("no end: %s", body)
		}
		if span := <-node.Calls()[0].Delivery; span.Duration() != 7*time.Second {
			t.Errorf("delivered over %v, want 7s", span.Duration())
		}
	})
}

func TestLateFailure(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 6 * time.Second} {
		live(t, testConfig(), func(c *openaitest.Call) {
			<-time.After(after)
			c.Finish(ieg.AllChoices, ieg.StopError, ieg.ErrBusy)
		}, func(_ *openaitest.Node, p *pipes) {
			c := p.dial()
			defer c.Close()
			post(t, c, streamBody)
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if after < 5*time.Second {
				if resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
					t.Errorf("got %d %s", resp.StatusCode, body)
				}
				return
			}
			want := ": keep-alive\n\ndata: {\"error\":{\"message\":\"busy\",\"type\":\"rate_limit_error\",\"param\":null,\"code\":\"queue_full\"}}\n\ndata: [DONE]\n\n"
			if resp.StatusCode != 200 || string(body) != want {
				t.Errorf("got %d %q", resp.StatusCode, body)
			}
		})
	}
}

// TestClientGone: the kernel hears of it at once, for streams and for whole
// answers, before the first token and in the middle.
func TestClientGone(t *testing.T) {
	for _, body := range []string{streamBody, strings.Replace(streamBody, "true", "false", 1)} {
		for _, tokens := range []int{0, 3} {
			live(t, testConfig(), func(c *openaitest.Call) {
				for range tokens {
					c.Token(0, "a")
				}
			}, func(node *openaitest.Node, p *pipes) {
				c := p.dial()
				post(t, c, body)
				if tokens > 0 && body == streamBody {
					line, err := bufio.NewReader(c).ReadString('\n')
					if err != nil || !strings.Contains(line, "200") {
						t.Fatal(line, err)
					}
				}
				synctest.Wait()
				call := node.Calls()[0]
				left := time.Now()
				_ = c.Close()
				<-call.Cancelled
				if d := time.Since(left); d != 0 || call.Reason != ieg.StopCancel {
					t.Errorf("cancelled after %v: %v %s", d, call.Reason, call.Why)
				}
				synctest.Wait()
				// The runtime may go on for a step: nothing comes of it.
				if _, backlog := call.Token(0, "late"); backlog != 0 {
					t.Errorf("backlog %d after the end", backlog)
				}
				call.Finish(ieg.AllChoices, ieg.StopCancel, ieg.ErrCancelled)
			})
		}
	}
}

// TestSlowReader: a reader that stops reading makes the backlog grow past the
// pause limit, is resumed when it reads on, and gets every byte in order.
func TestSlowReader(t *testing.T) {
	text := strings.Repeat("é", 500)
	const tokens = 400
	paused := make(chan int, 1)
	live(t, testConfig(), func(c *openaitest.Call) {
		said := 0
		for said < tokens {
			_, backlog := c.Token(0, text)
			said++
			if backlog > openai.PauseBacklogBytes {
				select {
				case paused <- backlog:
				default:
				}
				<-c.Resumed
			}
		}
		c.Stop(0, ieg.StopEnd)
		c.Finish(ieg.AllChoices, ieg.StopEnd, nil)
	}, func(node *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		post(t, c, streamBody)
		<-time.After(30 * time.Second) // within the write's deadline
		if backlog := <-paused; backlog > openai.PauseBacklogBytes+4096 {
			t.Errorf("paused at %d bytes", backlog)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(body), text); n != tokens {
			t.Errorf("%d of %d tokens arrived", n, tokens)
		}
		if !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Error("no end")
		}
	})
}

// TestStalledReader: who takes nothing for WriteStall is cancelled, and the
// answer never looks complete.
func TestStalledReader(t *testing.T) {
	live(t, testConfig(), func(c *openaitest.Call) { c.Token(0, "a") }, func(node *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		post(t, c, streamBody)
		start := time.Now()
		synctest.Wait()
		call := node.Calls()[0]
		<-call.Cancelled
		if d := time.Since(start); d != time.Minute || !strings.Contains(call.Why, "took no output") {
			t.Errorf("cancelled after %v: %s", d, call.Why)
		}
		got, _ := io.ReadAll(c)
		if strings.Contains(string(got), "[DONE]") || strings.Contains(string(got), "finish_reason\":\"") {
			t.Errorf("a torn stream looks whole: %s", got)
		}
	})
}

// TestCoalescing: what waits leaves in one write, as chunks of its own.
func TestCoalescing(t *testing.T) {
	said := make(chan struct{})
	live(t, testConfig(), func(c *openaitest.Call) {
		for range 20 {
			c.Token(0, "x")
		}
		close(said)
		c.Stop(0, ieg.StopEnd)
		c.Finish(ieg.AllChoices, ieg.StopEnd, nil)
	}, func(_ *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		post(t, c, streamBody)
		<-said
		synctest.Wait()
		// Each write of the server ends in a Read of its own here.
		buf, reads, all := make([]byte, 1<<20), 0, ""
		for !strings.Contains(all, "[DONE]") {
			n, err := c.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			reads++
			all += string(buf[:n])
		}
		if n := strings.Count(all, `"content":"x"`); n != 20 {
			t.Errorf("%d chunks", n)
		}
		if reads > 12 {
			t.Errorf("%d writes for 20 tokens that were all there", reads)
		}
	})
}

// TestBodyTimeout: a body that never comes ends the request.
func TestBodyTimeout(t *testing.T) {
	live(t, testConfig(), nil, func(node *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		_, _ = io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
		start := time.Now()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); resp.StatusCode != 400 || d != time.Minute {
			t.Errorf("status %d after %v", resp.StatusCode, d)
		}
	})
}

// TestSecondRequestOnConnection: deadlines of one answer don't reach into the
// next one.
func TestSecondRequestOnConnection(t *testing.T) {
	live(t, testConfig(), func(c *openaitest.Call) { c.Say("x") }, func(_ *openaitest.Node, p *pipes) {
		c := p.dial()
		defer c.Close()
		r := bufio.NewReader(c)
		for i := range 3 {
			post(t, c, streamBody)
			resp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(i, err)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(body), "[DONE]") {
				t.Fatal(i, err)
			}
			<-time.After(100 * time.Second)
		}
	})
}

// TestEmbeddingWindow: many inputs go in a window at a time, and a full queue
// is waited for while some of ours are inside.
func TestEmbeddingWindow(t *testing.T) {
	const inputs = 100
	inside, most := 0, 0
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	node := &openaitest.Node{Loaded: testModels(t)}
	node.Refuse = func(*ieg.Request) error {
		<-gate
		defer func() { gate <- struct{}{} }()
		if inside >= 10 {
			return fmt.Errorf("%w: full", ieg.ErrBusy)
		}
		inside++
		most = max(most, inside)
		return nil
	}
	node.Play = func(c *openaitest.Call) {
		<-gate
		inside--
		gate <- struct{}{}
		c.Vector(float32(c.Request.Prompt[1]), 1)
	}
	var body strings.Builder
	body.WriteString(`{"model":"embed","input":[`)
	for i := range inputs {
		fmt.Fprintf(&body, `"%c",`, 'A'+i%26)
	}
	w, _ := ask(t, openai.New(testConfig(), node), "POST", "/v1/embeddings", strings.TrimSuffix(body.String(), ",")+"]}", nil)
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for i := range inputs {
		if want := fmt.Sprintf(`"index":%d,"embedding":[%d,1]`, i, 'A'+i%26); !strings.Contains(w.Body.String(), want) {
			t.Fatalf("missing %s", want)
		}
	}
	if most < 1 || most > 10 {
		t.Errorf("%d at once", most)
	}
}

// TestPanicIsOneRequests: a fault in one request answers 500 and leaves the
// server up.
func TestPanicIsOneRequests(t *testing.T) {
	node := &openaitest.Node{Loaded: testModels(t), Refuse: func(r *ieg.Request) error {
		if r.N == 2 {
			panic("boom")
		}
		return nil
	}, Play: func(c *openaitest.Call) { c.Say("x") }}
	s := openai.New(testConfig(), node)
	if w, e := ask(t, s, "POST", "/v1/completions", `{"prompt":"x","n":2}`, nil); w.Code != 500 || strings.Contains(e.Error.Message, "boom") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w, _ := ask(t, s, "POST", "/v1/completions", `{"prompt":"x"}`, nil); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
