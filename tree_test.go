package ieg_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var fset = token.NewFileSet()

// source is one Go file of the module, or a snippet that stands for one.
type source struct {
	path string // slash-separated, from the module's root
	text string
	file *ast.File
}

func (s *source) dir() string        { return path.Dir(s.path) }
func (s *source) name() string       { return path.Base(s.path) }
func (s *source) test() bool         { return strings.HasSuffix(s.path, "_test.go") }
func (s *source) at(n ast.Node) int  { return fset.Position(n.Pos()).Line }
func (s *source) lines() []string    { return strings.Split(s.text, "\n") }
func (s *source) in(dir string) bool { return within(s.dir(), dir) }

// within tells whether dir is base or lies below it.
func within(dir, base string) bool { return dir == base || strings.HasPrefix(dir, base+"/") }

func importsOf(f *ast.File) []string {
	var list []string
	for _, i := range f.Imports {
		list = append(list, strings.Trim(i.Path.Value, `"`))
	}
	return list
}

func parse(path, text string) (*source, error) {
	f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path: path, text: text, file: f}, nil
}

// tree is every Go file of the module, read once.
var tree = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (d.Name()[0] == '.' || d.Name()[0] == '_' || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s, err := parse(filepath.ToSlash(p), string(text))
		if err == nil {
			all = append(all, s)
		}
		return err
	})
	return all, err
})

func sources(t *testing.T) []*source {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// packages groups the files that are no tests by folder.
func packages(all []*source) map[string][]*source {
	out := map[string][]*source{}
	for _, s := range all {
		if !s.test() {
			out[s.dir()] = append(out[s.dir()], s)
		}
	}
	return out
}

// rule is one law of the tree. Each must be able to fail: every bad snippet
// breaks it, no good one does.
type rule struct {
	name  string
	check func(*source) []string // findings, as "line: what and what to do"
	bad   []snippet
	good  []snippet
}

type snippet struct{ path, code string }

// hold runs a rule over its snippets and over the tree.
func (r rule) hold(t *testing.T) {
	t.Run(r.name, func(t *testing.T) {
		if len(r.bad) == 0 {
			t.Error("no snippet shows that this rule can fail")
		}
		for _, sn := range r.bad {
			if found := r.check(mustParse(t, sn)); len(found) == 0 {
				t.Errorf("accepts in %s:\n%s", sn.path, sn.code)
			}
		}
		for _, sn := range r.good {
			if found := r.check(mustParse(t, sn)); len(found) != 0 {
				t.Errorf("refuses in %s:\n%s\n%q", sn.path, sn.code, found)
			}
		}
		for _, s := range sources(t) {
			for _, f := range r.check(s) {
				t.Errorf("%s:%s", s.path, f)
			}
		}
	})
}

func mustParse(t *testing.T, sn snippet) *source {
	t.Helper()
	code := sn.code
	if !strings.Contains(code, "package ") {
		code = "package x\n" + code
	}
	s, err := parse(sn.path, code)
	if err != nil {
		t.Fatalf("snippet %q: %v", sn.code, err)
	}
	return s
}

func finding(line int, format string, a ...any) string {
	return fmt.Sprintf("%d: %s", line, fmt.Sprintf(format, a...))
}

// selector returns "pkg.Name" of a selector on a plain name.
func selector(n ast.Node) string {
	if s, ok := n.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// texts are the files that people read and git keeps or would keep: no build
// output, no fetched file.
func texts(t *testing.T) map[string]string {
	t.Helper()
	out, err := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard").Output()
	if err != nil {
		t.Skipf("git can't list the files here: %v", err)
	}
	list := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) { // removed, not committed yet
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.ContainsRune(text, 0) {
			list[name] = string(text)
		}
	}
	return list
}
