package ieg_test

import (
	"go/ast"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "ieg"

// arrows says what each top folder may import of the module, itself included.
// "." is the root package. Every arrow points to a lower level:
//
//	level 4   cmd   scripts (set-up programs)
//	level 3   api   bench
//	level 2   kernel   transfer
//	level 1   memory   devices   gossip
//	level 0   . (vocabulary)   cgo
var arrows = map[string][]string{
	"cmd":      {"cmd", "api", "bench", "kernel", "transfer", "memory", "devices", "gossip", ".", "cgo"},
	"scripts":  {"scripts", "api", "bench", "kernel", "transfer", "memory", "devices", "gossip", ".", "cgo"},
	"api":      {"api", "kernel", "."},
	"bench":    {"bench", "kernel", "memory", "devices", "."},
	"kernel":   {"kernel", "memory", "."},
	"transfer": {"transfer", "memory", "cgo", "."},
	"memory":   {"memory", "cgo", "."},
	"devices":  {"devices", "cgo", "."},
	"gossip":   {"gossip", "."},
	"cgo":      {"cgo"},
	".":        {"."},
}

// folders without Go that may stand at the top.
var otherFolders = []string{"bin", "deploy", "docs"}

// foreign says which folders may import what crosses the border to C.
var foreign = map[string][]string{
	"github.com/ebitengine/purego": {"cgo", "devices/engine/llama"},
	"github.com/jupiterrider/ffi":  {"cgo", "devices/engine/llama"},
	"github.com/hybridgroup/yzma":  {"cgo", "devices/engine/llama"},
	"github.com/NVIDIA/go-nvml":    {"cgo", "devices"},
	"C":                            nil,
}

func TestArrows(t *testing.T) {
	rule{
		name:  "imports point down",
		check: checkArrows,
		bad: []snippet{
			{"kernel/x.go", `import "ieg/devices/engine"`},
			{"kernel/sched/x.go", `import "ieg/transfer"`},
			{"kernel/x.go", `import "ieg/gossip"`},
			{"memory/x.go", `import "ieg/kernel"`},
			{"devices/x.go", `import "ieg/memory"`},
			{"gossip/x.go", `import "ieg/cgo/dl"`},
			{"cgo/dl/x.go", `import "ieg"`},
			{"api/openai/x.go", `import "ieg/devices"`},
			{"bench/load/x.go", `import "ieg/api/openai"`},
			{"api/x.go", `import "ieg/cmd/ieg/config"`},
			{"x.go", `import "ieg/memory/kv"`},
			{"x.go", `import "golang.org/x/sys/unix"`},
			{"x_test.go", `import "ieg/kernel"`},
			{"newfolder/x.go", `import "fmt"`},
		},
		good: []snippet{
			{"kernel/run/x.go", "import (\n\"ieg\"\n\"ieg/kernel\"\n\"ieg/memory/kv\"\n\"os\"\n)"},
			{"cmd/ieg/x.go", "import (\n\"ieg/api/openai\"\n\"ieg/devices/engine\"\n)"},
			{"x.go", `import "time"`},
		},
	}.hold(t)
}

// top is the top folder of a module-relative folder.
func top(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	return first
}

func checkArrows(s *source) []string {
	from := top(s.dir())
	allowed, known := arrows[from]
	if !known {
		return []string{finding(1, "unknown top folder %q: give it a level in arrows", from)}
	}
	var out []string
	for _, imp := range s.file.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		to, inside := strings.CutPrefix(p, module+"/")
		switch {
		case p == module:
			to, inside = ".", true
		case !inside && from == "." && !s.test() && strings.Contains(top(p), "."):
			out = append(out, finding(s.at(imp), "the root package imports the standard library only, not %s", p))
		}
		if inside && !slices.Contains(allowed, top(to)) {
			out = append(out, finding(s.at(imp), "%s may import %v, not %s", from, allowed, p))
		}
	}
	return out
}

