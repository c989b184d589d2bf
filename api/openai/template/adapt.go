package template

import (
	"encoding/json"
	"strings"

	"ieg/api/openai/jinja"
)

// adapt rewrites the messages for what the template can't do itself. Text
// that is added is ours; the strings in it are edited when they are rendered,
// like all content, since they came from the user.
func (t *Template) adapt(in Input) []Message {
	out := make([]Message, 0, len(in.Messages)+1)
	for i, msg := range in.Messages {
		if msg.Role == "developer" {
			msg.Role = "system"
		}
		if len(msg.ToolCalls) > 0 && in.Hermes {
			msg = writeCalls(msg)
		}
		if msg.Role == "tool" && in.Hermes {
			msg = Message{Role: "user", Content: "<tool_response>\n" + msg.Content + "\n</tool_response>"}
			if i > 0 && in.Messages[i-1].Role == "tool" {
				out[len(out)-1].Content += "\n" + msg.Content
				continue
			}
		}
		out = append(out, msg)
	}
	if len(in.Tools) > 0 && in.Hermes {
		out = withSystem(out, toolPrompt(in.Tools))
	}
	if !t.system {
		out = foldSystem(out)
	}
	return out
}

// writeCalls puts the calls of an assistant message into its text.
func writeCalls(msg Message) Message {
	var b strings.Builder
	b.WriteString(msg.Content)
	for _, c := range msg.ToolCalls {
		args := "{}"
		if json.Valid([]byte(c.Arguments)) {
			args = plainJSON([]byte(c.Arguments))
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("<tool_call>\n{\"name\": " + quoted(c.Name) + ", \"arguments\": " + args + "}\n</tool_call>")
	}
	msg.Content, msg.Null, msg.ToolCalls = b.String(), false, nil
	return msg
}

// toolPrompt describes tools to a model whose template doesn't.
func toolPrompt(tools []json.RawMessage) string {
	var b strings.Builder
	b.WriteString("You can call functions. Their definitions, one JSON object a line:\n<tools>\n")
	for _, t := range tools {
		b.WriteString(plainJSON(t))
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\nTo call a function, answer with its name and its arguments as a JSON object, like this:\n" +
		"<tool_call>\n{\"name\": \"function name\", \"arguments\": {\"argument\": \"value\"}}\n</tool_call>\n" +
		"The results will follow inside <tool_response></tool_response>.")
	return b.String()
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // strings can't fail
	return plainJSON(b)
}

// plainJSON rewrites JSON without escapes that the reader doesn't need.
func plainJSON(raw []byte) string {
	if v, err := jinja.FromJSON(raw, nil); err == nil {
		if text, err := jinja.ToJSON(v); err == nil {
			return text
		}
	}
	return string(raw)
}

// withSystem appends text to the first system message, or adds one.
func withSystem(ms []Message, text string) []Message {
	if len(ms) > 0 && ms[0].Role == "system" {
		if ms[0].Content != "" {
			text = ms[0].Content + "\n\n" + text
		}
		ms[0].Content = text
		return ms
	}
	return append([]Message{{Role: "system", Content: text}}, ms...)
}

// foldSystem moves system texts to the front of the user message that
// follows, for templates that know no system role.
func foldSystem(ms []Message) []Message {
	var out []Message
	var pending []string
	for _, m := range ms {
		if m.Role == "system" {
			pending = append(pending, m.Content)
			continue
		}
		if m.Role == "user" && len(pending) > 0 {
			m.Content = strings.Join(append(pending, m.Content), "\n\n")
			pending = nil
		}
		out = append(out, m)
	}
	if len(pending) > 0 {
		out = append(out, Message{Role: "user", Content: strings.Join(pending, "\n\n")})
	}
	return out
}
