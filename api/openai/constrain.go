package openai

import (
	"encoding/json"
	"errors"

	"ieg"
	"ieg/api/grammar"
)

// constraint reads response_format, structured_outputs and the guided_*
// fields: what the text must look like, as a grammar; "" is anything. At most
// one of them may be given.
func constraint(f *fields) (gbnf string) {
	from := ""
	set := func(name, text string, err error) {
		switch {
		case err != nil:
			f.fail(grammarError(name, err))
		case text == "":
		case from != "":
			f.fail(conflict(name, from))
		default:
			from, gbnf = name, text
		}
	}
	text, err := responseFormat(f)
	set("response_format", text, err)
	if f.has("structured_outputs") {
		sub := f.sub("structured_outputs")
		guided(sub, "", "structured_outputs.", set)
		f.adopt("structured_outputs", sub)
	}
	guided(f, "guided_", "", set)
	return gbnf
}

func responseFormat(f *fields) (string, error) {
	const name = "response_format"
	if !f.has(name) {
		return "", nil
	}
	sub := f.sub(name)
	kind := sub.text("type", MaxIDBytes)
	f.adopt(name, sub)
	switch kind {
	case "text", "":
		return "", nil
	case "json_object":
		return grammar.AnyJSONObject(), nil
	case "json_schema":
		js := sub.sub("json_schema")
		schema := js.get("schema")
		if schema == nil {
			return "", bad(name+".json_schema.schema", "response_format of type json_schema needs json_schema.schema")
		}
		return grammar.FromSchema(schema)
	}
	return "", unsupported(name, "response_format of type %q is not supported here; use text, json_object or json_schema", utf8Bound(kind, 64))
}

// guided reads json, regex, choice, json_object and refuses grammar and
// structural_tag; path leads to the object that holds them.
func guided(f *fields, prefix, path string, set func(name, gbnf string, err error)) {
	if raw := f.get(prefix + "json"); raw != nil {
		var text string // the schema may be given as JSON in a string
		if json.Unmarshal(raw, &text) == nil {
			raw = json.RawMessage(text)
		}
		gbnf, err := grammar.FromSchema(raw)
		set(path+prefix+"json", gbnf, err)
	}
	if f.boolean(prefix+"json_object", false) {
		set(path+prefix+"json_object", grammar.AnyJSONObject(), nil)
	}
	if pattern := f.text(prefix+"regex", grammar.MaxPatternBytes); pattern != "" {
		gbnf, err := grammar.Regex(pattern)
		set(path+prefix+"regex", gbnf, err)
	}
	var choice []string
	if f.into(prefix+"choice", &choice, "a list of strings") {
		gbnf, err := grammar.Choice(choice)
		set(path+prefix+"choice", gbnf, err)
	}
	f.refuse(prefix+"grammar", "grammars of clients are not run; use a JSON schema, a regular expression or a choice")
	f.refuse(prefix+"structural_tag", "use a JSON schema or tools")
}

// grammarError makes a 400 of what can't be made a grammar.
func grammarError(name string, err error) *apiError {
	var e *apiError
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, ieg.ErrUnsupported) {
		return unsupported(name, "%s: %v", name, err)
	}
	return bad(name, "%s: %v", name, err)
}
