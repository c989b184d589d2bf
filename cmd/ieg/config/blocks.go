package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"ieg/kernel/spec"
)

// blockKeys are the top-level keys that kernel/spec reads.
var blockKeys = func() []string {
	def := spec.Default()
	var keys []string
	for _, f := range def.Fields() {
		keys = append(keys, f.Key)
	}
	return keys
}()

// readBlocks gives kernel/spec its part of the file. The lines of all other
// keys are emptied, so that places stay right.
func (e *Effective) readBlocks(name string, data []byte, root *ast.MappingNode) error {
	if root.IsFlowStyle {
		return &Error{File: name, Line: 1, Column: 1, Text: "write the top level without braces, one key a line"}
	}
	lines := strings.Split(string(data), "\n")
	from := 0 // what stands before the first key is a comment
	blank := true
	for _, p := range root.Values {
		at := p.Key.GetToken().Position.Line - 1
		if blank {
			clear(lines[from:at])
		}
		from, blank = at, !slices.Contains(blockKeys, p.Key.GetToken().Value)
	}
	if blank {
		clear(lines[from:])
	}
	got, err := spec.Parse([]byte(strings.Join(lines, "\n")))
	if err != nil {
		return withFile(name, err)
	}
	e.Spec = got
	for _, g := range got.Given {
		e.sources[g.Path], e.columns[g.Path] = source(name, g.Line), g.Column
	}
	return nil
}

// withFile turns the errors of kernel/spec into this package's.
func withFile(name string, err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok && !isPlaced(err) {
		var out []error
		for _, e := range many.Unwrap() {
			out = append(out, withFile(name, e))
		}
		return errors.Join(out...)
	}
	var at *spec.Error
	if !errors.As(err, &at) {
		return &Error{File: name, Line: 1, Column: 1, Text: err.Error()}
	}
	out := &Error{File: name, Line: at.Line, Column: at.Column, Field: at.Path, Text: at.Msg}
	if at.Suggestion != "" {
		out.Text += "; did you mean \"" + at.Suggestion + "\"?"
	}
	return out
}

// isPlaced tells a single error with a place from a list of them.
func isPlaced(err error) bool {
	return errors.Is(err, spec.ErrNotYet) && !strings.Contains(err.Error(), "\n")
}

// leafLine is a printed value: its path, its line from 0 and its text.
type leafLine struct {
	path, text string
	line       int
}

// blockLeaves finds the values in the text of the blocks.
func blockLeaves(text string) []leafLine {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic("config: the blocks don't read back: " + err.Error())
	}
	var out []leafLine
	for _, doc := range file.Docs {
		walk(doc.Body, "", func(path string, n ast.Node) {
			out = append(out, leafLine{path: path, text: strings.TrimSpace(n.String()), line: place(n).Line - 1})
		})
	}
	return out
}

// walk visits values and one-line lists with their paths.
func walk(n ast.Node, path string, visit func(string, ast.Node)) {
	switch m := n.(type) {
	case *ast.MappingNode:
		for _, v := range m.Values {
			walk(v, path, visit)
		}
	case *ast.MappingValueNode:
		walk(m.Value, join(path, m.Key.GetToken().Value), visit)
	case *ast.SequenceNode:
		if m.IsFlowStyle {
			visit(path, m)
			return
		}
		for i, v := range m.Values {
			walk(v, index(path, i), visit)
		}
	case nil:
	default:
		visit(path, n)
	}
}

// blocksYAML prints the blocks that take effect with the source of each value.
func (e *Effective) blocksYAML() string {
	text := e.Spec.Effective()
	lines := strings.Split(text, "\n")
	for _, l := range blockLeaves(text) {
		lines[l.line] += "  # " + e.Source(l.path)
	}
	return strings.Join(lines, "\n")
}
