package grammar

import "encoding/json"

// FromSchema returns a grammar whose texts are instances of the schema.
func FromSchema(schema json.RawMessage) (string, error) {
	doc, err := parseValue(schema, "#")
	if err != nil {
		return "", err
	}
	b := newBuilder()
	b.origin["root"] = "#"
	root, err := newCompiler(b, doc, "#").compile(doc, "#", 0)
	if err != nil {
		return "", err
	}
	return b.finish(root)
}

// AnyJSONObject is the grammar of any JSON object.
func AnyJSONObject() string {
	b := newBuilder()
	text, err := b.finish(b.anyObject())
	if err != nil {
		panic("grammar: the grammar of JSON is broken: " + err.Error())
	}
	return text
}

// Choice returns a grammar of exactly the given texts.
func Choice(texts []string) (string, error) {
	if len(texts) == 0 || len(texts) > MaxEnum {
		return "", errAt("", "a choice has 1 to %d texts", MaxEnum)
	}
	alts := make([]expr, len(texts))
	size := 0
	for i, t := range texts {
		if t == "" {
			return "", errAt("", "a choice can't be empty")
		}
		if size += len(t); size > MaxSchemaBytes {
			return "", errAt("", "the choices are longer than %d bytes", MaxSchemaBytes)
		}
		alts[i] = lit(t)
	}
	return newBuilder().finish(alt(alts...))
}

// Regex returns a grammar of the texts that the expression matches whole.
func Regex(pattern string) (string, error) {
	b := newBuilder()
	root, err := b.regex(pattern, "", false, false)
	if err != nil {
		return "", err
	}
	return b.finish(root)
}
