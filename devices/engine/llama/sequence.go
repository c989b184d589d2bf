package llama

import (
	"fmt"
	"slices"

	"ieg"
	"ieg/devices/engine/llama/sample"
	"ieg/devices/engine/llama/text"
)

// sequence is the engine's state of one sequence beside its KV.
type sequence struct {
	id     ieg.SeqID
	par    ieg.Sampling
	tokens []ieg.Token // known: prompt and drawn
	prompt int
	most   int // drawn tokens at most
	embed  bool
	// bad says why the sequence can't be sampled; its first draw ends it.
	bad error

	sampler *sample.Sampler
	text    *text.Stream
	guard   *guard
	// held lists what is not drawn until MinTokens, or ever with IgnoreEOS.
	early, always []ieg.Token
}

// newSequence describes a sequence and replays its drawn tokens.
func (r *Runner) newSequence(s *ieg.SeqStart) (*sequence, error) {
	if s.Prompt < 0 || int(s.Prompt) > len(s.Tokens) || len(s.Tokens) == 0 {
		return nil, fmt.Errorf("sequence %d: %d of its %d tokens are the prompt", s.Seq, s.Prompt, len(s.Tokens))
	}
	for i, t := range s.Tokens {
		if !r.vocab.valid(t) {
			return nil, fmt.Errorf("sequence %d: token %d at %d; the vocabulary has %d", s.Seq, t, i, r.vocab.n)
		}
	}
	q := &sequence{id: s.Seq, par: s.Sampling, prompt: int(s.Prompt), most: int(s.MaxTokens), embed: s.Embed}
	if s.Embed {
		q.tokens = s.Tokens
		return q, nil
	}
	room := min(max(q.most, 0), int(r.info.SlotTokens))
	q.tokens = append(make([]ieg.Token, 0, q.prompt+room+1), s.Tokens[:s.Prompt]...)
	q.sampler = sample.New(s.Sampling)
	q.sampler.Prompt(q.tokens)
	q.text = text.New(s.Sampling.Stop, s.Sampling.IncludeStop)
	if q.guard, q.bad = r.grammars.guard(r.vocab, &q.par); q.bad != nil {
		q.guard = nil
	}
	if q.par.IgnoreEOS {
		q.always = r.vocab.eog
	}
	q.early = append(slices.Clone(r.vocab.eog), q.par.StopTokens...)
	for _, t := range s.Tokens[s.Prompt:] {
		q.take(r.vocab, t)
	}
	return q, nil
}

// drawn is the number of tokens drawn so far.
func (q *sequence) drawn() int { return len(q.tokens) - q.prompt }

// suppressed lists the tokens that must not be drawn next.
func (q *sequence) suppressed() []ieg.Token {
	if q.drawn() < int(q.par.MinTokens) {
		return q.early
	}
	return q.always
}

// take adds a drawn token to all histories. It returns the text to show and
// why the sequence ends, if it does.
func (q *sequence) take(v *vocab, t ieg.Token) (shown []byte, stop ieg.StopReason, stopText string) {
	q.tokens = append(q.tokens, t)
	q.sampler.Accept(t)
	if q.guard != nil {
		q.guard.take(t)
	}
	early := q.drawn() < int(q.par.MinTokens)
	if !early && (slices.Contains(q.par.StopTokens, t) || v.end[t] && !q.par.IgnoreEOS) {
		if q.par.IncludeStop {
			shown, stopText = q.text.Push(v.shown(t, q.par.KeepSpecial), true)
		}
		return shown, ieg.StopEnd, stopText
	}
	shown, stopText = q.text.Push(v.shown(t, q.par.KeepSpecial), !early)
	switch {
	case stopText != "":
		stop = ieg.StopEnd
	case q.guard != nil && q.guard.ended():
		stop = ieg.StopEnd
	case q.guard != nil && q.guard.lost():
		stop = ieg.StopError
	case q.drawn() >= q.most:
		stop = ieg.StopLength
	}
	return shown, stop, stopText
}
