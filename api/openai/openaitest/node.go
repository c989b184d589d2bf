package openaitest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ieg"
	"ieg/api/openai"
)

var _ openai.Node = (*Node)(nil)

// Node implements openai.Node. Set its fields before use.
type Node struct {
	// Loaded are the models.
	Loaded []openai.Model
	// Play answers a request, on a goroutine of its own.
	Play func(*Call)
	// Refuse, if set, may refuse a request in Submit.
	Refuse func(*ieg.Request) error

	start   time.Time
	once    sync.Once
	next    atomic.Uint64
	mu      sync.Mutex
	calls   []*Call
	players sync.WaitGroup
}

// Model is a generative model with ChatML's control tokens. Tokens below 256
// are bytes; 256 and up are the control texts in their order.
func Model(name string) openai.Model {
	m := openai.Model{Context: 1024, Slots: 4, Ready: true, Created: 1_700_000_000}
	m.Name, m.Arch, m.Generative, m.Vocab = name, "llama", true, 300
	m.Digest = "0123456789abcdef" + name
	m.ControlText = []string{"<|im_start|>", "<|im_end|>", "<s>"}
	m.EOS, m.EOSText = 257, "<|im_end|>"
	m.BOS, m.BOSText = 258, "<s>"
	return m
}

// Models lists Loaded.
func (n *Node) Models() []openai.Model { return n.Loaded }

// Now is a real clock.
func (n *Node) Now() ieg.Time {
	n.once.Do(func() { n.start = time.Now().Add(-time.Nanosecond) })
	return ieg.Time(time.Since(n.start))
}

func (n *Node) find(name string) (*openai.Model, error) {
	for i := range n.Loaded {
		if n.Loaded[i].Name == name {
			return &n.Loaded[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ieg.ErrNoModel, name)
}

// Tokenize makes a token of each byte, and of each control text in Special
// parts.
func (n *Node) Tokenize(ctx context.Context, model string, parts []openai.Part) ([]ieg.Token, error) {
	m, err := n.find(model)
	if err != nil {
		return nil, err
	}
	var out []ieg.Token
	for _, p := range parts {
		for i := 0; i < len(p.Text); {
			tok, size := ieg.Token(p.Text[i]), 1
			for c, t := range m.ControlText {
				if p.Special && strings.HasPrefix(p.Text[i:], t) {
					tok, size = ieg.Token(256+c), len(t)
				}
			}
			out = append(out, tok)
			i += size
		}
	}
	return out, ctx.Err()
}

// Detokenize is the inverse.
func (n *Node) Detokenize(ctx context.Context, model string, tokens []ieg.Token) (string, error) {
	m, err := n.find(model)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, t := range tokens {
		switch c := int(t) - 256; {
		case c < 0:
			b.WriteByte(byte(t))
		case c < len(m.ControlText):
			b.WriteString(m.ControlText[c])
		}
	}
	return b.String(), ctx.Err()
}

// Submit starts Play.
func (n *Node) Submit(req *ieg.Request, sink openai.Sink) (openai.Handle, error) {
	if n.Refuse != nil {
		if err := n.Refuse(req); err != nil {
			return nil, err
		}
	}
	req.ID = ieg.RequestID(n.next.Add(1))
	c := &Call{Request: req, node: n, sink: sink, Cancelled: make(chan struct{}), Resumed: make(chan struct{}, 64), Delivery: make(chan ieg.Span, 1)}
	n.mu.Lock()
	n.calls = append(n.calls, c)
	n.mu.Unlock()
	if n.Play != nil {
		n.players.Go(func() { n.Play(c) })
	}
	return (*handle)(c), nil
}

// Wait returns when every Play that was started has ended.
func (n *Node) Wait() { n.players.Wait() }

// Calls are the requests submitted so far.
func (n *Node) Calls() []*Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*Call(nil), n.calls...)
}

