package ieg_test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	maxFileLines = 600
	// maxFuncLines bounds a function of the program; tests may be long tables.
	maxFuncLines = 80
)

var (
	bannedFolders = []string{"common", "helper", "helpers", "misc", "pkg", "shared", "util", "utils"}
	bannedType    = regexp.MustCompile(`(Manager|Helper|Helpers|Util|Utils|Base|Impl|Handler)$`)
)

func TestTidyGo(t *testing.T) {
	rule{
		name:  "folders have names that say what they own",
		check: checkFolder,
		bad:   []snippet{{"kernel/util/x.go", ""}, {"devices/common/x.go", ""}, {"api/helpers/x_test.go", ""}},
		good:  []snippet{{"kernel/sched/x.go", ""}},
	}.hold(t)
	rule{
		name:  "types have names that say what they are",
		check: checkTypeNames,
		bad: []snippet{
			{"kernel/x.go", "type SlotManager struct{}"},
			{"kernel/x.go", "type engineImpl int"},
			{"kernel/x.go", "type Base = int"},
			{"kernel/x.go", "type EventHandler func()"},
		},
		good: []snippet{
			{"api/openai/x.go", "import \"net/http\"\ntype chatHandler struct{ http.Handler }"},
			{"kernel/x.go", "type Machine struct{}"},
		},
	}.hold(t)
	long := strings.Repeat("\n", maxFileLines)
	rule{
		name:  "files and functions fit in a sitting",
		check: checkLength,
		bad: []snippet{
			{"kernel/x.go", long},
			{"kernel/x_test.go", long},
			{"kernel/x.go", "func f() {" + strings.Repeat("\n", maxFuncLines) + "}"},
		},
		good: []snippet{{"kernel/x.go", "func f() {\n}"}, {"kernel/x_test.go", "func f() {" + strings.Repeat("\n", maxFuncLines) + "}"}},
	}.hold(t)
	rule{
		name:  "tests don't wait for time and say why they are skipped",
		check: checkTests,
		bad: []snippet{
			{"kernel/x_test.go", "import \"time\"\nfunc TestX(t *testing.T) { time.Sleep(1) }"},
			{"kernel/x_test.go", "func TestX(t *testing.T) { t.SkipNow() }"},
			{"kernel/x_test.go", "func TestX(t *testing.T) { t.Skip() }"},
			{"kernel/x_test.go", "func TestX(t *testing.T) { t.Skip(\"\") }"},
		},
		good: []snippet{
			{"kernel/x_test.go", "func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }"},
			{"kernel/x_test.go", "func TestX(t *testing.T) { t.Skip(\"no libraries here\") }"},
			{"kernel/x_test.go", "func victim() { time.Sleep(time.Hour) }"},
			{"kernel/x.go", "func f() { time.Sleep(1) }"},
		},
	}.hold(t)
}

func checkFolder(s *source) (out []string) {
	for part := range strings.SplitSeq(s.dir(), "/") {
		if slices.Contains(bannedFolders, part) {
			out = append(out, finding(1, "a folder named %q gathers what has no owner; name what it owns", part))
		}
	}
	return out
}

func checkTypeNames(s *source) (out []string) {
	http := slices.Contains(importsOf(s.file), "net/http")
	ast.Inspect(s.file, func(n ast.Node) bool {
		if ts, ok := n.(*ast.TypeSpec); ok {
			word := bannedType.FindString(upperFirst(ts.Name.Name))
			if word != "" && !(word == "Handler" && http) {
				out = append(out, finding(s.at(ts), "type %s: %q says nothing about it", ts.Name.Name, word))
			}
		}
		return true
	})
	return out
}

func upperFirst(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

func checkLength(s *source) (out []string) {
	if n := len(s.lines()); n > maxFileLines {
		out = append(out, finding(n, "%d lines; at most %d: split it by what it owns", n, maxFileLines))
	}
	if s.test() {
		return out
	}
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			if n := fset.Position(f.End()).Line - s.at(f) + 1; n > maxFuncLines {
				out = append(out, finding(s.at(f), "%s has %d lines; at most %d", f.Name.Name, n, maxFuncLines))
			}
		}
	}
	return out
}

