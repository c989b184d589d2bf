package openai

import (
	"math"
	"net/http"

	"ieg"
)

// defaultTokens is max_tokens of /v1/completions when it is not given.
const defaultTokens = 16

// completions serves /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request, f *fields) error {
	received := s.node.Now()
	asked := f.text("model", MaxIDBytes)
	if err := f.check(); err != nil {
		return err
	}
	m, err := s.model(asked)
	if err != nil {
		return err
	}
	if !m.Generative {
		return bad("model", "%s makes embeddings, no text; use /v1/embeddings", m.Name)
	}
	opt := s.common(r, f, m)
	if opt.maxTokens == 0 {
		opt.maxTokens = max(defaultTokens, int64(opt.sampling.MinTokens))
	}
	opt.sampling.Logprobs = int32(f.whole("logprobs", 0, MaxLogprobs, -1))
	opt.sampling.Grammar = constraint(f)
	f.refuse("suffix", "the prompt is completed at its end only")
	echo := f.boolean("echo", false)
	if echo && opt.sampling.Logprobs >= 0 {
		f.fail(unsupported("logprobs", "logprobs with echo is not supported here: log-probabilities are reported for generated tokens only"))
	}
	inputs := promptInputs(f, "prompt", m, MaxChoices)
	if len(inputs)*opt.n > MaxChoices {
		f.fail(bad("n", "%d prompts with n %d are more than %d choices", len(inputs), opt.n, MaxChoices))
	}
	special, add := f.boolean("parse_special", true), f.boolean("add_special_tokens", true)
	if err := f.check(); err != nil {
		return err
	}
	x := s.newExchange(w, r, m, opt, "cmpl-", asked)
	for _, in := range inputs {
		if err := s.addPrompt(x, in, received, special, add); err != nil {
			return err
		}
		if echo {
			text, err := s.echoed(r, m, in)
			if err != nil {
				return err
			}
			x.echo = append(x.echo, text)
		}
	}
	if opt.stream {
		x.out = newStream(x, false)
	} else {
		x.out = newWhole(x, false)
	}
	return x.run()
}

// addPrompt adds the request of one prompt.
func (s *Server) addPrompt(x *exchange, in promptInput, received ieg.Time, special, add bool) error {
	toks, now := in.tokens, s.node.Now()
	span := ieg.Span{Start: now, End: now}
	if toks == nil {
		var err error
		toks, span, err = s.tokens(x.r.Context(), x.m, plainParts(x.m, in.text, special, add))
		if err != nil {
			return err
		}
	}
	most, err := fit(x.m, "prompt", len(toks), x.opt.maxTokens)
	if err != nil {
		return err
	}
	x.add(toks, span, received, most, nil)
	return nil
}

// echoed is the text of a prompt.
func (s *Server) echoed(r *http.Request, m *Model, in promptInput) (string, error) {
	if in.tokens == nil {
		return in.text, nil
	}
	return s.node.Detokenize(r.Context(), m.Name, in.tokens)
}

// tokenize serves /tokenize, for a prompt or for messages.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request, f *fields) error {
	m, err := s.askedModel(f)
	if err != nil {
		return err
	}
	var parts []Part
	if f.has("messages") {
		use := tools(f)
		p, err := s.render(f, m, &use)
		if err != nil {
			return err
		}
		parts = p.parts
	} else {
		text := f.text("prompt", MaxPromptBytes)
		if !f.has("prompt") {
			f.fail(bad("prompt", "prompt or messages is missing"))
		}
		parts = plainParts(m, text, f.boolean("parse_special", true), f.boolean("add_special_tokens", true))
	}
	names := f.boolean("return_token_strs", false)
	if err := f.check(); err != nil {
		return err
	}
	toks := []ieg.Token{}
	if len(parts) > 0 {
		if toks, _, err = s.tokens(r.Context(), m, parts); err != nil {
			return err
		}
	}
	body := struct {
		Count   int         `json:"count"`
		Max     int32       `json:"max_model_len"`
		Tokens  []ieg.Token `json:"tokens"`
		Strings []string    `json:"token_strs"`
	}{Count: len(toks), Max: m.Context, Tokens: toks}
	if names {
		body.Strings = []string{}
		for i := range toks {
			text, err := s.node.Detokenize(r.Context(), m.Name, toks[i:i+1])
			if err != nil {
				return err
			}
			body.Strings = append(body.Strings, text)
		}
	}
	writeJSON(w, http.StatusOK, body)
	return nil
}

func (s *Server) askedModel(f *fields) (*Model, error) {
	asked := f.text("model", MaxIDBytes)
	if err := f.check(); err != nil {
		return nil, err
	}
	return s.model(asked)
}

// detokenize serves /detokenize.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request, f *fields) error {
	m, err := s.askedModel(f)
	if err != nil {
		return err
	}
	if !f.has("tokens") {
		f.fail(bad("tokens", "tokens is missing"))
	}
	toks := tokenList(f, "tokens", math.MaxInt32, m)
	if err := f.check(); err != nil {
		return err
	}
	text := ""
	if len(toks) > 0 {
		if text, err = s.node.Detokenize(r.Context(), m.Name, toks); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": text})
	return nil
}
