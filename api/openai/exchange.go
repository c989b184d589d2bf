package openai

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"ieg"
	"ieg/api/parse"
)

// exchange is one response in the making: the requests behind it, the buffer
// between them and the client, and the form of the output.
type exchange struct {
	s   *Server
	w   http.ResponseWriter
	r   *http.Request
	m   *Model
	opt common
	// id and model are shown to the client; echo is put before the text of a
	// request's choices.
	id      string
	model   string
	created int64
	echo    []string
	parser  parse.Config // zero: none
	format  string       // of tool calls, decides their ids
	// hideThoughts drops the reasoning.
	hideThoughts bool
	// hidden: see sink.
	hidden []string

	box      *box
	requests []*ieg.Request
	handles  []Handle
	open     int // requests that have not ended
	usage    usage
	times    ieg.RequestTimes // of the first request
	out      output
}

// output is the form in which an exchange leaves.
type output interface {
	// take adds one record.
	take(b *batch, r *record)
	// flush writes what was added; an error means that the client is gone.
	flush() error
	// idle is called when nothing came for a while.
	idle() error
	// fail ends the response with an error, finish with success.
	fail(e *apiError)
	finish() error
}

// usage is the sum over the requests of a response.
type usage struct {
	prompt, cached, generated, reasoning int32
}

func (s *Server) newExchange(w http.ResponseWriter, r *http.Request, m *Model, opt common, prefix, asked string) *exchange {
	if asked == "" {
		asked = m.Name
	}
	w.Header().Set("X-Request-Id", opt.requestID)
	return &exchange{
		s: s, w: w, r: r, m: m, opt: opt, box: newBox(!opt.stream),
		id: prefix + opt.requestID, model: asked, created: s.cfg.Wall().Unix(),
	}
}

// add appends a request for a prompt.
func (x *exchange) add(prompt []ieg.Token, span ieg.Span, received ieg.Time, maxTokens int32, tools []string) {
	req := &ieg.Request{
		Name: x.id, Model: x.m.Name, Class: x.opt.class, Tenant: x.opt.tenant, NoStore: x.opt.noStore,
		Prompt: prompt, N: x.opt.n, Sampling: x.opt.sampling, MaxTokens: maxTokens, Tools: tools,
		Received: received, Tokenize: span, Deadline: x.s.deadline(received),
	}
	if len(x.requests) > 0 {
		req.Name = fmt.Sprintf("%s-%d", x.id, len(x.requests))
	}
	req.Sampling.MinTokens = min(req.Sampling.MinTokens, maxTokens)
	x.requests = append(x.requests, req)
}

func (s *Server) deadline(received ieg.Time) ieg.Time {
	if s.cfg.RequestTimeout == 0 {
		return ieg.Never
	}
	return received.Add(s.cfg.RequestTimeout)
}

// sinkFor makes the sink of request i.
func (x *exchange) sinkFor(i int) *sink {
	sk := &sink{
		box: x.box, request: i, first: int32(i * x.opt.n), choices: make([]choiceIn, x.opt.n),
		tokens: x.opt.returnIDs, stopTokens: x.opt.sampling.StopTokens, hidden: x.hidden,
	}
	parses := x.parser.ToolFormat != "" || x.parser.ReasoningFormat != "" && x.parser.ReasoningFormat != parse.None
	for c := range sk.choices {
		sk.choices[c].stopToken = -1
		if parses {
			sk.choices[c].parser = parse.New(x.parser)
			sk.choices[c].thinking = x.parser.InReasoning
		}
	}
	return sk
}

// submit hands in all requests, or none: an error leaves nothing behind.
func (x *exchange) submit() error {
	for i, req := range x.requests {
		h, err := x.s.node.Submit(req, x.sinkFor(i))
		if err != nil {
			x.cancel(ieg.StopCancel, "another prompt of the same call was refused")
			x.box.close()
			return err
		}
		x.handles = append(x.handles, h)
	}
	x.open = len(x.requests)
	return nil
}

func (x *exchange) cancel(reason ieg.StopReason, why string) {
	for _, h := range x.handles {
		h.Cancel(reason, why)
	}
}

func (x *exchange) resume() {
	for _, h := range x.handles {
		h.Resume()
	}
}

// run moves output to the client until it is complete, failed, or unwanted
// (errGone).
func (x *exchange) run() error {
	if err := x.submit(); err != nil {
		return err
	}
	defer x.box.close()
	ctx := x.r.Context()
	// The client's leaving must reach the kernel even while a write blocks.
	stop := context.AfterFunc(ctx, func() { x.cancel(ieg.StopCancel, x.left()) })
	defer stop()
	quiet := time.NewTimer(x.s.cfg.KeepAlive)
	defer quiet.Stop()
	for x.open > 0 {
		var err error
		select {
		case <-ctx.Done(): // perhaps before the AfterFunc began, which stop then ends
			x.cancel(ieg.StopCancel, x.left())
			return errGone
		case <-quiet.C:
			err = x.out.idle()
		case <-x.box.wake:
			if e := x.drain(); e != nil {
				if ctx.Err() != nil { // then this is only how the request was cancelled
					x.cancel(ieg.StopCancel, x.left())
					return errGone
				}
				stop()
				x.cancel(ieg.StopCancel, "another choice of the same call failed")
				x.s.logFault(x.r, e)
				x.out.fail(e)
				return nil
			}
			err = x.out.flush()
			if x.box.wrote() {
				x.resume()
			}
		}
		if err != nil {
			x.cancel(ieg.StopCancel, x.left())
			return errGone
		}
		quiet.Reset(x.s.cfg.KeepAlive)
	}
	if err := x.out.finish(); err != nil {
		return errGone // the work is done; there is nobody to tell
	}
	return nil
}

