package openai

import (
	"net/http"

	"ieg"
)

// stream is an exchange that leaves as server-sent events.
type stream struct {
	x       *exchange
	chat    bool
	rc      *http.ResponseController
	buf     []byte
	head    []byte // of a chunk, up to the choice's index
	usage   string // of a chunk that has none: ,"usage":null or nothing
	choices []choiceOut
	started bool // status and headers have left
	first   ieg.Time
	sent    int32 // tokens generated when the current record was made
}

// choiceOut is the writing side of a choice.
type choiceOut struct {
	begun  bool
	offset int // bytes of text so far, for text_offset
}

func newStream(x *exchange, chat bool) *stream {
	st := &stream{x: x, chat: chat, rc: http.NewResponseController(x.w), choices: make([]choiceOut, len(x.requests)*x.opt.n)}
	object := "text_completion"
	if chat {
		object = "chat.completion.chunk"
	}
	st.head = append(st.head, `data: {"id":`...)
	st.head = appendString(st.head, x.id)
	st.head = append(st.head, `,"object":"`+object+`","created":`...)
	st.head = appendTime(st.head, x.created)
	st.head = append(st.head, `,"model":`...)
	st.head = appendString(st.head, x.model)
	st.head = append(st.head, `,"choices":[`...)
	if x.opt.includeUsage {
		st.usage = `,"usage":null`
	}
	return st
}

// take adds the chunks of one record.
func (st *stream) take(b *batch, r *record) {
	c := &st.choices[r.choice]
	st.sent = r.generated
	if !c.begun {
		c.begun = true
		st.begin(r.choice)
	}
	switch r.kind {
	case recContent:
		st.text(r, b.textOf(r))
	case recReasoning:
		st.open(r.choice)
		st.buf = append(st.buf, `"delta":{"reasoning":"`...)
		from := len(st.buf)
		st.buf = appendText(st.buf, b.textOf(r))
		to := len(st.buf)
		st.buf = append(st.buf, `","reasoning_content":"`...)
		st.buf = append(st.buf, st.buf[from:to]...)
		st.buf = append(st.buf, `"}`...)
		st.close(r, nil)
	case recToolStart:
		st.call(r)
		st.buf = append(st.buf, `"id":`...)
		st.buf = appendString(st.buf, st.x.callID())
		st.buf = append(st.buf, `,"type":"function","function":{"name":`...)
		st.buf = appendString(st.buf, b.textOf(r))
		st.buf = append(st.buf, `,"arguments":""}}]}`...)
		st.close(r, nil)
	case recToolArgs:
		st.call(r)
		st.buf = append(st.buf, `"function":{"arguments":`...)
		st.buf = appendString(st.buf, b.textOf(r))
		st.buf = append(st.buf, `}}]}`...)
		st.close(r, nil)
	case recFinish:
		st.open(r.choice)
		st.empty()
		st.close(r, r.end)
	}
}

// text is the hot path: one token's text.
func (st *stream) text(r *record, text []byte) {
	st.open(r.choice)
	if st.chat {
		st.buf = append(st.buf, `"delta":{"content":"`...)
		st.buf = appendText(st.buf, text)
		st.buf = append(st.buf, `"}`...)
	} else {
		st.buf = append(st.buf, `"text":"`...)
		st.buf = appendText(st.buf, text)
		st.buf = append(st.buf, '"')
	}
	st.close(r, nil)
}

// begin is the first chunk of a choice: the role, the echoed prompt, and the
// prompt's tokens.
func (st *stream) begin(choice int32) {
	x := st.x
	req := int(choice) / x.opt.n
	echo := ""
	if req < len(x.echo) {
		echo = x.echo[req]
	}
	if !st.chat && echo == "" && !x.opt.returnIDs {
		return
	}
	st.open(choice)
	if st.chat {
		st.buf = append(st.buf, `"delta":{"role":"assistant","content":""}`...)
	} else {
		st.buf = append(st.buf, `"text":`...)
		st.buf = appendString(st.buf, echo)
		st.choices[choice].offset = len(echo)
	}
	if x.opt.returnIDs {
		st.buf = append(st.buf, `,"prompt_token_ids":`...)
		st.buf = appendInts(st.buf, x.requests[req].Prompt)
	}
	st.close(&record{choice: choice, generated: st.sent}, nil)
}

// open begins a chunk; its choice's fields follow, and then close.
func (st *stream) open(choice int32) {
	st.buf = append(st.buf, st.head...)
	st.buf = append(st.buf, `{"index":`...)
	st.buf = appendInt(st.buf, choice)
	st.buf = append(st.buf, ',')
}

