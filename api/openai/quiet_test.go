package openai

import (
	"context"

	"ieg"
)

// quiet is a Node that tokenises bytes and ends requests at once.
type quiet struct{ model Model }

func (q *quiet) Models() []Model { return []Model{q.model} }
func (q *quiet) Now() ieg.Time   { return 1 }

func (q *quiet) tokens(parts []Part) (out []ieg.Token) {
	for _, p := range parts {
		for _, b := range []byte(p.Text) {
			out = append(out, ieg.Token(b))
		}
	}
	return out
}

func (q *quiet) Submit(r *ieg.Request, s Sink) (Handle, error) {
	for c := range int32(r.N) {
		res := ieg.SeqResult{Sampled: r.Kind == ieg.Generate, Stop: ieg.StopEnd, Text: []byte("ok")}
		if r.Kind == ieg.Embed {
			res = ieg.SeqResult{Vector: []float32{1, 2}}
		}
		s.Parse(c, &res)
		s.Emit(c, &res)
		s.Finish(ieg.Finish{Choice: c, Reason: ieg.StopEnd})
	}
	s.Finish(ieg.Finish{Choice: ieg.AllChoices, Reason: ieg.StopEnd, Usage: ieg.Usage{Prompt: int32(len(r.Prompt)), Generated: int32(r.N)}})
	return quietHandle{}, nil
}

type quietHandle struct{}

func (quietHandle) ID() ieg.RequestID             { return 1 }
func (quietHandle) Cancel(ieg.StopReason, string) {}
func (quietHandle) Resume()                       {}
func (quietHandle) Delivered(ieg.Span)            {}

func newQuiet() *Server {
	q := &quiet{}
	q.model.Name, q.model.Generative, q.model.Embedding, q.model.Vocab, q.model.Context, q.model.Ready = "m", true, true, 300, 4096, true
	q.model.ControlText = []string{"<|im_start|>", "<|im_end|>"}
	return New(Config{Loopback: true}, q)
}

func (q *quiet) Tokenize(_ context.Context, _ string, parts []Part) ([]ieg.Token, error) {
	return q.tokens(parts), nil
}

func (q *quiet) Detokenize(_ context.Context, _ string, toks []ieg.Token) (string, error) {
	b := make([]byte, len(toks))
	for i, t := range toks {
		b[i] = byte(t)
	}
	return string(b), nil
}