// Call is one submitted request. Its methods play the runtime's part and are
// called from one goroutine.
type Call struct {
	Request *ieg.Request
	// Cancelled is closed by Handle.Cancel; Reason and Why are set then.
	Cancelled chan struct{}
	Reason    ieg.StopReason
	Why       string
	// Resumed gets a value for each Handle.Resume, Delivery the span.
	Resumed  chan struct{}
	Delivery chan ieg.Span

	node      *Node
	sink      openai.Sink
	once      sync.Once
	generated int32
}

// Result hands a result in, as the runtime does: Parse, then Emit. done is
// what Parse said, backlog what Emit did.
func (c *Call) Result(choice int32, r ieg.SeqResult) (done bool, backlog int) {
	if r.Sampled {
		c.generated++
	}
	if done = c.sink.Parse(choice, &r); done && r.Stop == ieg.NotStopped {
		r.Stop = ieg.StopToolCall
	}
	return done, c.sink.Emit(choice, &r)
}

// Token is a sampled token with its text.
func (c *Call) Token(choice int32, text string) (done bool, backlog int) {
	tok := ieg.Token(0)
	if text != "" {
		tok = ieg.Token(text[0])
	}
	return c.Result(choice, ieg.SeqResult{Sampled: true, Token: tok, Text: []byte(text)})
}

// Usage is what has been used so far.
func (c *Call) Usage() ieg.Usage {
	n := int32(len(c.Request.Prompt))
	return ieg.Usage{Prompt: n, Cached: n / 2, Generated: c.generated}
}

// Stop ends a choice: the last token, without text, and Finish.
func (c *Call) Stop(choice int32, reason ieg.StopReason) {
	if reason.Success() {
		c.Result(choice, ieg.SeqResult{Sampled: true, Stop: reason})
	}
	c.Finish(choice, reason, nil)
}

// Finish ends a choice, or the request with ieg.AllChoices.
func (c *Call) Finish(choice int32, reason ieg.StopReason, err error) {
	now := c.node.Now()
	c.sink.Finish(ieg.Finish{Request: c.Request.ID, Choice: choice, Reason: reason, Err: err, Usage: c.Usage(),
		Times: ieg.RequestTimes{Received: c.Request.Received, Arrived: c.Request.Received, Admitted: now, FirstToken: now, Last: now}})
}

// Say plays a whole request: every choice says the texts and ends.
func (c *Call) Say(texts ...string) {
	for choice := range int32(c.Request.N) {
		done := false
		for _, t := range texts {
			if done, _ = c.Token(choice, t); done {
				break
			}
		}
		if done {
			c.Finish(choice, ieg.StopToolCall, nil)
		} else {
			c.Stop(choice, ieg.StopEnd)
		}
	}
	c.Finish(ieg.AllChoices, ieg.StopEnd, nil)
}

// Vector plays an embedding request.
func (c *Call) Vector(v ...float32) {
	c.Result(0, ieg.SeqResult{Vector: v})
	c.Finish(0, ieg.StopEnd, nil)
	c.Finish(ieg.AllChoices, ieg.StopEnd, nil)
}

// Taken waits until the client has taken everything, or the request was
// cancelled.
func (c *Call) Taken() {
	for range 100_000 {
		if c.sink.Emit(0, &ieg.SeqResult{}) == 0 {
			return
		}
		select {
		case <-c.Cancelled:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
	panic("openaitest: the client takes nothing")
}

type handle Call

func (h *handle) ID() ieg.RequestID { return h.Request.ID }

func (h *handle) Cancel(reason ieg.StopReason, why string) {
	h.once.Do(func() {
		h.Reason, h.Why = reason, why
		close(h.Cancelled)
	})
}

func (h *handle) Resume() {
	select {
	case h.Resumed <- struct{}{}:
	default:
	}
}

func (h *handle) Delivered(span ieg.Span) {
	select {
	case h.Delivery <- span:
	default:
	}
}