func (st *stream) empty() {
	if st.chat {
		st.buf = append(st.buf, `"delta":{}`...)
	} else {
		st.buf = append(st.buf, `"text":""`...)
	}
}

func (st *stream) call(r *record) {
	st.open(r.choice)
	st.buf = append(st.buf, `"delta":{"tool_calls":[{"index":`...)
	st.buf = appendInt(st.buf, r.call)
	st.buf = append(st.buf, ',')
}

// close ends a chunk with what goes beside the text. end is set in the last
// chunk of a choice.
func (st *stream) close(r *record, end *ending) {
	st.buf = append(st.buf, `,"logprobs":`...)
	switch {
	case r.extra == nil || len(r.extra.logprobs) == 0:
		st.buf = append(st.buf, "null"...)
	case st.chat:
		st.buf = append(st.buf, `{"content":[`...)
		st.buf = st.x.appendChatLogprobs(st.buf, r.extra.logprobs)
		st.buf = append(st.buf, "]}"...)
	default:
		c := &st.choices[r.choice]
		st.buf, c.offset = st.x.appendTextLogprobs(st.buf, r.extra.logprobs, c.offset)
	}
	if end == nil {
		st.buf = append(st.buf, `,"finish_reason":null`...)
	} else {
		st.buf = append(st.buf, `,"finish_reason":"`...)
		st.buf = append(st.buf, finishReason(end)...)
		st.buf = append(st.buf, `","stop_reason":`...)
		st.buf = appendStopReason(st.buf, end)
	}
	if r.extra != nil && len(r.extra.tokens) > 0 {
		st.buf = append(st.buf, `,"token_ids":`...)
		st.buf = appendInts(st.buf, r.extra.tokens)
	}
	st.buf = append(st.buf, "}]"...)
	if st.x.opt.usageInChunks {
		st.buf = st.runningUsage(append(st.buf, `,"usage":`...), r.generated)
	} else {
		st.buf = append(st.buf, st.usage...)
	}
	st.buf = append(st.buf, "}\n\n"...)
}

// runningUsage appends what has been used so far; what was cached is known
// at the end.
func (st *stream) runningUsage(b []byte, generated int32) []byte {
	prompt := int32(0)
	for _, r := range st.x.requests {
		prompt += int32(len(r.Prompt))
	}
	b = append(b, `{"prompt_tokens":`...)
	b = appendInt(b, prompt)
	b = append(b, `,"completion_tokens":`...)
	b = appendInt(b, generated)
	b = append(b, `,"total_tokens":`...)
	b = appendInt(b, prompt+generated)
	return append(b, '}')
}

// flush writes all chunks in one write.
func (st *stream) flush() error {
	if len(st.buf) == 0 {
		return nil
	}
	st.start()
	_, err := st.x.w.Write(st.buf)
	if err == nil {
		err = st.rc.Flush()
	}
	st.buf = st.buf[:0]
	return err
}

func (st *stream) start() {
	if st.started {
		return
	}
	st.started = true
	st.first = st.x.s.node.Now()
	h := st.x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	st.x.w.WriteHeader(http.StatusOK)
}

// idle shows the client, and proxies between, that the stream lives.
func (st *stream) idle() error {
	st.buf = append(st.buf, ": keep-alive\n\n"...)
	return st.flush()
}

// fail sends a plain error while that is possible, else an error event.
func (st *stream) fail(e *apiError) {
	if !st.started {
		e.write(st.x.w)
		return
	}
	st.buf = append(st.buf, "data: "...)
	st.buf = e.append(st.buf)
	st.buf = append(st.buf, "\n\ndata: [DONE]\n\n"...)
	_ = st.flush() // the request has failed already
}

func (st *stream) finish() error {
	x := st.x
	if x.opt.includeUsage {
		st.buf = append(st.buf, st.head...)
		st.buf = append(st.buf, `],"usage":`...)
		st.buf = x.usage.append(st.buf)
		if x.s.cfg.ReportMetrics {
			st.buf = append(st.buf, `,"metrics":`...)
			st.buf = appendMetrics(st.buf, &x.times, x.usage.generated)
		}
		st.buf = append(st.buf, "}\n\n"...)
	}
	st.buf = append(st.buf, "data: [DONE]\n\n"...)
	if err := st.flush(); err != nil {
		return err
	}
	x.delivered(ieg.Span{Start: st.first, End: x.s.node.Now()})
	return nil
}
