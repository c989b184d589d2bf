package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"ieg"
	"ieg/api/openai/template"
	"ieg/api/parse"
)

// cachedTemplate is a compiled chat template with what it was compiled from.
type cachedTemplate struct {
	digest  string
	source  string
	control []string
	tmpl    *template.Template
	err     error
}

// template returns the model's compiled template; the oldest of too many is
// dropped.
func (s *Server) template(m *Model) (*template.Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.templates {
		same := c.digest == m.Digest && c.source == m.ChatTemplate
		if same && (c.digest != "" || slices.Equal(c.control, m.ControlText)) {
			return c.tmpl, c.err
		}
	}
	tmpl, err := template.Compile(m.ChatTemplate, m.ControlText)
	if len(s.templates) == MaxTemplates {
		s.templates = slices.Delete(s.templates, 0, 1)
	}
	s.templates = append(s.templates, cachedTemplate{m.Digest, m.ChatTemplate, slices.Clone(m.ControlText), tmpl, err})
	return tmpl, err
}

// chatPrompt is a rendered chat and how its answer is to be read.
type chatPrompt struct {
	parts  []Part
	text   string
	format string // of tool calls
	parse  parse.Config
}

// chatVars reads what goes to the template beside the messages.
func chatVars(f *fields) map[string]json.RawMessage {
	vars := map[string]json.RawMessage{}
	for name, raw := range f.object("chat_template_kwargs", MaxVars) {
		vars[name] = raw
	}
	if docs := f.get("documents"); docs != nil {
		vars["documents"] = docs
	}
	if effort := f.oneOf("reasoning_effort", "", "none", "minimal", "low", "medium", "high", "xhigh", "max"); effort != "" {
		quoted, _ := json.Marshal(effort) // strings can't fail
		vars["reasoning_effort"] = quoted
		if _, set := vars["enable_thinking"]; !set && effort == "none" {
			vars["enable_thinking"] = json.RawMessage("false")
		}
	}
	f.refuse("chat_template", "the model's own template is used")
	return vars
}

// render makes the prompt of a chat.
func (s *Server) render(f *fields, m *Model, use *toolUse) (*chatPrompt, error) {
	in := template.Input{
		Messages: messages(f),
		Tools:    use.defs,
		Vars:     chatVars(f),
		Generate: f.boolean("add_generation_prompt", true),
		Continue: f.boolean("continue_final_message", false),
		BOS:      m.BOSText,
		EOS:      m.EOSText,
		Now:      s.cfg.Wall(),
	}
	if in.Continue && f.has("add_generation_prompt") && in.Generate {
		f.fail(conflict("continue_final_message", "add_generation_prompt"))
	}
	if in.Continue {
		in.Generate = false
		if n := len(in.Messages); n > 0 && in.Messages[n-1].Role != "assistant" {
			f.fail(bad("continue_final_message", "continue_final_message needs a final message of role assistant"))
		}
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	tmpl, err := s.template(m)
	if err != nil {
		return nil, fault(http.StatusNotImplemented, "not_implemented_error", "chat_template", "%v; use /v1/completions", err)
	}
	p := &chatPrompt{}
	var reasoning string
	p.format, reasoning = parse.FormatFor(m.ChatTemplate, m.Arch)
	if p.format == parse.None || !tmpl.NativeTools() {
		p.format, in.Hermes = parse.Hermes, true
	}
	if p.format == parse.Mistral {
		shortIDs(in.Messages)
	}
	parts, err := tmpl.Render(in)
	if err != nil {
		return nil, bad("messages", "%v", err)
	}
	p.addParts(m, parts)
	p.parse = parse.Config{
		ReasoningFormat: reasoning,
		InReasoning:     parse.OpensReasoning(p.text, reasoning),
		Parallel:        use.parallel,
		ToolsOffered:    use.names(),
	}
	if len(use.offered) > 0 {
		p.parse.ToolFormat = p.format
	}
	return p, nil
}

// addParts takes over the template's parts, with the begin-of-text token that
// the template may have left to the tokeniser.
func (p *chatPrompt) addParts(m *Model, parts []template.Part) {
	for _, t := range parts {
		p.parts = append(p.parts, Part(t))
		p.text += t.Text
	}
	if m.AddBOS && m.BOSText != "" && !strings.HasPrefix(p.text, m.BOSText) {
		p.parts = append([]Part{{Text: m.BOSText, Special: true}}, p.parts...)
	}
}

// shortIDs makes the ids of calls what Mistral's templates insist on: nine
// letters and digits, the same for a call and its result.
func shortIDs(ms []template.Message) {
	short := func(id string) string {
		id = strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return -1
		}, id)
		id = strings.Repeat("0", max(0, mistralID-len(id))) + id
		return id[len(id)-mistralID:]
	}
	for i := range ms {
		if ms[i].Role == "tool" {
			ms[i].ToolCallID = short(ms[i].ToolCallID)
		}
		for j := range ms[i].ToolCalls {
			ms[i].ToolCalls[j].ID = short(ms[i].ToolCalls[j].ID)
		}
	}
}

