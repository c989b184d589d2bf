package openai

import "ieg"

// whole is an exchange that leaves as one JSON document.
type whole struct {
	x       *exchange
	chat    bool
	choices []choiceWhole
}

// choiceWhole gathers a choice.
type choiceWhole struct {
	text, reasoning []byte
	calls           []callWhole
	logprobs        []logprob
	tokens          []ieg.Token
	end             *ending
}

type callWhole struct {
	id   string
	name []byte
	args []byte
}

func newWhole(x *exchange, chat bool) *whole {
	return &whole{x: x, chat: chat, choices: make([]choiceWhole, len(x.requests)*x.opt.n)}
}

func (h *whole) take(b *batch, r *record) {
	c := &h.choices[r.choice]
	switch r.kind {
	case recContent:
		c.text = append(c.text, b.textOf(r)...)
	case recReasoning:
		c.reasoning = append(c.reasoning, b.textOf(r)...)
	case recToolStart:
		c.calls = append(c.calls, callWhole{id: h.x.callID(), name: append([]byte(nil), b.textOf(r)...)})
	case recToolArgs:
		if n := len(c.calls); n > 0 {
			c.calls[n-1].args = append(c.calls[n-1].args, b.textOf(r)...)
		}
	case recFinish:
		c.end = r.end
	}
	if r.extra != nil {
		c.logprobs = append(c.logprobs, r.extra.logprobs...)
		c.tokens = append(c.tokens, r.extra.tokens...)
	}
}

func (h *whole) flush() error { return nil }
func (h *whole) idle() error  { return nil }

func (h *whole) fail(e *apiError) { e.write(h.x.w) }

// finish writes the document.
func (h *whole) finish() error {
	x := h.x
	object := "text_completion"
	if h.chat {
		object = "chat.completion"
	}
	b := append([]byte(nil), `{"id":`...)
	b = appendString(b, x.id)
	b = append(b, `,"object":"`+object+`","created":`...)
	b = appendTime(b, x.created)
	b = append(b, `,"model":`...)
	b = appendString(b, x.model)
	b = append(b, `,"choices":[`...)
	for i := range h.choices {
		if i > 0 {
			b = append(b, ',')
		}
		b = h.choice(b, int32(i))
	}
	b = append(b, `],"usage":`...)
	b = x.usage.append(b)
	b = append(b, `,"system_fingerprint":`...)
	b = appendNullable(b, fingerprint(x.m))
	if h.chat && x.opt.returnIDs {
		b = append(b, `,"prompt_token_ids":`...)
		b = appendInts(b, x.requests[0].Prompt)
	}
	if x.s.cfg.ReportMetrics {
		b = append(b, `,"metrics":`...)
		b = appendMetrics(b, &x.times, x.usage.generated)
	}
	return x.send(append(b, "}\n"...))
}

// send writes a whole JSON answer and reports the delivery.
func (x *exchange) send(b []byte) error {
	x.w.Header().Set("Content-Type", "application/json")
	span := ieg.Span{Start: x.s.node.Now()}
	if _, err := x.w.Write(b); err != nil {
		return err
	}
	span.End = x.s.node.Now()
	x.delivered(span)
	return nil
}

func fingerprint(m *Model) string {
	if len(m.Digest) < 10 {
		return ""
	}
	return "fp_" + m.Digest[:10]
}

func (h *whole) choice(b []byte, i int32) []byte {
	c, x := &h.choices[i], h.x
	req := int(i) / x.opt.n
	b = append(b, `{"index":`...)
	b = appendInt(b, i)
	if h.chat {
		b = c.message(append(b, `,"message":`...))
	} else {
		echo := ""
		if req < len(x.echo) {
			echo = x.echo[req]
		}
		b = append(b, `,"text":"`...)
		b = appendText(b, echo)
		b = appendText(b, c.text)
		b = append(b, '"')
	}
	b = append(b, `,"logprobs":`...)
	switch {
	case x.opt.sampling.Logprobs < 0:
		b = append(b, "null"...)
	case h.chat:
		b = append(b, `{"content":[`...)
		b = x.appendChatLogprobs(b, c.logprobs)
		b = append(b, "]}"...)
	default:
		b, _ = x.appendTextLogprobs(b, c.logprobs, 0)
	}
	if x.opt.returnIDs {
		b = append(b, `,"token_ids":`...)
		b = appendInts(b, c.tokens)
		if !h.chat {
			b = append(b, `,"prompt_token_ids":`...)
			b = appendInts(b, x.requests[req].Prompt)
		}
	}
	b = append(b, `,"finish_reason":"`...)
	b = append(b, finishReason(c.end)...)
	b = append(b, `","stop_reason":`...)
	b = appendStopReason(b, c.end)
	return append(b, '}')
}

func (c *choiceWhole) message(b []byte) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if len(c.text) == 0 && len(c.calls) > 0 {
		b = append(b, "null"...)
	} else {
		b = appendString(b, c.text)
	}
	b = append(b, `,"refusal":null`...)
	if len(c.reasoning) > 0 {
		b = append(b, `,"reasoning":`...)
		b = appendString(b, c.reasoning)
		b = append(b, `,"reasoning_content":`...)
		b = appendString(b, c.reasoning)
	}
	if len(c.calls) > 0 {
		b = append(b, `,"tool_calls":[`...)
		for i := range c.calls {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, `{"id":`...)
			b = appendString(b, c.calls[i].id)
			b = append(b, `,"type":"function","function":{"name":`...)
			b = appendString(b, c.calls[i].name)
			b = append(b, `,"arguments":`...)
			b = appendString(b, c.calls[i].args)
			b = append(b, "}}"...)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}