func TestBorders(t *testing.T) {
	rule{
		name:  "foreign code only behind its fence",
		check: checkForeign,
		bad: []snippet{
			{"kernel/x.go", `import "github.com/ebitengine/purego"`},
			{"devices/engine/x.go", `import "github.com/hybridgroup/yzma/pkg/llama"`},
			{"bench/x.go", `import "github.com/jupiterrider/ffi"`},
			{"cgo/x.go", `import "C"`},
		},
		good: []snippet{
			{"cgo/dl/x.go", `import "github.com/ebitengine/purego"`},
			{"devices/engine/llama/x.go", `import "github.com/hybridgroup/yzma/pkg/llama"`},
		},
	}.hold(t)
	rule{
		name:  "unsafe only in *_unsafe.go",
		check: checkUnsafe,
		bad: []snippet{
			{"cgo/dl/dl.go", `import "unsafe"`},
			{"kernel/x_test.go", `import "unsafe"`},
			{"memory/x.go", "//go:linkname a b\nfunc a()"},
		},
		good: []snippet{
			{"cgo/dl/dl_unsafe.go", `import "unsafe"`},
			{"cgo/dl/dl_unsafe_test.go", `import "unsafe"`},
		},
	}.hold(t)
}

func checkForeign(s *source) []string {
	var out []string
	for _, imp := range s.file.Imports {
		p := strings.Trim(imp.Path.Value, `"`)
		for prefix, dirs := range foreign {
			if within(p, prefix) && !slices.ContainsFunc(dirs, s.in) {
				out = append(out, finding(s.at(imp), "%s may be imported in %v only", p, dirs))
			}
		}
	}
	return out
}

func checkUnsafe(s *source) []string {
	if strings.HasSuffix(strings.TrimSuffix(s.path, "_test.go"), "_unsafe") || strings.HasSuffix(s.path, "_unsafe.go") {
		return nil
	}
	var out []string
	for _, imp := range s.file.Imports {
		if imp.Path.Value == `"unsafe"` {
			out = append(out, finding(s.at(imp), "unsafe belongs in a file named *_unsafe.go"))
		}
	}
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:linkname") {
				out = append(out, finding(s.at(c), "linkname belongs in a file named *_unsafe.go"))
			}
		}
	}
	return out
}

// The walk and the go command must agree on what the module is, so that no
// package escapes the rules.
func TestEveryPackageIsSeen(t *testing.T) {
	out, err := exec.Command("go", "list", "-e", "-f", "{{.ImportPath}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var want []string
	for p := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		want = append(want, strings.TrimPrefix(strings.Replace(p, module, ".", 1), "./"))
	}
	seen := map[string]bool{}
	for _, s := range sources(t) {
		seen[s.dir()] = true
	}
	for _, p := range want {
		if !seen[p] {
			t.Errorf("package %s was not read", p)
		}
		delete(seen, p)
	}
	for p := range seen {
		t.Errorf("folder %s has Go files that the go command does not see (build tags only?)", p)
	}
}

func TestTopFolders(t *testing.T) {
	list, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if n := d.Name(); d.IsDir() && n[0] != '.' && !knownFolder(n) {
			t.Errorf("top folder %q is none of the project's: see docs/adr/0001-module-layout.md", n)
		}
	}
	if knownFolder("internal") || knownFolder("util") {
		t.Error("knows folders that it should not")
	}
}

func knownFolder(name string) bool {
	_, level := arrows[name]
	return level || slices.Contains(otherFolders, name)
}

func TestDoc(t *testing.T) {
	docRule := func(files []*source) (out []string) {
		var with []string
		for _, s := range files {
			if s.file.Doc != nil && documents(s.file) {
				with = append(with, s.name())
			}
		}
		if !slices.Equal(with, []string{"doc.go"}) {
			out = append(out, "wants its one package comment in doc.go, beginning with \"Package\" or \"Command\" and its name; found in "+strings.Join(with, ", "))
		}
		return out
	}
	for name, files := range map[string][]snippet{
		"none":      {{"a/x.go", "package a"}},
		"elsewhere": {{"a/x.go", "// Package a is.\npackage a"}},
		"twice":     {{"a/doc.go", "// Package a is.\npackage a"}, {"a/x.go", "// Package a was.\npackage a"}},
		"unnamed":   {{"a/doc.go", "// It does things.\npackage a"}},
	} {
		var list []*source
		for _, sn := range files {
			list = append(list, mustParse(t, sn))
		}
		if len(docRule(list)) == 0 {
			t.Errorf("accepts the case %q", name)
		}
	}
	for dir, files := range packages(sources(t)) {
		for _, f := range docRule(files) {
			t.Errorf("%s: %s", dir, f)
		}
	}
}

// documents tells whether the comment over the package clause speaks of the
// package; build constraints and notes on the file don't.
func documents(f *ast.File) bool {
	text := f.Doc.Text()
	return strings.HasPrefix(text, "Package "+f.Name.Name) || strings.HasPrefix(text, "Command ")
}
