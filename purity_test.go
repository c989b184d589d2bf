package ieg_test

import (
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"slices"
	"sort"
	"strings"
	"testing"
)

// pure are the packages that only decide: equal input gives equal output, on
// any machine, at any time.
var pure = []string{
	".", "kernel", "kernel/cost", "kernel/graph", "kernel/meter", "kernel/place",
	"kernel/sched", "kernel/spec", "memory/kv",
}

// pureStd are the packages of the standard library that pure code may use:
// none of them waits, draws, reads or writes.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding", "encoding/binary",
	"encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/fnv", "hash/maphash", "iter", "maps",
	"math", "math/big", "math/bits", "math/cmplx", "slices", "sort", "strconv", "strings", "time",
	"unicode", "unicode/utf16", "unicode/utf8",
}

// pureForeign are other modules' packages that decide only, and who may use
// them.
var pureForeign = map[string][]string{
	"github.com/goccy/go-yaml":        {"kernel/spec"},
	"github.com/goccy/go-yaml/ast":    {"kernel/spec"},
	"github.com/goccy/go-yaml/parser": {"kernel/spec"},
	"github.com/goccy/go-yaml/token":  {"kernel/spec"},
}

// Of these packages pure code may use some names only (when a list is given)
// or all but some.
var (
	onlyNames = map[string][]string{
		"time": {"Duration", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour", "ParseDuration"},
	}
	exceptNames = map[string][]string{
		"fmt":     {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
		"maphash": {"MakeSeed"},
		"big":     {"Rand"},
	}
)

func isPure(s *source) bool { return !s.test() && slices.Contains(pure, s.dir()) }

func TestPurity(t *testing.T) {
	rule{
		name:  "imports decide only",
		check: checkPureImports,
		bad: []snippet{
			{"kernel/x.go", `import "os"`},
			{"kernel/sched/x.go", `import "sync"`},
			{"kernel/x.go", `import "math/rand/v2"`},
			{"kernel/x.go", `import "log/slog"`},
			{"kernel/x.go", `import "context"`},
			{"kernel/x.go", `import "ieg/kernel/run"`},
			{"kernel/x.go", `import "github.com/prometheus/client_golang/prometheus"`},
			{"memory/kv/x.go", `import "net"`},
			{"kernel/x.go", `import . "time"`},
			{"x.go", `import "io"`},
		},
		good: []snippet{
			{"kernel/x.go", "import (\n\"ieg\"\n\"ieg/memory/kv\"\n\"slices\"\n)"},
			{"kernel/x_test.go", `import "os"`},
			{"kernel/run/x.go", `import "sync"`},
		},
	}.hold(t)
	rule{
		name:  "no clock, goroutine, channel or output",
		check: checkPureCode,
		bad: []snippet{
			{"kernel/x.go", "import \"time\"\nvar t = time.Now()"},
			{"kernel/x.go", "import \"time\"\nfunc f() { time.Sleep(1) }"},
			{"kernel/x.go", "import \"time\"\nfunc f() { <-time.After(1) }"},
			{"kernel/x.go", "import clock \"time\"\nvar t = clock.Now()"},
			{"kernel/x.go", "import \"time\"\nvar t time.Time"},
			{"kernel/x.go", "func f() { go f() }"},
			{"kernel/x.go", "var c chan int"},
			{"kernel/x.go", "func f(c <-chan int) { <-c }"},
			{"kernel/x.go", "func f() { select {} }"},
			{"kernel/x.go", "import \"fmt\"\nfunc f() { fmt.Println() }"},
			{"kernel/x.go", "func f() { println() }"},
			{"kernel/x.go", "func init() {}"},
		},
		good: []snippet{
			{"kernel/x.go", "import \"time\"\nconst d time.Duration = 3 * time.Second"},
			{"kernel/x.go", "import \"fmt\"\nvar s = fmt.Sprintf(\"%d\", 1)"},
			{"kernel/run/x.go", "func f() { go f() }"},
			{"kernel/x_test.go", "func f() { go f() }"},
		},
	}.hold(t)
}

func checkPureImports(s *source) []string {
	if !isPure(s) {
		return nil
	}
	var out []string
	for _, imp := range s.file.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		inside := strings.TrimPrefix(p, module+"/")
		if p == module {
			inside = "."
		}
		ok := slices.Contains(pureStd, p) || slices.Contains(pureForeign[p], s.dir()) ||
			inside != p && slices.Contains(pure, inside)
		if !ok {
			out = append(out, finding(s.at(imp), "pure code must not import %s", p))
		}
		if imp.Name != nil && imp.Name.Name == "." {
			out = append(out, finding(s.at(imp), "a dot import hides what is used"))
		}
	}
	return out
}

// localNames maps the names under which a file knows its imports to the last
// element of their paths.
func localNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, imp := range f.Imports {
		base := path.Base(strings.Trim(imp.Path.Value, `"`))
		if imp.Name != nil {
			names[imp.Name.Name] = base
		} else {
			names[base] = base
		}
	}
	return names
}

