package openai

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"net/http"
	"strconv"

	"ieg"
)

// embeddings serves /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request, f *fields) error {
	received := s.node.Now()
	asked := f.text("model", MaxIDBytes)
	if err := f.check(); err != nil {
		return err
	}
	m, err := s.embedder(asked)
	if err != nil {
		return err
	}
	opt := common{n: 1, class: classOf(r, f, false), tenant: f.text("cache_salt", MaxIDBytes), requestID: r.Header.Get("X-Request-Id")}
	e := &embedding{
		base64: f.oneOf("encoding_format", "float", "float", "base64") == "base64",
		size:   int(f.whole("dimensions", 1, math.MaxInt32, 0)),
	}
	f.text("user", MaxIDBytes)
	inputs := promptInputs(f, "input", m, MaxInputs)
	add := f.boolean("add_special_tokens", true)
	if e.size > m.DModel && m.DModel > 0 {
		f.fail(bad("dimensions", "dimensions is %d, %s has %d", e.size, m.Name, m.DModel))
	}
	if err := f.check(); err != nil {
		return err
	}
	x := s.newExchange(w, r, m, opt, "embd-", asked)
	e.x = x
	for i, in := range inputs {
		if err := s.addInput(x, i, in, received, add); err != nil {
			return err
		}
	}
	e.vectors = make([][]float32, len(x.requests))
	x.out = e
	return x.runWindow(EmbedWindow)
}

// embedder finds the model; a missing name is the first that embeds.
func (s *Server) embedder(asked string) (*Model, error) {
	if asked == "" {
		for _, m := range s.node.Models() {
			if m.Ready && m.Embedding {
				return &m, nil
			}
		}
	}
	m, err := s.model(asked)
	if err == nil && !m.Embedding {
		err = bad("model", "%s makes no embeddings; load an embedding model", m.Name)
	}
	return m, err
}

func (s *Server) addInput(x *exchange, i int, in promptInput, received ieg.Time, add bool) error {
	name := "input[" + strconv.Itoa(i) + "]"
	toks, now := in.tokens, s.node.Now()
	span := ieg.Span{Start: now, End: now}
	if toks == nil {
		if in.text == "" {
			return bad(name, "%s is empty", name)
		}
		var err error
		toks, span, err = s.tokens(x.r.Context(), x.m, plainParts(x.m, in.text, false, add))
		if err != nil {
			return err
		}
	}
	if len(toks) == 0 {
		return bad(name, "%s has no tokens", name)
	}
	if int64(len(toks)) > int64(x.m.Context) {
		return tooLongInput(x.m, name, len(toks))
	}
	x.add(toks, span, received, 0, nil)
	x.requests[i].Kind = ieg.Embed
	return nil
}

// runWindow is run with at most window requests in the kernel at once. When
// the queue is full the next one waits for one of our own to end.
func (x *exchange) runWindow(window int) error {
	defer x.box.close()
	x.open = len(x.requests)
	next, live := 0, 0
	for x.open > 0 {
		for next < len(x.requests) && live < window {
			h, err := x.s.node.Submit(x.requests[next], x.sinkFor(next))
			if errors.Is(err, ieg.ErrBusy) && live > 0 {
				break
			}
			if err != nil {
				x.cancel(ieg.StopCancel, "another input of the same call was refused")
				return err
			}
			x.handles = append(x.handles, h)
			next, live = next+1, live+1
		}
		select {
		case <-x.r.Context().Done():
			x.cancel(ieg.StopCancel, "the client went away")
			return errGone
		case <-x.box.wake:
		}
		before := x.open
		if e := x.drain(); e != nil {
			x.cancel(ieg.StopCancel, "another input of the same call failed")
			return e
		}
		live -= before - x.open
	}
	if err := x.out.finish(); err != nil {
		return asFailure(err)
	}
	return nil
}

// asFailure keeps errors for the client; those of its connection are errGone.
func asFailure(err error) error {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	return errGone
}

// embedding gathers vectors.
type embedding struct {
	x       *exchange
	base64  bool
	size    int // 0: whole vectors
	vectors [][]float32
}

func (e *embedding) take(_ *batch, r *record) {
	if r.kind == recVector {
		e.vectors[r.choice] = r.vector
	}
}

func (e *embedding) flush() error     { return nil }
func (e *embedding) idle() error      { return nil }
func (e *embedding) fail(a *apiError) { a.write(e.x.w) }

func (e *embedding) finish() error {
	b := append([]byte(nil), `{"object":"list","data":[`...)
	for i, v := range e.vectors {
		if len(v) == 0 {
			return fault(http.StatusInternalServerError, "internal_server_error", "internal_error", "the engine returned no vector for input %d", i)
		}
		if e.size > len(v) {
			return bad("dimensions", "dimensions is %d, %s has %d", e.size, e.x.m.Name, len(v))
		}
		if e.size > 0 && e.size < len(v) {
			v = shorten(v, e.size)
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"object":"embedding","index":`...)
		b = appendInt(b, int32(i))
		b = append(b, `,"embedding":`...)
		b = e.vector(b, v)
		b = append(b, '}')
	}
	b = append(b, `],"model":`...)
	b = appendString(b, e.x.model)
	b = append(b, `,"id":`...)
	b = appendString(b, e.x.id)
	b = append(b, `,"created":`...)
	b = appendTime(b, e.x.created)
	b = append(b, `,"usage":{"prompt_tokens":`...)
	b = appendInt(b, e.x.usage.prompt)
	b = append(b, `,"total_tokens":`...)
	b = appendInt(b, e.x.usage.prompt)
	return e.x.send(append(b, "}}\n"...))
}

func (e *embedding) vector(b []byte, v []float32) []byte {
	if e.base64 {
		raw := make([]byte, 0, 4*len(v))
		for _, f := range v {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(f))
		}
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, raw)
		return append(b, '"')
	}
	b = append(b, '[')
	for i, f := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendFloat(b, float64(f), 'g', -1, 32)
	}
	return append(b, ']')
}

// shorten keeps the first n dimensions and scales to length 1.
func shorten(v []float32, n int) []float32 {
	out := append([]float32(nil), v[:n]...)
	sum := 0.0
	for _, f := range out {
		sum += float64(f) * float64(f)
	}
	if norm := math.Sqrt(sum); norm > 0 {
		for i := range out {
			out[i] = float32(float64(out[i]) / norm)
		}
	}
	return out
}
