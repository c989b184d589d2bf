package openai

import (
	"net/http"

	"ieg/api/grammar"
	"ieg/api/parse"
)

// chat serves /v1/chat/completions.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, f *fields) error {
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
	top := int32(f.whole("top_logprobs", 0, MaxLogprobs, 0))
	if f.boolean("logprobs", false) {
		opt.sampling.Logprobs = top
	} else if top > 0 {
		f.fail(bad("top_logprobs", "top_logprobs needs logprobs: true"))
	}
	f.refuse("echo", "a chat's prompt is made by the template")
	f.refuse("audio", "only text is made")
	use := tools(f)
	gbnf := constraint(f)
	if gbnf != "" && len(use.offered) > 0 {
		f.fail(bad("response_format", `a required form of the text can't be combined with tools; set tool_choice to "none" or leave one of them out`))
	}
	showThoughts := f.boolean("include_reasoning", true)
	if err := f.check(); err != nil {
		return err
	}
	p, err := s.render(f, m, &use)
	if err != nil {
		return err
	}
	if err := p.constrain(&opt, &use, gbnf); err != nil {
		return err
	}
	prompt, span, err := s.tokens(r.Context(), m, p.parts)
	if err != nil {
		return err
	}
	most, err := fit(m, "messages", len(prompt), opt.maxTokens)
	if err != nil {
		return err
	}
	x := s.newExchange(w, r, m, opt, "chatcmpl-", asked)
	x.parser, x.format, x.hideThoughts = p.parse, p.format, !showThoughts
	if opt.sampling.KeepSpecial && f.boolean("skip_special_tokens", true) {
		x.hidden = m.ControlText
	}
	x.add(prompt, span, received, most, use.names())
	if opt.stream {
		x.out = newStream(x, true)
	} else {
		x.out = newWhole(x, true)
	}
	return x.run()
}

// constrain sets the grammar, and what the parsers need to see.
func (p *chatPrompt) constrain(opt *common, use *toolUse, gbnf string) error {
	sp := &opt.sampling
	sp.Grammar = gbnf
	if len(use.offered) > 0 && (use.forced || use.strict) {
		text, triggers, err := grammar.ToolCalls(p.format, use.offered, use.parallel)
		if err != nil {
			return grammarError("tools", err)
		}
		sp.Grammar = text
		if !use.forced {
			sp.GrammarTriggers = triggers
		}
	}
	if sp.Grammar != "" && len(sp.GrammarTriggers) == 0 {
		// The grammar begins with the first token: there are no thoughts.
		p.parse.ReasoningFormat, p.parse.InReasoning = parse.None, false
	}
	if len(use.offered) > 0 && parse.NeedsControlText(p.format) || p.parse.ReasoningFormat == parse.Brackets {
		sp.KeepSpecial = true
	}
	return nil
}
