package openai

import (
	"bytes"
	"slices"

	"ieg"
	"ieg/api/parse"
)

var _ Sink = (*sink)(nil)

// sink takes the output of one request of a response.
type sink struct {
	box     *box
	request int   // index among the response's requests
	first   int32 // the response's number of this request's choice 0
	ended   int   // choices that have ended
	choices []choiceIn
	// keep tokens, log-probabilities.
	tokens bool
	// stopTokens are the client's.
	stopTokens []ieg.Token
	// hidden are the control tokens that the engine shows for the parser's
	// sake only: the one that ended the text is cut off.
	hidden []string
}

// choiceIn is the reading side of a choice; only the loop touches it.
type choiceIn struct {
	parser    *parse.Parser // nil: the text is the content
	events    []parse.Event // of the result that is being emitted
	calls     int
	thinking  bool
	reasoning int32
	stopText  string
	stopToken ieg.Token
	extra     *extra
}

// Parse feeds the parser of the choice.
func (s *sink) Parse(choice int32, r *ieg.SeqResult) (done bool) {
	c := &s.choices[choice]
	if c.parser == nil {
		return false
	}
	final := r.Stop != ieg.NotStopped
	text := r.Text
	if r.Stop == ieg.StopEnd && r.StopText == "" {
		text = s.cutControl(text)
	}
	c.events, done = c.parser.Feed(text, final)
	return done && !final
}

func (s *sink) cutControl(text []byte) []byte {
	for _, t := range s.hidden {
		if rest, ok := bytes.CutSuffix(text, []byte(t)); ok {
			return rest
		}
	}
	return text
}

// Emit queues the result.
func (s *sink) Emit(choice int32, r *ieg.SeqResult) (backlog int) {
	c := &s.choices[choice]
	c.note(s, r)
	b := s.box
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Sampled {
		b.sent++
	}
	rec := record{choice: s.first + choice, generated: b.sent}
	switch {
	case r.Vector != nil:
		rec.kind, rec.vector = recVector, slices.Clone(r.Vector)
		put(b, rec, "")
	case c.parser == nil:
		if len(r.Text) > 0 {
			rec.extra, c.extra = c.extra, nil
			put(b, rec, r.Text)
		}
	default:
		s.putEvents(c, rec)
	}
	b.ring()
	return b.backlog()
}

// note keeps what is told at the end of the choice, or with the next text.
func (c *choiceIn) note(s *sink, r *ieg.SeqResult) {
	if r.Stop == ieg.StopEnd {
		c.stopText = r.StopText
		if r.StopText == "" && slices.Contains(s.stopTokens, r.Token) {
			c.stopToken = r.Token
		}
	}
	for i := range c.events {
		switch e := &c.events[i]; {
		case e.Kind == parse.Reasoning:
			c.thinking = true
		case e.Kind == parse.ToolEnd && e.Complete:
			c.calls++
			c.thinking = false
		default:
			c.thinking = false
		}
	}
	if r.Sampled && c.thinking {
		c.reasoning++
	}
	if !r.Sampled || !s.tokens && r.Logprob == nil {
		return
	}
	if c.extra == nil {
		c.extra = &extra{}
	}
	if s.tokens {
		c.extra.tokens = append(c.extra.tokens, r.Token)
	}
	if r.Logprob != nil {
		c.extra.logprobs = append(c.extra.logprobs, copyLogprob(r.Logprob))
	}
}

func copyLogprob(l *ieg.Logprob) logprob {
	one := func(t *ieg.TokenLogprob) tokenText {
		return tokenText{t.Token, t.Logprob, slices.Clone(t.Bytes)}
	}
	out := logprob{chosen: one(&l.Chosen)}
	for i := range l.Top {
		out.top = append(out.top, one(&l.Top[i]))
	}
	return out
}

var eventKinds = [...]recKind{
	parse.Content: recContent, parse.Reasoning: recReasoning,
	parse.ToolStart: recToolStart, parse.ToolArgs: recToolArgs, parse.ToolEnd: recToolEnd,
}

// putEvents queues what the parser made of the text.
func (s *sink) putEvents(c *choiceIn, rec record) {
	for i := range c.events {
		e := &c.events[i]
		if e.Kind == parse.ToolEnd && !e.Complete {
			continue
		}
		text := e.Text
		if e.Kind == parse.ToolStart {
			text = e.Name
		}
		rec.kind, rec.call = eventKinds[e.Kind], int32(e.Index)
		rec.extra, c.extra = c.extra, nil
		put(s.box, rec, text)
	}
	c.events = nil
}

// Finish queues the end of a choice or of the request.
func (s *sink) Finish(f ieg.Finish) {
	b := s.box
	b.mu.Lock()
	defer b.mu.Unlock()
	end := &ending{finish: f, request: s.request, stopToken: -1}
	rec := record{kind: recEnd, generated: b.sent, end: end}
	if f.Choice != ieg.AllChoices {
		c := &s.choices[f.Choice]
		s.ended++
		end.partial = f.Reason == ieg.StopLimit && b.sent > 0
		rec.kind, rec.choice = recFinish, s.first+f.Choice
		end.stopText, end.stopToken, end.calls, end.reasoning = c.stopText, c.stopToken, c.calls, c.reasoning
		rec.extra, c.extra = c.extra, nil
		if c.parser != nil && (f.Reason.Success() || end.partial) {
			// Nothing is left if the last result said that it was the last.
			c.events, _ = c.parser.Feed(nil, true)
			s.putEvents(c, record{choice: rec.choice, generated: b.sent})
		}
	}
	if f.Choice == ieg.AllChoices {
		end.partial = f.Reason == ieg.StopLimit && b.sent > 0 && s.ended == len(s.choices)
	}
	put(b, rec, "")
	b.ring()
}
