package grammar

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// compiler turns one schema document into expressions of a builder.
type compiler struct {
	*builder
	doc  *value
	at   string            // pointer of the document, "#" or a tool's
	refs map[string]string // resolved pointer → rule
}

func newCompiler(b *builder, doc *value, at string) *compiler {
	return &compiler{builder: b, doc: doc, at: at, refs: map[string]string{}}
}

// keyword is a keyword's value and where it stands.
type keyword struct {
	val *value
	at  string
}

// property is one entry of properties.
type property struct {
	key      string
	schema   *value
	at       string
	source   int
	required bool
}

// merged is a schema with its references, allOf and alternatives taken in: a
// conjunction of keywords.
type merged struct {
	types    []string // nil: any
	props    []property
	required []keyword
	kw       map[string]keyword
	from     map[string]int // keyword → source
	alts     *keyword       // anyOf or oneOf
	sources  int
	stack    []string // references that are being taken in
}

func newMerged() *merged {
	return &merged{kw: map[string]keyword{}, from: map[string]int{}}
}

func (m *merged) clone() *merged {
	c := *m
	c.types, c.props, c.required = slices.Clone(m.types), slices.Clone(m.props), slices.Clone(m.required)
	c.kw, c.from = make(map[string]keyword, len(m.kw)), make(map[string]int, len(m.from))
	for k, v := range m.kw {
		c.kw[k] = v
	}
	for k, v := range m.from {
		c.from[k] = v
	}
	c.stack = slices.Clone(m.stack)
	return &c
}

// ignored keywords assert nothing.
var ignored = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "deprecated": true,
	"readOnly": true, "writeOnly": true, "$comment": true, "$schema": true, "$id": true,
	"$defs": true, "definitions": true,
}

// plain keywords are kept as they are and read when the type is compiled.
var plain = map[string]string{
	"additionalProperties": "object",
	"items":                "array", "prefixItems": "array", "minItems": "array", "maxItems": "array",
	"minLength": "string", "maxLength": "string", "pattern": "string", "format": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number",
	"enum": "", "const": "",
}

// compile returns an expression for the schema s at pointer at.
func (c *compiler) compile(s *value, at string, depth int) (expr, error) {
	if err := c.within(at, 1); err != nil {
		return expr{}, err
	}
	if depth > MaxSchemaDepth {
		return expr{}, errAt(at, "schemas nest deeper than %d", MaxSchemaDepth)
	}
	if s.kind == vBool {
		if !s.truth {
			return expr{}, errAt(at, "false allows nothing")
		}
		return c.any(), nil
	}
	if s.kind != vObject {
		return expr{}, errAt(at, "a schema is an object, true or false")
	}
	only := soleKeyword(s)
	switch only {
	case "$ref":
		return c.reference(s.get(only), at+"/$ref", depth)
	case "anyOf", "oneOf":
		return c.alternatives(keyword{s.get(only), at + "/" + only}, nil, depth)
	}
	m := newMerged()
	if err := c.absorb(m, s, at, depth); err != nil {
		return expr{}, err
	}
	return c.compileMerged(m, depth)
}

// soleKeyword is the one keyword of s that asserts something, or "".
func soleKeyword(s *value) string {
	only := ""
	for _, m := range s.members {
		if ignored[m.key] {
			continue
		}
		if only != "" {
			return ""
		}
		only = m.key
	}
	return only
}

// reference compiles a $ref to a rule of its own, so that it can be recursive.
func (c *compiler) reference(v *value, at string, depth int) (expr, error) {
	target, pointer, err := c.resolve(v, at)
	if err != nil {
		return expr{}, err
	}
	if name, ok := c.refs[pointer]; ok {
		return ref(name), nil
	}
	name := c.reserve(c.hint(pointer))
	c.refs[pointer], c.origin[name] = name, pointer
	body, err := c.compile(target, pointer, depth+1)
	if err != nil {
		return expr{}, err
	}
	c.define(name, body)
	return ref(name), nil
}

// hint names rules after the last step of a pointer.
func (c *compiler) hint(pointer string) string {
	if pointer == c.at {
		return "schema"
	}
	return pointer[strings.LastIndexByte(pointer, '/')+1:]
}

// resolve finds what a local $ref points to.
func (c *compiler) resolve(v *value, at string) (*value, string, error) {
	if v.kind != vString || !strings.HasPrefix(v.text, "#") {
		return nil, "", errAt(at, `only references inside the schema ("#/$defs/…") are supported`)
	}
	path, err := url.PathUnescape(v.text[1:])
	if err != nil || path != "" && path[0] != '/' {
		return nil, "", errAt(at, "%q is no JSON pointer", v.text)
	}
	node, pointer := c.doc, c.at
	if path == "" {
		return node, pointer, nil
	}
	for _, step := range strings.Split(path[1:], "/") {
		key := strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		pointer = child(pointer, key)
		var next *value
		switch node.kind {
		case vObject:
			next = node.get(key)
		case vArray:
			if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(node.items) {
				next = node.items[i]
			}
		}
		if next == nil {
			return nil, "", errAt(at, "%q points to nothing", v.text)
		}
		node = next
	}
	return node, pointer, nil
}

// alternatives compiles anyOf and oneOf, each merged with base unless that is
// nil.
func (c *compiler) alternatives(alts keyword, base *merged, depth int) (expr, error) {
	if alts.val.kind != vArray || len(alts.val.items) == 0 {
		return expr{}, errAt(alts.at, "must be a list of schemas")
	}
	out := make([]expr, 0, len(alts.val.items))
	for i, s := range alts.val.items {
		at := alts.at + "/" + strconv.Itoa(i)
		e, err := c.alternative(s, at, base, depth)
		if err != nil {
			return expr{}, err
		}
		out = append(out, e)
	}
	return alt(out...), nil
}

func (c *compiler) alternative(s *value, at string, base *merged, depth int) (expr, error) {
	if base == nil {
		return c.compile(s, at, depth+1)
	}
	if err := c.within(at, len(base.props)+len(base.required)); err != nil {
		return expr{}, err
	}
	m := base.clone()
	m.alts = nil
	if err := c.absorb(m, s, at, depth+1); err != nil {
		return expr{}, err
	}
	return c.compileMerged(m, depth+1)
}