func checkPureCode(s *source) (out []string) {
	if !isPure(s) {
		return nil
	}
	names := localNames(s.file)
	add := func(n ast.Node, what string) { out = append(out, finding(s.at(n), "pure code has %s", what)) }
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "no goroutine")
		case *ast.ChanType:
			add(n, "no channel")
		case *ast.SelectStmt:
			add(n, "no select")
		case *ast.SendStmt:
			add(n, "no channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				add(n, "no channel")
			}
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				add(n, "no init: what happens before the first call is hidden")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				add(n, "no output")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				pkg, name := names[x.Name], n.Sel.Name
				only, some := onlyNames[pkg]
				if some && !slices.Contains(only, name) || slices.Contains(exceptNames[pkg], name) {
					add(n, "no "+pkg+"."+name+": what changes from run to run is an argument")
				}
			}
		}
		return true
	})
	return out
}

// A range over a map must not decide: it is followed by a sort of what it
// gathered, or a comment says why any order gives the same.
const anyOrder = "//ieg:anyorder "

func TestMapOrder(t *testing.T) {
	head := "package kernel\nimport (\n\"maps\"\n\"slices\"\n\"sort\"\n)\nvar _ = maps.Keys[map[int]int]\nvar _ = slices.Max[[]int]\nvar _ = sort.Ints\nvar m map[int]int\ntype named map[string]bool\n"
	for _, c := range []struct {
		ok   bool
		code string
	}{
		{false, "func f() (n int) { for _, v := range m { n = v }; return }"},
		{false, "func f(x named) (n string) { for k := range x { n = k }; return }"},
		{false, "func f() (l []int) { for k := range m { l = append(l, k) }; return l }"},
		{false, "func f() (l []int) { for k := range maps.Keys(m) { l = append(l, k) }; return l }"},
		{false, "func f() []int { return slices.Collect(maps.Values(m)) }"},
		{false, "func f() (l, o []int) { for k := range m { l = append(l, k) }; slices.Sort(o); return l }"},
		{false, "func f() (l []int) { for k := range m { l = append(l, k) }; if len(l) > 3 { return l }; l = l[:1]; slices.Sort(l); return l }"},
		{false, "func f() (n int) {\n//ieg:anyorder \nfor _, v := range m { n = v }\nreturn }"},
		{true, "func f() (n int) {\n//ieg:anyorder a sum\nfor _, v := range m { n += v }\nreturn }"},
		{true, "func f() (n int) {\nfor _, v := range m { //ieg:anyorder a sum\nn += v }\nreturn }"},
		{true, "func f() (l []int) { for k := range m { l = append(l, k) }; slices.Sort(l); return l }"},
		{true, "func f() (l []int) { for k, v := range m { if v > 0 { l = append(l, k) } }; sort.Ints(l); return l }"},
		{true, "func f() []int { return slices.Sorted(maps.Keys(m)) }"},
		{true, "func f() (n int) { for _, k := range slices.Sorted(maps.Keys(m)) { n = k }; return }"},
		{true, "func f(l []int) (n int) { for _, v := range l { n = v }; return }"},
	} {
		found := mapOrder(t, newChecker(), "kernel", []*source{mustParse(t, snippet{"kernel/x.go", head + c.code})})
		if (len(found) == 0) != c.ok {
			t.Errorf("%s\nfound %q", c.code, found)
		}
	}
	byDir := packages(sources(t))
	c := newChecker()
	for _, dir := range pure {
		for _, f := range mapOrder(t, c, dir, byDir[dir]) {
			t.Error(f)
		}
	}
}

// checker gives types to pure packages; they import each other and the
// standard library only, read from source.
type checker struct {
	std  types.ImporterFrom
	own  map[string]*types.Package
	info map[string]*types.Info
}

var stdSource = importer.ForCompiler(fset, "source", nil).(types.ImporterFrom)

