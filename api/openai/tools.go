package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"ieg/api/grammar"
)

// toolUse is what a request wants of tools.
type toolUse struct {
	// defs are the definitions shown to the model, offered the functions in
	// them that may be called.
	defs    []json.RawMessage
	offered []grammar.Tool
	// forced: a call must come. strict: the arguments of a call that comes
	// must fit their schema.
	forced, strict, parallel bool
}

func (t *toolUse) names() []string {
	var names []string
	for _, o := range t.offered {
		names = append(names, o.Name)
	}
	return names
}

// tools reads tools, tool_choice and parallel_tool_calls.
func tools(f *fields) toolUse {
	use := toolUse{parallel: f.boolean("parallel_tool_calls", true)}
	f.into("tools", &use.defs, "a list of tools")
	if len(use.defs) > MaxTools {
		f.fail(bad("tools", "there are %d tools, the limit is %d", len(use.defs), MaxTools))
	}
	seen := map[string]bool{}
	for i, raw := range use.defs {
		t, strict := tool(f, i, raw)
		if f.err != nil {
			return use
		}
		if seen[t.Name] {
			f.fail(bad(fmt.Sprintf("tools[%d].function.name", i), "two tools are named %q", t.Name))
		}
		seen[t.Name] = true
		use.offered = append(use.offered, t)
		use.strict = use.strict || strict
	}
	f.refuse("functions", "use tools")
	f.refuse("function_call", "use tool_choice")
	choose(f, &use)
	return use
}

func tool(f *fields, i int, raw json.RawMessage) (t grammar.Tool, strict bool) {
	path := fmt.Sprintf("tools[%d]", i)
	var def struct {
		Type     string `json:"type"`
		Function *struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
			Strict     *bool           `json:"strict"`
		} `json:"function"`
	}
	switch err := json.Unmarshal(raw, &def); {
	case err != nil:
		field, is := mismatch(err)
		path = strings.TrimSuffix(path+"."+field, ".")
		f.fail(bad(path, "%s is %s", path, cmp.Or(is, "no tool")))
	case len(raw) > MaxToolBytes:
		f.fail(bad(path, "%s has %d bytes, the limit is %d", path, len(raw), MaxToolBytes))
	case def.Type != "function":
		f.fail(unsupported(path+".type", "tools of type %q are not supported here, only function", utf8Bound(def.Type, 64)))
	case def.Function == nil || !toolName(def.Function.Name):
		f.fail(bad(path+".function.name", "a function needs a name of 1 to %d letters, digits, '_', '-' and '.'", grammar.MaxToolName))
	case len(def.Function.Parameters) > 0 && !bytes.HasPrefix(def.Function.Parameters, []byte("{")) && string(def.Function.Parameters) != "null":
		f.fail(bad(path+".function.parameters", "parameters must be a JSON schema, not %s", kindOf(def.Function.Parameters)))
	default:
		return grammar.Tool{Name: def.Function.Name, Parameters: def.Function.Parameters}, def.Function.Strict != nil && *def.Function.Strict
	}
	return t, false
}

func toolName(s string) bool {
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.') {
			return false
		}
	}
	return s != "" && len(s) <= grammar.MaxToolName
}

// choose applies tool_choice.
func choose(f *fields, use *toolUse) {
	const name = "tool_choice"
	raw := f.get(name)
	if raw == nil {
		return
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch word {
		case "auto":
		case "none":
			use.defs, use.offered = nil, nil
			return
		case "required":
			use.forced = true
		default:
			f.fail(bad(name, "tool_choice is %q; it can be auto, none, required or a function", utf8Bound(word, 64)))
		}
		if use.forced && len(use.offered) == 0 {
			f.fail(bad(name, "tool_choice needs tools"))
		}
		return
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &named) != nil || named.Type != "function" {
		f.fail(bad(name, `tool_choice must be a word or {"type":"function","function":{"name":…}}, not %s`, kindOf(raw)))
		return
	}
	if named.Function.Name == "" {
		named.Function.Name = named.Name
	}
	for _, t := range use.offered {
		if t.Name == named.Function.Name {
			use.offered, use.forced, use.parallel = []grammar.Tool{t}, true, false
			return
		}
	}
	f.fail(bad(name+".function.name", "tool_choice names %q, which is not among the tools", utf8Bound(named.Function.Name, 64)))
}
