package template

import (
	"encoding/json"
	"fmt"

	"ieg/api/openai/jinja"
)

// once renders messages with the strings edited by m.
func (t *Template) once(in Input, m marker, messages []Message) (string, error) {
	vars := jinja.Vars{"documents": nil, "bos_token": in.BOS, "eos_token": in.EOS}
	for name, raw := range in.Vars {
		v, err := jinja.FromJSON(raw, m.word)
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", ErrMessages, name, err)
		}
		vars[name] = v
	}
	vars["add_generation_prompt"], vars["tools"] = in.Generate, nil
	if len(in.Tools) > 0 {
		tools := jinja.NewList()
		for i, raw := range in.Tools {
			v, err := jinja.FromJSON(raw, m.word)
			if err != nil {
				return "", fmt.Errorf("%w: tools[%d]: %w", ErrMessages, i, err)
			}
			tools.Items = append(tools.Items, withParameters(v))
		}
		vars["tools"] = tools
	}
	list := jinja.NewList()
	for i, msg := range messages {
		v, err := t.message(msg, m, in.Continue && i == len(messages)-1)
		if err != nil {
			return "", err
		}
		list.Items = append(list.Items, v)
	}
	vars["messages"] = list
	out, err := t.code.Render(vars, in.Now)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrMessages, err)
	}
	return out, nil
}

// withParameters gives a function that takes no parameters an empty schema,
// which templates expect to find.
func withParameters(tool jinja.Value) jinja.Value {
	d, ok := tool.(*jinja.Dict)
	if !ok {
		return tool
	}
	f, _ := d.Get("function")
	if fn, ok := f.(*jinja.Dict); ok {
		if _, ok := fn.Get("parameters"); !ok {
			fn.Set("parameters", jinja.NewDict("type", "object", "properties", jinja.NewDict()))
		}
	}
	return tool
}

// message makes the dict of one message.
func (t *Template) message(msg Message, m marker, last bool) (jinja.Value, error) {
	content := m.edit(msg.Content)
	if last {
		content += string(m.end)
	}
	d := jinja.NewDict("role", msg.Role, "content", content)
	if msg.Null && !last && t.nullContent {
		d.Set("content", nil)
	}
	if msg.Reasoning != "" {
		d.Set("reasoning_content", m.edit(msg.Reasoning))
		d.Set("reasoning", m.edit(msg.Reasoning))
	}
	if msg.Name != "" {
		d.Set("name", m.edit(msg.Name))
	}
	if msg.ToolCallID != "" {
		d.Set("tool_call_id", m.edit(msg.ToolCallID))
	}
	if len(msg.ToolCalls) == 0 {
		return d, nil
	}
	calls := jinja.NewList()
	for _, c := range msg.ToolCalls {
		args, err := t.arguments(c.Arguments, m)
		if err != nil {
			return nil, err
		}
		fn := jinja.NewDict("name", m.edit(c.Name), "arguments", args)
		calls.Items = append(calls.Items, jinja.NewDict("id", m.edit(c.ID), "type", "function", "function", fn))
	}
	d.Set("tool_calls", calls)
	return d, nil
}

// arguments hands over the arguments of an earlier call as the template
// takes them. Text that is no JSON stays text.
func (t *Template) arguments(text string, m marker) (jinja.Value, error) {
	if text == "" {
		text = "{}"
	}
	if !t.objectArgs || !json.Valid([]byte(text)) {
		return m.edit(text), nil
	}
	v, err := jinja.FromJSON([]byte(text), m.word)
	if err != nil {
		return nil, fmt.Errorf("%w: arguments of a tool call: %w", ErrMessages, err)
	}
	return v, nil
}