const mistralID = 9

// tokens tokenises a rendered prompt and times it.
func (s *Server) tokens(ctx context.Context, m *Model, parts []Part) ([]ieg.Token, ieg.Span, error) {
	size := 0
	for _, p := range parts {
		size += len(p.Text)
	}
	if size > MaxPromptBytes {
		return nil, ieg.Span{}, bad("", "the prompt has %d bytes, the limit is %d", size, MaxPromptBytes)
	}
	span := ieg.Span{Start: s.node.Now()}
	toks, err := s.node.Tokenize(ctx, m.Name, parts)
	span.End = s.node.Now()
	return toks, span, err
}

// fit checks a prompt against the context and returns the most tokens that
// may follow it, want at most (0: as many as fit).
func fit(m *Model, param string, prompt int, want int64) (int32, error) {
	if prompt == 0 {
		return 0, bad(param, "the prompt is empty; the model needs at least one token")
	}
	room := int64(m.Context) - int64(prompt)
	if room < 1 {
		return 0, tooLong(m, param, prompt)
	}
	if want == 0 || want > room {
		want = room
	}
	return int32(min(want, math.MaxInt32)), nil
}

func tooLong(m *Model, param string, prompt int) *apiError {
	e := bad(param, "the prompt has %d tokens, and %s has a context of %d tokens for prompt and output together; shorten the prompt by %d tokens or more, or load the model with a larger --ctx",
		prompt, m.Name, m.Context, prompt-int(m.Context)+1)
	return contextLength(e)
}

// tooLongInput is tooLong for embeddings, which have no output to leave room
// for.
func tooLongInput(m *Model, param string, tokens int) *apiError {
	e := bad(param, "%s has %d tokens, and %s takes at most %d in one input; shorten it by %d tokens or more, split it, or load the model with a larger --ctx",
		param, tokens, m.Name, m.Context, tokens-int(m.Context))
	return contextLength(e)
}

func contextLength(e *apiError) *apiError {
	e.Code = "context_length_exceeded"
	e.cause = ieg.ErrContextLength
	return e
}

// promptInput is one prompt of /v1/completions, or one input of embeddings.
type promptInput struct {
	text   string
	tokens []ieg.Token
}

// promptInputs reads a field that is a text, a list of texts, a list of
// tokens, or a list of those.
func promptInputs(f *fields, name string, m *Model, limit int) []promptInput {
	raw := f.get(name)
	if raw == nil {
		f.fail(bad(name, "%s is missing", name))
		return nil
	}
	const want = "a string, a list of strings, a list of token ids or a list of such lists"
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []promptInput{{text: one}}
	}
	var list []json.RawMessage
	if !f.into(name, &list, want) {
		return nil
	}
	if len(list) == 0 {
		f.fail(bad(name, "%s is an empty list", name))
		return nil
	}
	var ids []ieg.Token
	if json.Unmarshal(raw, &ids) == nil {
		checkTokens(f, name, ids, m)
		return []promptInput{{tokens: ids}}
	}
	if len(list) > limit {
		f.fail(bad(name, "%s has %d entries, the limit is %d", name, len(list), limit))
		return nil
	}
	out := make([]promptInput, len(list))
	for i, r := range list {
		var toks []ieg.Token
		switch {
		case json.Unmarshal(r, &out[i].text) == nil && kindOf(r) == "a string":
		case json.Unmarshal(r, &toks) == nil && len(toks) > 0:
			out[i].tokens = toks
			checkTokens(f, name, toks, m)
		default:
			f.fail(bad(fmt.Sprintf("%s[%d]", name, i), "%s must be %s", name, want))
			return nil
		}
	}
	return out
}

// plainParts are the parts of a text that is no chat.
func plainParts(m *Model, text string, special, add bool) []Part {
	var parts []Part
	if add && m.AddBOS && m.BOSText != "" {
		parts = append(parts, Part{Text: m.BOSText, Special: true})
	}
	if text != "" {
		parts = append(parts, Part{Text: text, Special: special})
	}
	if add && m.AddEOS && m.EOSText != "" {
		parts = append(parts, Part{Text: m.EOSText, Special: true})
	}
	return parts
}
