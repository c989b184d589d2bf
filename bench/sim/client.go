package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/memory/kv"
)

// client is the caller of one request: it takes the output, acts as planned,
// and checks what it gets.
type client struct {
	w       *World
	plan    *Request
	arrived ieg.Time
	choices []choice
	got     int // tokens of all choices
	ended   bool
	reason  ieg.StopReason
	err     error
	usage   ieg.Usage
	times   ieg.RequestTimes
	paused  bool
}

// choice is one of the N outputs.
type choice struct {
	seq    ieg.SeqID
	tokens []ieg.Token
	text   []byte
	vector bool
	ended  bool
	reason ieg.StopReason
	last   ieg.Time
}

func (w *World) arrive(r *Request) {
	spec := *r.Spec
	spec.Received = w.now
	spec.Tokenize = ieg.Span{Start: w.now, End: w.now}
	if spec.Deadline != ieg.Never {
		spec.Deadline += w.now
	}
	if e := w.engineOf(spec.Model); w.pager != nil && e != nil && spec.Kind == ieg.Generate {
		spec.Stored = w.pager.find(kv.Root(e.info.KVName, spec.Tenant), spec.Prompt)
	}
	c := &client{w: w, plan: r, arrived: w.now, choices: make([]choice, spec.N)}
	w.clients[spec.ID] = c
	w.order = append(w.order, c)
	w.apply(kernel.Arrived{Request: &spec})
	if r.CancelAt > 0 {
		w.after(r.CancelAt, c.cancel)
	}
}

// engineOf is the first engine that has loaded the model.
func (w *World) engineOf(model string) *child {
	for i := range w.cfg.Engines {
		if e := w.engines[ieg.EngineID(i+1)]; e != nil && e.cfg.Spec.Name == model && e.info.KVToken > 0 {
			return e
		}
	}
	return nil
}

func (c *client) id() ieg.RequestID { return c.plan.Spec.ID }

func (c *client) cancel() {
	if !c.ended {
		c.w.apply(kernel.Cancel{Request: c.id(), Reason: ieg.StopCancel})
	}
}

func (c *client) admit(a kernel.Admit) {
	if a.Choice < 0 || int(a.Choice) >= len(c.choices) || c.choices[a.Choice].seq != 0 || a.Seq == 0 {
		c.w.fail("request %d: choice %d is given sequence %d", c.id(), a.Choice, a.Seq)
		return
	}
	c.choices[a.Choice].seq = a.Seq
}

func (c *client) emit(e kernel.Emit) {
	w := c.w
	if c.ended || e.Choice < 0 || int(e.Choice) >= len(c.choices) || c.choices[e.Choice].ended {
		w.fail("request %d: a result for choice %d after its end", c.id(), e.Choice)
		return
	}
	ch := &c.choices[e.Choice]
	if e.Result.Seq != ch.seq {
		w.fail("request %d: choice %d of sequence %d got a result of sequence %d", c.id(), e.Choice, ch.seq, e.Result.Seq)
		return
	}
	ch.text = append(ch.text, e.Result.Text...)
	ch.vector = ch.vector || e.Result.Vector != nil
	if !e.Result.Sampled {
		return
	}
	ch.tokens = append(ch.tokens, e.Result.Token)
	c.got++
	w.report.token(w, c, ch)
	p := c.plan
	if c.got == p.CancelAfter {
		w.after(0, c.cancel)
	}
	if c.got == p.PauseAfter && !c.paused {
		c.paused = true
		w.after(0, func() { w.apply(kernel.Pause{Request: c.id()}) })
		w.after(p.PauseFor, func() { w.apply(kernel.Resume{Request: c.id()}) })
	}
}

func (c *client) finish(f ieg.Finish) {
	w := c.w
	if c.ended {
		w.fail("request %d ends twice: %s, then %s", c.id(), c.reason, f.Reason)
		return
	}
	if f.Choice == ieg.AllChoices {
		c.ended, c.reason, c.err, c.usage, c.times = true, f.Reason, f.Err, f.Usage, f.Times
		if f.Times.Admitted != 0 && slices.ContainsFunc(c.choices, func(ch choice) bool { return !ch.ended }) {
			w.fail("request %d ends before its choices", c.id())
		}
		w.report.request(w, c)
		if !f.Reason.Success() && f.Err == nil {
			w.fail("request %d ends with %q and no error", c.id(), f.Reason)
		}
		w.after(0, func() { w.apply(kernel.Delivered{Request: c.id(), Span: ieg.Span{Start: w.now, End: w.now}}) })
		return
	}
	ch := &c.choices[f.Choice]
	if ch.ended {
		w.fail("request %d: choice %d ends twice", c.id(), f.Choice)
	}
	ch.ended, ch.reason = true, f.Reason
}

// settle checks a client when nothing is left to happen.
func (c *client) settle() {
	w := c.w
	if !c.ended {
		w.fail("request %d was never ended: %d tokens", c.id(), c.got)
		return
	}
	if c.reason == ieg.StopError && errors.Is(c.err, ieg.ErrBusy) && c.got > 0 {
		w.fail("request %d was refused after %d tokens", c.id(), c.got)
	}
	if !w.cfg.Verify {
		return
	}
	for i := range c.choices {
		if err := c.verify(i); err != nil {
			w.fail("request %d, choice %d (%s, %s): %v", c.id(), i, c.plan.Spec.Class, c.choices[i].reason, err)
			return
		}
	}
}

// verify compares a choice with the engine's own text: all of it, or a prefix
// where it was cut short.
func (c *client) verify(i int) error {
	ch := &c.choices[i]
	want, err := c.w.reference(c.plan.Spec, i)
	if err != nil {
		return err
	}
	if c.plan.Spec.Kind == ieg.Embed {
		if ch.reason.Success() && !ch.vector {
			return errors.New("no vector")
		}
		return nil
	}
	if n := len(ch.tokens); n > len(want.tokens) || !slices.Equal(ch.tokens, want.tokens[:n]) {
		return fmt.Errorf("tokens %v; the engine's own are %v", ch.tokens, want.tokens)
	}
	if n := len(ch.text); n > len(want.text) || string(ch.text) != string(want.text[:n]) {
		return fmt.Errorf("text %q; the engine's own is %q", ch.text, want.text)
	}
	if ch.reason.Success() && (len(ch.tokens) != len(want.tokens) || len(ch.text) != len(want.text) || ch.reason != want.reason) {
		return fmt.Errorf("%d tokens and %d bytes, %q; the engine's own text has %d, %d, %q",
			len(ch.tokens), len(ch.text), ch.reason, len(want.tokens), len(want.text), want.reason)
	}
	return nil
}

// Outcome is how one choice of a request ended.
type Outcome struct {
	Request ieg.RequestID
	Choice  int
	Kind    ieg.Kind
	Reason  ieg.StopReason
	Tokens  []ieg.Token
	Text    string
}

// Outcomes lists what every client got, in the order of arrival.
func (w *World) Outcomes() []Outcome {
	var out []Outcome
	for _, c := range w.order {
		for i, ch := range c.choices {
			reason := ch.reason
			if !ch.ended {
				reason = c.reason
			}
			out = append(out, Outcome{c.id(), i, c.plan.Spec.Kind, reason, ch.tokens, string(ch.text)})
		}
	}
	return out
}

// at is the virtual time as a span.
func (w *World) at() time.Duration { return time.Duration(w.now) }