// drain formats all that waits.
func (x *exchange) drain() *apiError {
	b, resume, overflow := x.box.take()
	if resume {
		x.resume()
	}
	if overflow {
		return fault(http.StatusInternalServerError, "internal_server_error", "slow_reader", "more than %d bytes of output were not taken", int64(MaxBacklogBytes))
	}
	for i := range b.recs {
		r := &b.recs[i]
		if r.end != nil && !r.end.finish.Reason.Success() && !r.end.partial {
			return failed(&r.end.finish)
		}
		if r.kind == recEnd {
			x.ended(r.end)
			continue
		}
		if r.kind == recFinish {
			x.usage.reasoning += r.end.reasoning
		}
		if r.kind == recReasoning && x.hideThoughts {
			continue
		}
		x.out.take(b, r)
	}
	return nil
}

func (x *exchange) ended(e *ending) {
	x.open--
	u := e.finish.Usage
	x.usage.prompt += u.Prompt
	x.usage.cached += u.Cached
	x.usage.generated += u.Generated
	if e.request == 0 {
		x.times = e.finish.Times
	}
}

// delivered reports the span from the first byte written to the last.
func (x *exchange) delivered(span ieg.Span) {
	for _, h := range x.handles {
		h.Delivered(span)
	}
}

// callID is the id of a new tool call.
func (x *exchange) callID() string {
	id := x.s.newID()
	if x.format == parse.Mistral {
		return id[:mistralID]
	}
	return "call_" + id[:24]
}

// finishReason is OpenAI's word for how a choice ended.
func finishReason(e *ending) string {
	switch {
	case e.finish.Reason == ieg.StopLength, e.partial:
		return "length"
	case e.calls > 0:
		return "tool_calls"
	}
	return "stop"
}

// appendStopReason appends vLLM's stop_reason: a stop string, one of the
// client's stop tokens, or null; or the limit that cut the output.
func appendStopReason(b []byte, e *ending) []byte {
	switch {
	case e.partial && e.finish.Err != nil:
		return appendString(b, e.finish.Err.Error())
	case e.stopText != "":
		return appendString(b, e.stopText)
	case e.stopToken >= 0:
		return appendInt(b, e.stopToken)
	}
	return append(b, "null"...)
}

func (u *usage) append(b []byte) []byte {
	b = append(b, `{"prompt_tokens":`...)
	b = appendInt(b, u.prompt)
	b = append(b, `,"completion_tokens":`...)
	b = appendInt(b, u.generated)
	b = append(b, `,"total_tokens":`...)
	b = appendInt(b, u.prompt+u.generated)
	b = append(b, `,"prompt_tokens_details":{"cached_tokens":`...)
	b = appendInt(b, u.cached)
	b = append(b, `},"completion_tokens_details":{"reasoning_tokens":`...)
	b = appendInt(b, u.reasoning)
	return append(b, "}}"...)
}

// appendMetrics appends vLLM's metrics object.
func appendMetrics(b []byte, t *ieg.RequestTimes, generated int32) []byte {
	ms := func(from, to ieg.Time) float32 {
		if from == 0 || to == 0 || to < from {
			return 0
		}
		return float32(to.Sub(from).Seconds() * 1e3)
	}
	decode := ms(t.FirstToken, t.Last)
	b = append(b, `{"time_to_first_token_ms":`...)
	b = appendFloat(b, ms(t.Received, t.FirstToken))
	b = append(b, `,"generation_time_ms":`...)
	b = appendFloat(b, decode)
	b = append(b, `,"queue_time_ms":`...)
	b = appendFloat(b, ms(t.Arrived, t.Admitted))
	itl, rate := float32(0), float32(0)
	if generated > 1 && decode > 0 {
		itl, rate = decode/float32(generated-1), float32(generated-1)/decode*1e3
	}
	b = append(b, `,"mean_itl_ms":`...)
	b = appendFloat(b, itl)
	b = append(b, `,"tokens_per_second":`...)
	b = appendFloat(b, rate)
	return append(b, '}')
}

// left says why a request whose client is gone ends.
func (x *exchange) left() string {
	if w, ok := x.w.(*patientWriter); ok && w.stalled() {
		return fmt.Sprintf("the client took no output for %v", w.stall)
	}
	return "the client went away"
}
