package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"ieg/api/openai/template"
)

// messages reads the chat. It fails with the path of what is wrong.
func messages(f *fields) []template.Message {
	var raw []json.RawMessage
	if !f.has("messages") {
		f.fail(bad("messages", "messages is missing"))
		return nil
	}
	if !f.into("messages", &raw, "a list of messages") {
		return nil
	}
	if len(raw) == 0 || len(raw) > MaxMessages {
		f.fail(bad("messages", "there must be 1 to %d messages, not %d", MaxMessages, len(raw)))
		return nil
	}
	out := make([]template.Message, 0, len(raw))
	size := 0
	for i, r := range raw {
		path := fmt.Sprintf("messages[%d]", i)
		sub := &fields{}
		if err := json.Unmarshal(r, &sub.raw); err != nil || sub.raw == nil {
			f.fail(bad(path, "%s must be an object, not %s", path, kindOf(r)))
			return nil
		}
		m := message(sub)
		f.adopt(path, sub)
		if f.err != nil {
			return nil
		}
		size += len(m.Content) + len(m.Reasoning)
		out = append(out, m)
	}
	if size > MaxPromptBytes {
		f.fail(bad("messages", "the messages have %d bytes of text, the limit is %d", size, MaxPromptBytes))
	}
	return out
}

func message(f *fields) template.Message {
	m := template.Message{
		Role:       f.text("role", MaxIDBytes),
		Name:       f.text("name", MaxIDBytes),
		ToolCallID: f.text("tool_call_id", MaxIDBytes),
	}
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	case "":
		f.fail(bad("role", "a message needs a role: system, developer, user, assistant or tool"))
	default:
		f.fail(bad("role", "the role %q is not known; use system, developer, user, assistant or tool", utf8Bound(m.Role, 64)))
	}
	m.Content, m.Null = content(f)
	if m.Role != "assistant" {
		if m.Null {
			f.fail(bad("content", "a message of role %q needs content", m.Role))
		}
		return m
	}
	m.Reasoning = f.text("reasoning", MaxPromptBytes)
	if m.Reasoning == "" {
		m.Reasoning = f.text("reasoning_content", MaxPromptBytes)
	}
	m.ToolCalls = toolCalls(f)
	if m.Null && len(m.ToolCalls) == 0 && m.Reasoning == "" {
		m.Null = false // an empty answer
	}
	return m
}

// content is a string, or a list of text parts that are joined.
func content(f *fields) (text string, null bool) {
	raw := f.get("content")
	if raw == nil {
		return "", true
	}
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
		f.into("content", &text, "a string or a list of parts")
		return text, false
	}
	var parts []struct {
		Type    string  `json:"type"`
		Text    *string `json:"text"`
		Refusal *string `json:"refusal"`
	}
	if !f.into("content", &parts, "a string or a list of parts") {
		return "", false
	}
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.Type == "text" && p.Text != nil:
			b.WriteString(*p.Text)
		case p.Type == "refusal" && p.Refusal != nil:
			b.WriteString(*p.Refusal)
		case p.Type == "text":
			f.fail(bad(fmt.Sprintf("content[%d].text", i), "a part of type text needs text"))
		default:
			f.fail(unsupported(fmt.Sprintf("content[%d].type", i), "parts of type %q are not supported here, only text", utf8Bound(p.Type, 64)))
		}
	}
	return b.String(), false
}

func toolCalls(f *fields) []template.ToolCall {
	var raw []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function *struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	}
	f.into("tool_calls", &raw, "a list of tool calls")
	if len(raw) > MaxCallsHistory {
		f.fail(bad("tool_calls", "tool_calls has %d entries, the limit is %d", len(raw), MaxCallsHistory))
		return nil
	}
	var out []template.ToolCall
	for i, c := range raw {
		path := fmt.Sprintf("tool_calls[%d]", i)
		if c.Function == nil || c.Function.Name == "" {
			f.fail(bad(path+".function.name", "a tool call needs function.name"))
			return nil
		}
		if len(c.ID) > MaxIDBytes || len(c.Function.Name) > MaxIDBytes {
			f.fail(bad(path, "ids and names have at most %d bytes", MaxIDBytes))
			return nil
		}
		args := string(c.Function.Arguments) // an object, though OpenAI sends text
		var text string
		if json.Unmarshal(c.Function.Arguments, &text) == nil {
			args = text
		}
		out = append(out, template.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: args})
	}
	return out
}