func newChecker() *checker {
	return &checker{std: stdSource, own: map[string]*types.Package{}, info: map[string]*types.Info{}}
}

// Import gives a package that a pure one imports. Other modules' packages
// become empty: their types don't matter here.
func (c *checker) Import(p string) (*types.Package, error) {
	inside, own := strings.CutPrefix(p, module+"/")
	switch {
	case p == module:
		inside, own = ".", true
	case slices.Contains(pureStd, p):
		return c.std.ImportFrom(p, ".", 0)
	}
	if own {
		if done := c.own[inside]; done != nil {
			return done, nil
		}
		all, err := tree()
		if err != nil {
			return nil, err
		}
		pkg, _ := c.check(inside, packages(all)[inside])
		return pkg, nil
	}
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

func (c *checker) check(dir string, files []*source) (*types.Package, *types.Info) {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	// Errors are the compiler's to report; types that are known are enough.
	conf := types.Config{Importer: c, Error: func(error) {}, FakeImportC: true}
	var list []*ast.File
	for _, s := range files {
		list = append(list, s.file)
	}
	pkg, _ := conf.Check(module+"/"+dir, fset, list, info)
	c.own[dir], c.info[dir] = pkg, info
	return pkg, info
}

func mapOrder(t *testing.T, c *checker, dir string, files []*source) (out []string) {
	t.Helper()
	info := c.info[dir]
	if info == nil {
		_, info = c.check(dir, files)
	}
	for _, s := range files {
		for _, n := range unordered(s, info) {
			line := s.at(n)
			if !annotated(s, line) {
				out = append(out, s.path+":"+finding(line, "map order: sort what is gathered, or say after %sabove it why any order gives the same", anyOrder))
			}
		}
	}
	sort.Strings(out)
	return out
}

func annotated(s *source, line int) bool {
	lines := s.lines()
	for _, l := range []int{line, line - 1} {
		if l < 1 || l > len(lines) {
			continue
		}
		if _, why, ok := strings.Cut(lines[l-1], anyOrder); ok && len(strings.TrimSpace(why)) >= 5 {
			return true
		}
	}
	return false
}

// unordered finds the loops over maps whose gathered slice isn't sorted by the
// next statement, and the uses of maps' iterators outside slices.Sorted….
func unordered(s *source, info *types.Info) (found []ast.Node) {
	sorted := map[ast.Node]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := selector(n.Fun)
			if strings.HasPrefix(name, "slices.Sorted") {
				for _, a := range n.Args {
					sorted[a] = true
				}
			}
			if (name == "maps.Keys" || name == "maps.Values" || name == "maps.All") && !sorted[n] {
				found = append(found, n)
			}
		case *ast.BlockStmt:
			markSorted(n.List, sorted)
		case *ast.CaseClause:
			markSorted(n.Body, sorted)
		case *ast.RangeStmt:
			tv, ok := info.Types[n.X]
			if !ok || tv.Type == nil {
				break
			}
			if _, isMap := tv.Type.Underlying().(*types.Map); isMap && !sorted[n] {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// markSorted notes the loops that a sort of what they append to follows.
func markSorted(list []ast.Stmt, sorted map[ast.Node]bool) {
	for i := 0; i+1 < len(list); i++ {
		loop, ok := list[i].(*ast.RangeStmt)
		if !ok {
			continue
		}
		expr, ok := list[i+1].(*ast.ExprStmt)
		if !ok {
			continue
		}
		call, ok := expr.X.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		name := selector(call.Fun)
		if !strings.HasPrefix(name, "slices.Sort") && !strings.HasPrefix(name, "sort.") {
			continue
		}
		if target := types.ExprString(call.Args[0]); appendsOnlyTo(loop.Body.List, target) {
			sorted[loop] = true
		}
	}
}

// appendsOnlyTo tells whether statements only append to one slice, perhaps
// under a condition.
func appendsOnlyTo(list []ast.Stmt, target string) bool {
	for _, st := range list {
		switch st := st.(type) {
		case *ast.AssignStmt:
			if len(st.Lhs) != 1 || types.ExprString(st.Lhs[0]) != target {
				return false
			}
		case *ast.IfStmt:
			if st.Else != nil || !appendsOnlyTo(st.Body.List, target) {
				return false
			}
		case *ast.BranchStmt:
			if st.Tok != token.CONTINUE {
				return false
			}
		default:
			return false
		}
	}
	return true
}
