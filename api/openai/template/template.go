package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"ieg/api/openai/jinja"
)

// Errors with identity; both are the caller's to tell the client.
var (
	// ErrTemplate: the model's template can't be read.
	ErrTemplate = errors.New("the model's chat template can't be used")
	// ErrMessages: the template refuses these messages, or can't render them.
	ErrMessages = errors.New("the model's chat template can't render these messages")
)

// ChatML is the template of models that have none.
const ChatML = `{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}
<|im_start|>assistant
{% endif -%}`

// Message is one message of a chat; its strings are the user's.
type Message struct {
	Role string // system, user, assistant, tool; developer is taken as system
	// Content is the text; Null tells that there is none.
	Content    string
	Null       bool
	Reasoning  string
	Name       string
	ToolCallID string
	ToolCalls  []ToolCall
}

// ToolCall is a call that an assistant message made.
type ToolCall struct {
	ID, Name string
	// Arguments is the JSON text of an object.
	Arguments string
}

// Input is all that a prompt depends on.
type Input struct {
	Messages []Message
	// Tools are the definitions as the client wrote them:
	// {"type":"function","function":{…}}.
	Tools []json.RawMessage
	// Vars are further variables (chat_template_kwargs, documents).
	Vars map[string]json.RawMessage
	// Generate adds the opening of the assistant's message. Continue leaves
	// the last message open instead.
	Generate, Continue bool
	// Hermes tells tools in Hermes' format though the template knows tools.
	Hermes   bool
	BOS, EOS string
	Now      time.Time
}

// Part is a piece of a prompt.
type Part struct {
	Text    string
	Special bool // spelled control tokens in it count
}

// Template is a compiled chat template. It is immutable.
type Template struct {
	code  *jinja.Template
	guard *guard
	// Abilities found by the probes.
	native, system          bool
	objectArgs, nullContent bool
}

// Compile reads the template of a model whose control tokens are spelled as
// in control; "" is ChatML.
func Compile(source string, control []string) (*Template, error) {
	if source == "" {
		source = ChatML
	}
	code, err := jinja.Parse(source)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTemplate, err)
	}
	t := &Template{code: code, guard: newGuard(nil)}
	t.probe()
	t.guard = newGuard(control)
	return t, nil
}

// NativeTools tells whether the template itself knows tools, calls and
// results; otherwise they are told in Hermes' format.
func (t *Template) NativeTools() bool { return t.native }

// Words that no template holds.
const (
	probeText = "zqProbeText"
	probeName = "zqProbeName"
	probeArg  = "zqProbeArg"
)

var (
	probeUser = Message{Role: "user", Content: "a"}
	probeCall = Message{Role: "assistant", Null: true, ToolCalls: []ToolCall{
		{ID: "abcdefghi", Name: probeName, Arguments: `{"` + probeArg + `": "b"}`}}}
	probeResult = Message{Role: "tool", Content: probeText, Name: probeName, ToolCallID: "abcdefghi"}
	probeTool   = json.RawMessage(`{"type":"function","function":{"name":"` + probeName +
		`","description":"a","parameters":{"type":"object","properties":{"` + probeArg +
		`":{"type":"string","description":"a"}},"required":["` + probeArg + `"]}}}`)
)

// shows renders a chat and tells whether the words are in it.
func (t *Template) shows(tools []json.RawMessage, ms []Message, words ...string) bool {
	out, err := t.once(Input{Tools: tools, Generate: true}, marker{g: t.guard}, ms)
	for _, w := range words {
		if err != nil || !strings.Contains(out, w) {
			return false
		}
	}
	return !strings.Contains(out, "None")
}

// probe renders small chats to learn what the template can do.
func (t *Template) probe() {
	system := Message{Role: "system", Content: probeText}
	t.system = t.shows(nil, []Message{system, probeUser}, probeText)
	tools := []json.RawMessage{probeTool}
	if !t.shows(tools, []Message{probeUser}, probeName) && !t.shows(tools, []Message{system, probeUser}, probeName) {
		return
	}
	for _, t.nullContent = range []bool{true, false} {
		for _, t.objectArgs = range []bool{true, false} {
			if t.shows(nil, []Message{probeUser, probeCall, probeResult}, probeName, `"`+probeArg+`": "b"`, probeText) {
				t.native = true
				return
			}
		}
	}
}

// Render makes the prompt. Errors are ErrMessages with what the template said.
func (t *Template) Render(in Input) ([]Part, error) {
	m, err := newMarker(t.guard, in)
	if err != nil {
		return nil, err
	}
	in.Hermes = in.Hermes || !t.native
	messages := t.adapt(in)
	if in.Hermes {
		in.Tools = nil
	}
	text, err := t.once(in, m, messages)
	if err != nil {
		return nil, err
	}
	if m.risky {
		m.strict = true
		strict, err := t.once(in, m, messages)
		if err == nil && m.count(strict) != m.count(text) {
			text = strict
		}
	}
	if in.Continue {
		i := strings.LastIndex(text, string(m.end))
		if i < 0 {
			return nil, fmt.Errorf("%w: it drops the text of the final message, so that can't be continued (continue_final_message)", ErrMessages)
		}
		text = text[:i]
	}
	return m.parts(text), nil
}
