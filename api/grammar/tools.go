package grammar

import (
	"encoding/json"
	"strconv"

	"ieg/api/parse"
)

// Tool is a function that may be called.
type Tool struct {
	Name string
	// Parameters is the schema of the arguments; empty or null: there are none.
	Parameters json.RawMessage
}

// ToolCalls returns a grammar of one call, or with parallel of up to MaxCalls,
// in a format of package parse. Triggers are the texts at which the grammar
// wakes up when calls are left to the model; for a forced call they are not
// used. Pointers in errors begin with "#/tools/N".
func ToolCalls(format string, tools []Tool, parallel bool) (gbnf string, triggers []string, err error) {
	if len(tools) == 0 || len(tools) > MaxTools {
		return "", nil, errAt("#/tools", "there must be 1 to %d tools", MaxTools)
	}
	t := toolCompiler{builder: newBuilder(), tools: tools, calls: 1}
	if parallel {
		t.calls = MaxCalls
	}
	t.origin["root"] = "#/tools"
	size := 0
	for i, tool := range tools {
		at := "#/tools/" + strconv.Itoa(i)
		if !validName(tool.Name) {
			return "", nil, errAt(at, "a name has 1 to %d letters, digits, '_', '-' and '.'", MaxToolName)
		}
		if size += len(tool.Parameters); size > MaxSchemaBytes {
			return "", nil, errAt(at, "the schemas are longer than %d bytes together", MaxSchemaBytes)
		}
	}
	write := map[string]func() (expr, []string, error){
		parse.Hermes: t.hermes, parse.Llama3: t.llama3, parse.Mistral: t.mistral,
		parse.DeepSeek: t.deepSeek, parse.Pythonic: t.pythonic,
	}[format]
	if write == nil {
		return "", nil, errAt("", "no grammar for the tool format %q", format)
	}
	root, triggers, err := write()
	if err != nil {
		return "", nil, err
	}
	gbnf, err = t.finish(root)
	return gbnf, triggers, err
}

func validName(name string) bool {
	if name == "" || len(name) > MaxToolName {
		return false
	}
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.') {
			return false
		}
	}
	return true
}

type toolCompiler struct {
	*builder
	tools []Tool
	calls int
}

// parameters prepares the schema of tool i, narrowed to objects.
func (t *toolCompiler) parameters(i int) (*compiler, *merged, string, error) {
	at := "#/tools/" + strconv.Itoa(i) + "/parameters"
	raw := t.tools[i].Parameters
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage(`{"properties": {}}`)
	}
	doc, err := parseValue(raw, at)
	if err != nil {
		return nil, nil, "", err
	}
	c := newCompiler(t.builder, doc, at)
	m := newMerged()
	m.types = []string{"object"}
	return c, m, at, c.absorb(m, doc, at, 0)
}

// arguments is the JSON of the arguments of tool i.
func (t *toolCompiler) arguments(i int) (expr, error) {
	c, m, _, err := t.parameters(i)
	if err != nil {
		return expr{}, err
	}
	e, err := c.compileMerged(m, 0)
	if err != nil {
		return expr{}, err
	}
	return t.rule(t.tools[i].Name+"-args", e), nil
}

// each is one of the tools, written by write with its arguments.
func (t *toolCompiler) each(write func(name string, args expr) expr) (expr, error) {
	alts := make([]expr, len(t.tools))
	for i, tool := range t.tools {
		args, err := t.arguments(i)
		if err != nil {
			return expr{}, err
		}
		alts[i] = t.rule(tool.Name+"-call", write(tool.Name, args))
	}
	return t.rule("call", alt(alts...)), nil
}

// several is one call and up to the rest of them, each after sep.
func (t *toolCompiler) several(call, sep expr) expr {
	return seq(call, t.rep(seq(sep, call), 0, t.calls-1))
}

// object is a call as a JSON object.
func (t *toolCompiler) object(key string) func(string, expr) expr {
	return func(name string, args expr) expr {
		return seq(lit(`{"name":`), t.ws(), lit(quote(name)+","), t.ws(), lit(quote(key)+":"), t.ws(), args, t.ws(), lit("}"))
	}
}

