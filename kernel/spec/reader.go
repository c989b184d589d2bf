package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// ErrSpec is the identity of all errors of a text.
var ErrSpec = errors.New("configuration")

// Error is one error at its place in the text.
type Error struct {
	Line, Column int    // from 1
	Path         string // dag_constraints.max_depth
	Msg          string
	Suggestion   string // the key that was probably meant
}

// Error names place, path, trouble and suggestion.
func (e *Error) Error() string {
	s := fmt.Sprintf("line %d, column %d: ", e.Line, e.Column)
	if e.Path != "" {
		s += e.Path + ": "
	}
	s += e.Msg
	if e.Suggestion != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Suggestion)
	}
	return s
}

// Unwrap gives the error its identity.
func (e *Error) Unwrap() error { return ErrSpec }

// Given is a key that a text sets, with its place.
type Given struct {
	Path         string
	Line, Column int
}

// Read reads a YAML text into bound fields: every key must be one of them.
// Values that the text does not name are left as they are. It returns the
// keys that were given, in their order; errors are joined, each an *Error.
func Read(text []byte, fields ...Field) ([]Given, error) {
	r := &reader{}
	body, err := parse(text)
	switch {
	case err != nil:
		return nil, err
	case body != nil:
		r.mapping("", body, fields)
	}
	return r.given, errors.Join(r.errs...)
}

// parse gives the one document's body; nil for an empty text.
func parse(text []byte) (body ast.Node, err error) {
	if len(text) > MaxBytes {
		return nil, &Error{Line: 1, Column: 1, Msg: fmt.Sprintf("the text has %d bytes; at most %d are read", len(text), MaxBytes)}
	}
	if !utf8.Valid(text) {
		return nil, &Error{Line: 1, Column: 1, Msg: "the text is not UTF-8"}
	}
	// The YAML parser is somebody else's and panics on some broken texts.
	defer func() {
		if broken := recover(); broken != nil {
			body, err = nil, &Error{Line: 1, Column: 1, Msg: fmt.Sprintf("not YAML: %v", broken)}
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, syntax(err)
	}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			line, column := place(d.Body)
			return nil, &Error{Line: line, Column: column, Msg: "a second document begins; write one"}
		}
		body = d.Body
	}
	if body != nil && body.Type() == ast.NullType {
		return nil, nil
	}
	return body, nil
}

// syntax turns a parser error into ours.
func syntax(err error) error {
	e := &Error{Line: 1, Column: 1, Msg: err.Error()}
	if y := yaml.Error(nil); errors.As(err, &y) {
		e.Msg = y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			e.Line, e.Column = t.Position.Line, t.Position.Column
		}
	}
	return e
}

type reader struct {
	given []Given
	errs  []error
}

func place(n ast.Node) (line, column int) {
	if n != nil {
		if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
			n = m.Values[0].Key
		}
		if t := n.GetToken(); t != nil && t.Position != nil {
			return t.Position.Line, t.Position.Column
		}
	}
	return 1, 1
}

func (r *reader) fail(n ast.Node, path, msg, suggestion string) {
	if len(r.errs) >= MaxErrors {
		return
	}
	line, column := place(n)
	r.errs = append(r.errs, &Error{Line: line, Column: column, Path: path, Msg: msg, Suggestion: suggestion})
}

// kind names a YAML node for people.
func kind(n ast.Node) string {
	switch n.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias"
	case *ast.TagNode:
		return "a tag"
	}
	return "a value"
}

// text gives the text of a scalar as it was written.
func (r *reader) text(path string, n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return strings.TrimSpace(n.GetToken().Value), true
	}
	r.fail(n, path, "expected a value, found "+kind(n), "")
	return "", false
}

type pair struct {
	key   string
	node  ast.Node // the key's
	value ast.Node
}

// pairs lists the keys of a mapping, each once.
func (r *reader) pairs(path string, n ast.Node) ([]pair, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		r.fail(n, path, "expected keys with values, found "+kind(n), "")
		return nil, false
	}
	if len(values) > MaxItems {
		r.fail(n, path, fmt.Sprintf("%d keys; at most %d", len(values), MaxItems), "")
		return nil, false
	}
	seen := make(map[string]bool, len(values))
	out := make([]pair, 0, len(values))
	for _, v := range values {
		node, isNode := v.Key.(ast.Node)
		if !isNode || v.Key.IsMergeKey() {
			r.fail(v, path, "merge keys are not read", "")
			continue
		}
		key, ok := r.text(path, node)
		if !ok {
			continue
		}
		if seen[key] {
			r.fail(node, join(path, key), "given twice", "")
			continue
		}
		seen[key] = true
		out = append(out, pair{key, node, v.Value})
	}
	return out, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// mapping reads the keys of a mapping into fields.
func (r *reader) mapping(path string, n ast.Node, fields []Field) {
	pairs, ok := r.pairs(path, n)
	if !ok {
		return
	}
	for _, p := range pairs {
		at := join(path, p.key)
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Key == p.key })
		if i < 0 {
			r.fail(p.node, at, "unknown key", nearest(p.key, keys(fields)))
			continue
		}
		line, column := place(p.node)
		r.given = append(r.given, Given{at, line, column})
		fields[i].value.read(r, at, p.value)
	}
}

func keys(fields []Field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Key
	}
	return out
}

// sequence lists the items of a list.
func (r *reader) sequence(path string, n ast.Node) ([]ast.Node, bool) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, path, "expected a list, found "+kind(n), "")
		return nil, false
	}
	if len(s.Values) > MaxItems {
		r.fail(n, path, fmt.Sprintf("%d items; at most %d", len(s.Values), MaxItems), "")
		return nil, false
	}
	return s.Values, true
}

// unwrap gives the inside of a mapping that has the one key wrap.
func (r *reader) unwrap(n ast.Node, wrap string) ast.Node {
	var v *ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		if len(n.Values) == 1 {
			v = n.Values[0]
		}
	case *ast.MappingValueNode:
		v = n
	}
	if v == nil || wrap == "" {
		return nil
	}
	if key, ok := v.Key.(*ast.StringNode); ok && key.Value == wrap {
		return v.Value
	}
	return nil
}

// nearest is the word with the fewest edits from s, or one that goes on where
// s ends; "" if all are far.
func nearest(s string, words []string) string {
	best, most := "", suggestDistance+1
	for _, w := range words {
		if len(s) >= 4 && strings.HasPrefix(w, s) {
			return w
		}
		if d := edits(s, w); d < most && d*2 < len(w)+1 {
			best, most = w, d
		}
	}
	return best
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