func checkTests(s *source) (out []string) {
	if !s.test() {
		return nil
	}
	var bubbles []ast.Node // a bubble's clock is its own
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok && selector(c.Fun) == "synctest.Test" {
			bubbles = append(bubbles, c)
		}
		return true
	})
	inBubble := func(n ast.Node) bool {
		return slices.ContainsFunc(bubbles, func(b ast.Node) bool { return b.Pos() <= n.Pos() && n.End() <= b.End() })
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		c, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := selector(c.Fun)
		switch {
		case name == "time.Sleep" && !inBubble(c) && selector(c.Args[0]) != "time.Hour": // an hour: until killed
			out = append(out, finding(s.at(c), "time.Sleep outside synctest.Test: wait for a condition"))
		case strings.HasSuffix(name, ".SkipNow"),
			strings.HasSuffix(name, ".Skip") && (len(c.Args) == 0 || emptyString(c.Args[0])):
			out = append(out, finding(s.at(c), "a skipped test says why"))
		}
		return true
	})
	return out
}

func emptyString(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && (l.Value == `""` || l.Value == "``")
}

// Words are put together here so that this file doesn't hold them.
var (
	unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b|(?i)\bfor n` + `ow\b|not imple` + `mented|not yet imple` + `mented`)
	machine    = regexp.MustCompile(`(^|[\s"'=(:])/(wo` + `rk|ro` + `ot|home/[a-z]+)/`)
	address    = regexp.MustCompile(`\bhttps?://[^\s"'<>)\]` + "`" + `]+`)
	// registryWord are settings that point a package client elsewhere: the
	// machine's own settings hold.
	registryWord = regexp.MustCompile(`--index` + `-url|--extra-index` + `-url|--reg` + `istry\b|GO` + `PROXY=|npm_config_reg` + `istry`)
	// An address in the repository is one of this machine or of nobody.
	harmless = regexp.MustCompile(`^https?://(127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0|[a-z0-9.-]*example\.(com|org|net)|[a-z0-9-]+\.(test|invalid|example)|[a-z]+\.lan|\$|%s|%v|\{|\(|www\.w3\.org/2000/svg|json-schema\.org)|^https?://(evil|attacker|other|host|x|a|unix|ieg|admin|node)\b`)
	binaries = regexp.MustCompile(`\.(gguf|so|safetensors|whl|tgz|gz|zip|onnx|pprof|test|exe|bin)$`)
)

func textFindings(name, text string) (out []string) {
	if binaries.MatchString(name) {
		return []string{"is no source: it is fetched or built, never committed"}
	}
	if path.Base(name) == "go.sum" || path.Base(name) == "go.mod" {
		return nil
	}
	for i, line := range strings.Split(text, "\n") {
		add := func(what string, m string) { out = append(out, fmt.Sprintf("%d: %s: %q", i+1, what, m)) }
		if m := unfinished.FindString(line); m != "" {
			add("finish it or file it", m)
		}
		if m := machine.FindString(line); m != "" {
			add("path of one machine", m)
		}
		if m := registryWord.FindString(line); m != "" {
			add("packages are named, the client knows from where", m)
		}
		for _, m := range address.FindAllString(line, -1) {
			if !harmless.MatchString(m) {
				add("address of a host that is not ours", m)
			}
		}
	}
	return out
}

func TestTidyText(t *testing.T) {
	for _, bad := range []snippet{
		{"a.go", "// TO" + "DO: later"},
		{"a.sh", "# FIX" + "ME"},
		{"a.go", "// For n" + "ow we wait"},
		{"a.go", `errors.New("not imple` + `mented")`},
		{"a.md", "see /wo" + "rk/main"},
		{"a.go", `open("/ro` + `ot/x")`},
		{"a.md", "from ht" + "tps://files.somewhere.io/simple/"},
		{"a.sh", "pip install --index" + "-url x"},
		{"models/a.gguf", "GGUF"},
	} {
		if len(textFindings(bad.path, bad.code)) == 0 {
			t.Errorf("accepts in %s: %s", bad.path, bad.code)
		}
	}
	for _, good := range []snippet{
		{"a.md", "curl http://127.0.0.1:9430/v1/models"},
		{"a.go", "// a network is down for nowhere"},
		{"a.go", `req("http://node.test/v1")`},
	} {
		if found := textFindings(good.path, good.code); len(found) > 0 {
			t.Errorf("refuses in %s: %s: %q", good.path, good.code, found)
		}
	}
	for name, text := range texts(t) {
		for _, f := range textFindings(name, text) {
			t.Errorf("%s:%s", name, f)
		}
	}
}