func (t *toolCompiler) hermes() (expr, []string, error) {
	object, err := t.each(t.object("arguments"))
	if err != nil {
		return expr{}, nil, err
	}
	call := t.rule("tool-call", seq(lit("<tool_call>"), t.ws(), object, t.ws(), lit("</tool_call>")))
	return t.several(call, t.ws()), []string{"<tool_call>"}, nil
}

func (t *toolCompiler) llama3() (expr, []string, error) {
	object, err := t.each(t.object("parameters"))
	if err != nil {
		return expr{}, nil, err
	}
	triggers := []string{"<|python_tag|>"}
	for _, tool := range t.tools {
		triggers = append(triggers, `{"name": `+quote(tool.Name), `{"name":`+quote(tool.Name))
	}
	return seq(t.opt(lit("<|python_tag|>")), t.several(object, seq(lit(";"), t.ws()))), triggers, nil
}

// mistral is the list of objects, or name and arguments for each call: which
// one the model was taught is its own choice.
func (t *toolCompiler) mistral() (expr, []string, error) {
	const open = "[TOOL_CALLS]"
	object, err := t.each(t.object("arguments"))
	if err != nil {
		return expr{}, nil, err
	}
	named, err := t.each(func(name string, args expr) expr { return seq(lit(name+"[ARGS]"), args) })
	if err != nil {
		return expr{}, nil, err
	}
	list := seq(t.ws(), lit("["), t.ws(), t.several(object, t.comma()), t.ws(), lit("]"))
	return seq(lit(open), alt(list, t.several(named, lit(open)))), []string{open}, nil
}

// deepSeek is the fenced form of V3 and R1, or the plain one of V3.1.
func (t *toolCompiler) deepSeek() (expr, []string, error) {
	const (
		allBegin, allEnd = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
		oneBegin, oneEnd = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"
		sep              = "<｜tool▁sep｜>"
	)
	body, err := t.each(func(name string, args expr) expr {
		return alt(seq(lit("function"+sep+name+"\n```json\n"), args, lit("\n```")), seq(lit(name+sep), args))
	})
	if err != nil {
		return expr{}, nil, err
	}
	call := t.rule("tool-call", seq(lit(oneBegin), body, lit(oneEnd)))
	root := seq(t.opt(lit(allBegin)), t.several(call, t.opt(lit("\n"))), t.opt(lit(allEnd)))
	return root, []string{allBegin, oneBegin}, nil
}

// pythonic writes arguments as name=value, with values in JSON.
func (t *toolCompiler) pythonic() (expr, []string, error) {
	alts := make([]expr, len(t.tools))
	triggers := make([]string, len(t.tools))
	for i, tool := range t.tools {
		c, m, at, err := t.parameters(i)
		if err != nil {
			return expr{}, nil, err
		}
		args, err := c.pythonArguments(m, at)
		if err != nil {
			return expr{}, nil, err
		}
		alts[i] = t.rule(tool.Name+"-call", seq(lit(tool.Name+"("), args, lit(")")))
		triggers[i] = "[" + tool.Name + "("
	}
	return seq(lit("["), t.several(t.rule("call", alt(alts...)), t.comma()), lit("]")), triggers, nil
}

func (c *compiler) pythonArguments(m *merged, at string) (expr, error) {
	if m.alts != nil || m.kw["enum"].val != nil || m.kw["const"].val != nil {
		return expr{}, errAt(at, "pythonic calls need parameters that are properties")
	}
	props, err := c.properties(m, extra{})
	if err != nil {
		return expr{}, err
	}
	entries := make([]expr, len(props))
	for i, p := range props {
		if !validName(p.key) {
			return expr{}, errAt(p.at, "pythonic calls can't name this parameter")
		}
		e, err := c.compile(p.schema, p.at, 1)
		if err != nil {
			return expr{}, err
		}
		entries[i] = c.rule(p.key+"-entry", seq(lit(p.key+"="), c.rule(p.key, e)))
	}
	body, optional := c.entries(props, entries, nil)
	switch {
	case body == nil:
		return empty, nil
	case optional:
		return c.opt(*body), nil
	}
	return *body, nil
}
