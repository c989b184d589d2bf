package config

import (
	"encoding"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	yaml "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// ErrConfig is the identity of every error of a configuration.
var ErrConfig = errors.New("configuration")

// Error is one error of a configuration, with its place.
type Error struct {
	File         string // "" for flags and environment
	Line, Column int
	Field        string
	Text         string
}

// Error is "FILE:LINE:COLUMN: FIELD: TEXT".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Column)
	}
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	return b.String() + e.Text
}

// Is makes every Error an ErrConfig.
func (e *Error) Is(target error) bool { return target == ErrConfig }

// ReadFile takes in a YAML file over what e holds. Paths in it are relative
// to its folder.
func (e *Effective) ReadFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return &Error{Text: fmt.Sprintf("%v; name an existing file by --config", err)}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, FileBytesMax+1))
	if err != nil {
		return &Error{Text: err.Error()}
	}
	if len(data) > FileBytesMax {
		return &Error{Text: fmt.Sprintf("%s has more than %d bytes", name, FileBytesMax)}
	}
	if err := e.read(name, data); err != nil {
		return err
	}
	e.file = name
	e.resolve(filepath.Dir(name))
	return nil
}

func (e *Effective) read(name string, data []byte) error {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return syntaxError(name, err)
	}
	d := &decoder{file: name, sources: e.sources, columns: e.columns}
	for i, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.NullType || doc.Body.Type() == ast.CommentType {
			continue
		}
		if i > 0 {
			d.fail(doc.Body, "", "more than one document; keep one")
			break
		}
		d.value(doc.Body, reflect.ValueOf(&e.Config).Elem(), "", 0)
		if d.blocks {
			d.errs = append(d.errs, e.readBlocks(name, data, rootMapping(doc.Body)))
		}
	}
	return errors.Join(d.errs...)
}

func syntaxError(name string, err error) error {
	out := &Error{File: name, Text: err.Error()}
	var y yaml.Error
	if errors.As(err, &y) {
		out.Text = y.GetMessage()
		if t := y.GetToken(); t != nil && t.Position != nil {
			out.Line, out.Column = t.Position.Line, t.Position.Column
		}
	}
	return out
}

// decoder walks the syntax tree beside the Go value, so that each error has
// its place and each value its own.
type decoder struct {
	file    string
	sources map[string]string
	columns map[string]int
	errs    []error
	blocks  bool // keys of kernel/spec were seen
}

func (d *decoder) fail(n ast.Node, field, format string, args ...any) {
	if len(d.errs) >= ErrorsMax {
		return
	}
	e := &Error{File: d.file, Field: field, Text: fmt.Sprintf(format, args...)}
	if p := place(n); p != nil {
		e.Line, e.Column = p.Line, p.Column
	}
	d.errs = append(d.errs, e)
}

// place is where a node begins; a mapping's own token is its first colon.
func place(n ast.Node) *token.Position {
	for n != nil {
		switch m := n.(type) {
		case *ast.MappingNode:
			if len(m.Values) == 0 {
				return m.Start.Position
			}
			n = m.Values[0].Key
		case *ast.MappingValueNode:
			n = m.Key
		default:
			if t := n.GetToken(); t != nil {
				return t.Position
			}
			return nil
		}
	}
	return nil
}

func (d *decoder) value(n ast.Node, v reflect.Value, path string, depth int) {
	switch {
	case depth > DepthMax:
		d.fail(n, path, "nested more than %d deep", DepthMax)
	case n == nil || n.Type() == ast.NullType:
		d.fail(n, path, "empty; give it a value or leave it out")
	case n.Type() == ast.AliasType || n.Type() == ast.AnchorType || n.Type() == ast.MergeKeyType:
		d.fail(n, path, "anchors and aliases are not taken; write the value out")
	case isScalar(v):
		d.scalar(n, v, path)
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, path, depth)
	case v.Kind() == reflect.Slice:
		d.sequence(n, v, path, depth)
	}
}

// rootMapping is a node as a mapping, nil if it is none.
func rootMapping(n ast.Node) *ast.MappingNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m
	case *ast.MappingValueNode:
		return &ast.MappingNode{Values: []*ast.MappingValueNode{m}}
	}
	return nil
}

func isScalar(v reflect.Value) bool {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return true
	}
	return v.Kind() != reflect.Struct && v.Kind() != reflect.Slice
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string, depth int) {
	m := rootMapping(n)
	if m == nil {
		d.fail(n, path, "wants keys and values, not %s", kindOf(n))
		return
	}
	seen := map[string]bool{}
	for _, p := range m.Values {
		key := p.Key.GetToken().Value
		if p.Key.Type() != ast.StringType {
			d.fail(p.Key, path, "the key %q is no plain text", key)
			continue
		}
		i, ok := fieldIndex(v.Type(), key)
		at := join(path, key)
		switch {
		case path == "" && slices.Contains(blockKeys, key):
			d.blocks = true
		case !ok && path == "":
			d.fail(p.Key, at, "unknown key%s", suggest(key, append(keysOf(v.Type()), blockKeys...)))
		case !ok:
			d.fail(p.Key, at, "unknown key%s", suggest(key, keysOf(v.Type())))
		case seen[key]:
			d.fail(p.Key, at, "given twice")
		default:
			d.value(p.Value, v.Field(i), at, depth+1)
		}
		seen[key] = true
	}
}

func (d *decoder) sequence(n ast.Node, v reflect.Value, path string, depth int) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(n, path, "wants a list, not %s", kindOf(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values))
	for i, item := range s.Values {
		if out.Type().Elem() == reflect.TypeFor[Model]() {
			out.Index(i).Set(reflect.ValueOf(DefaultModel()))
		}
		d.value(item, out.Index(i), index(path, i), depth+1)
	}
	d.source(n, path)
	v.Set(out)
}

func (d *decoder) source(n ast.Node, path string) {
	line := 0
	if p := place(n); p != nil {
		line, d.columns[path] = p.Line, p.Column
	}
	d.sources[path] = source(d.file, line)
}

func source(file string, line int) string { return fmt.Sprintf("%s:%d", file, line) }

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	s, ok := n.(ast.ScalarNode)
	if !ok {
		d.fail(n, path, "wants %s, not %s", wants(v), kindOf(n))
		return
	}
	text := n.GetToken().Value
	if lit, ok := n.(*ast.LiteralNode); ok {
		text = lit.Value.Value
	}
	if v.Kind() == reflect.String && n.Type() != ast.StringType && n.Type() != ast.LiteralType {
		// A name may look like a number; it is taken as written.
		text = strings.TrimSpace(s.GetToken().Origin)
	}
	if err := setText(v, text); err != nil {
		d.fail(n, path, "wants %s, not %q", wants(v), text)
		return
	}
	d.source(n, path)
}

func kindOf(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	case nil:
		return "nothing"
	}
	return fmt.Sprintf("%q", n.GetToken().Value)
}
