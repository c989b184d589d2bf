package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// load parses a command line after writing file as ieg.yaml, if not empty.
func load(t *testing.T, file string, args ...string) (*Effective, string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "ieg.yaml")
	if file != "" {
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	f := Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	e, err := f.Load()
	return e, name, err
}

func TestSourcesAndOrder(t *testing.T) {
	t.Setenv("IEG_MAX_QUEUE", "7")
	t.Setenv("IEG_LOG_LEVEL", "debug")
	e, name, err := load(t, `
listen: 127.0.0.1:1
max_queue: 5
models:
  - path: sub/m.gguf
    ctx: 100
    aliases: [gpt-4o, "x"]
classes: {P0: {ttft: 1s}}
`, "--log-level", "warn", "--slots=3")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"listen":             name + ":2",
		"max_queue":          "env IEG_MAX_QUEUE",
		"log_level":          "flag --log-level",
		"models[0].ctx":      name + ":6",
		"models[0].slots":    "flag --slots",
		"models[0].kv_type":  "default",
		"classes.P0.ttft":    name + ":8",
		"classes.P0.itl":     "default",
		"drain_timeout":      "default",
		"scheduler.no_field": "default",
	} {
		if got := e.Source(path); got != want {
			t.Errorf("source of %s: %q, want %q", path, got, want)
		}
	}
	m := e.Models[0]
	if e.MaxQueue != 7 || e.LogLevel != "warn" || m.Slots != 3 || m.Ctx != 100 || m.KVType != "f16" {
		t.Errorf("values: %+v", e.Config)
	}
	if m.Path != filepath.Join(filepath.Dir(name), "sub/m.gguf") || m.Name != "m" {
		t.Errorf("path %q, name %q", m.Path, m.Name)
	}
	if !reflect.DeepEqual(m.Aliases, []string{"gpt-4o", "x"}) {
		t.Errorf("aliases: %q", m.Aliases)
	}
}

func TestErrorsHavePlaceFieldAndHint(t *testing.T) {
	for _, row := range []struct{ file, want string }{
		{"listn: x", `ieg.yaml:1:1: listn: unknown key; did you mean "listen"?`},
		{"models:\n  - path: a\n    contxt: 5", `ieg.yaml:3:5: models[0].contxt: unknown key`},
		{"models:\n  - path: a\n    ctxx: 5", `ieg.yaml:3:5: models[0].ctxx: unknown key; did you mean "ctx"?`},
		{"max_queue: many", `ieg.yaml:1:12: max_queue: wants a whole number, not "many"`},
		{"max_queue: 0", `ieg.yaml:1:12: max_queue: is 0, not in 1 …`},
		{"kv:\n  host: 0\n  copy_share:  7", `ieg.yaml:3:16: kv.copy_share: is 7, not in 0 … 0.5`},
		{"drain_timeout: 5", `ieg.yaml:1:16: drain_timeout: wants a time span`},
		{"recorder: {enabled: yes}", `recorder.enabled: wants true or false, not "yes"`},
		{"recorder: [1]", `ieg.yaml:1:11: recorder: wants keys and values, not a list`},
		{"models: 5", `models: wants a list, not "5"`},
		{"listen:", `ieg.yaml:1:9: listen: empty; give it a value or leave it out`},
		{"listen: a:1\nlisten: b:2", `ieg.yaml:2:1`},
		{"listen: [", `ieg.yaml:1:`},
		{"a: &x 1\nb: *x", `unknown key`},
		{"listen: &x 1", `anchors and aliases are not taken`},
		{"listen: 127.0.0.1:1\n---\nlisten: b", `more than one document`},
		{"listen: 0.0.0.0:9430", `needs API keys; name a file`},
		{"listen: ':9430'", `needs API keys`},
		{"listen: x", `write HOST:PORT`},
		{"models:\n  - {path: a, kv_type: f17}", `models[0].kv_type: is "f17", not one of f16`},
		{"models:\n  - path: a\n  - path: b/a.gguf", `"a" is taken by models[0]`},
		{"- 1", `wants keys and values`},
		{"max_queue: 5\ndag_constraints:\n  max_node: 1", `ieg.yaml:3:3: dag_constraints.max_node: unknown key; did you mean "max_nodes"?`},
		{"preemption:\n  enabled: true", `ieg.yaml:1:1: preemption: unknown key; did you mean "preemption_config"?`},
		{"dag_constraints:\n  max_depth: -1\nlisten: 5x", `ieg.yaml:2:14: dag_constraints.max_depth: -1 is not in`},
		{"{dag_constraints: {max_depth: 1}}", `without braces`},
		{"listen: 127.0.0.1:0\nkv_transfer_config:\n  chunk_size: 256MB", `ieg.yaml:2:1: kv_transfer_config: not yet: the transfer engine is not built`},
		{"scheduler: {prefill_share: .nan}", `scheduler.prefill_share`},
	} {
		_, _, err := load(t, row.file)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q:\n got %v\nwant …%s…", row.file, err, row.want)
		}
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%q: %v is no ErrConfig", row.file, err)
		}
	}
	if _, _, err := load(t, "listn: 1\nmax_queu: 2"); err == nil || strings.Count(err.Error(), "unknown key") != 2 {
		t.Errorf("not all errors are told: %v", err)
	}
}

func TestBlocks(t *testing.T) {
	e, name, err := load(t, `# comment
dag_constraints:
  max_depth: 12
listen: 127.0.0.1:7
models:
  - path: m.gguf
preemption_config: {max_preempt_per_request: 5}
resource_specs:
  - device:
      id: cpu
      memory: {bandwidth: 2TB/s}
`)
	if err != nil {
		t.Fatal(err)
	}
	if e.Spec.Limits.MaxDepth != 12 || e.Spec.Preemption.MaxPerRequest != 5 || e.Listen != "127.0.0.1:7" || len(e.Models) != 1 {
		t.Errorf("values: %+v %+v", e.Spec, e.Config)
	}
	if len(e.Spec.ResourceSpecs) != 1 || e.Spec.ResourceSpecs[0].Memory.Bandwidth != 2e12 {
		t.Errorf("resource specs: %+v", e.Spec.ResourceSpecs)
	}
	text := e.YAML()
	for _, want := range []string{
		"  max_depth: 12  # " + name + ":3\n", "  max_nodes: 50  # default\n",
		"  max_preempt_per_request: 5  # " + name + ":7\n", "bandwidth: 2TB/s  # " + name + ":11\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	back, _, err := load(t, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	back.Spec.Given, e.Spec.Given = nil, nil
	if !reflect.DeepEqual(back.Spec, e.Spec) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", back.Spec, e.Spec)
	}
}

func TestFlagErrors(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--config", "/no/such/file"}, "name an existing file by --config"},
		{[]string{"--max-queue", "x"}, "flag --max-queue: wants a whole number"},
		{[]string{"--model", "a", "--ctx", "x"}, "--ctx: wants a whole number"},
		{[]string{"--listen", "0.0.0.0:1"}, "(flag --listen)"},
		{[]string{"--model", "x=a", "--model", "x=b"}, `"x" is taken`},
		{[]string{"--model", "x,=a"}, `"" is no name`},
	} {
		if _, _, err := load(t, "", row.args...); err == nil || !strings.Contains(err.Error(), row.want) || !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v, want …%s…", row.args, err, row.want)
		}
	}
	if _, _, err := load(t, "", "--listen", "0.0.0.0:1", "--api-key-file", "k"); err != nil {
		t.Errorf("off loopback with keys: %v", err)
	}
}

func TestModelFlag(t *testing.T) {
	for text, want := range map[string]Model{
		"a.gguf":           {Path: "a.gguf", Name: "a"},
		"n=a.gguf":         {Path: "a.gguf", Name: "n"},
		"n,x,y=/d/a=b":     {Path: "/d/a=b", Name: "n", Aliases: []string{"x", "y"}},
		"/d=e/a.gguf":      {Path: "/d=e/a.gguf", Name: "a"},
		"synth:":           {Path: "synth:", Name: "synth"},
		"synth:stop=9":     {Path: "synth:stop=9", Name: "synth-stop=9"},
		"s=synth:stop=100": {Path: "synth:stop=100", Name: "s"},
	} {
		e, _, err := load(t, "models: [{path: gone}]", "--model", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		def := DefaultModel()
		if !IsSynth(want.Path) {
			abs, err := filepath.Abs(want.Path)
			if err != nil {
				t.Fatal(err)
			}
			want.Path = abs
		}
		want.KVType, want.Layout, want.FlashAttention = def.KVType, def.Layout, def.FlashAttention
		if len(e.Models) != 1 || !reflect.DeepEqual(e.Models[0], want) {
			t.Errorf("%s: %+v, want %+v", text, e.Models, want)
		}
	}
}

func TestYAMLReadsBack(t *testing.T) {
	e, _, err := load(t, "", "--model", "n,x=/a b/\"c\".gguf", "--model", "y=12", "--log-format", "json", "--admin", "/tmp/#x: y")
	if err != nil {
		t.Fatal(err)
	}
	text := e.YAML()
	if !strings.Contains(text, "log_format: json  # flag --log-format\n") || !strings.Contains(text, "max_queue: 2048  # default\n") {
		t.Errorf("sources are missing:\n%s", text)
	}
	back, _, err := load(t, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want := e.Config
	for i := range want.Models {
		if want.Models[i].Aliases == nil {
			want.Models[i].Aliases = []string{}
		}
	}
	want.AllowHosts, want.AllowOrigins = []string{}, []string{}
	if !reflect.DeepEqual(back.Config, want) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", back.Config, want)
	}
	values := e.Values()
	if len(values) < 30 || values[0].Path != "listen" {
		t.Errorf("values: %+v", values)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("listen: 127.0.0.1:1\nmodels: [{path: a}]"))
	f.Add([]byte("models:\n  - path: x\n    ctx: 1\nclasses:\n  P0:\n    ttft: 1s\n"))
	f.Add([]byte("a: !!binary x\n? b\n: c"))
	f.Add([]byte("listen: |\n  x\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := Default()
		if err := e.read("f.yaml", data); err != nil {
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("%v is no ErrConfig", err)
			}
			return
		}
		e.nameModels()
		if e.Validate() != nil {
			return
		}
		text := e.YAML()
		again := Default()
		if err := again.read("g.yaml", []byte(text)); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if again.YAML() != strings.ReplaceAll(text, "f.yaml", "g.yaml") && stripComments(again.YAML()) != stripComments(text) {
			t.Fatalf("printed again:\n%s\nbefore:\n%s", again.YAML(), text)
		}
	})
}

func stripComments(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if at := strings.LastIndex(l, "  # "); at >= 0 {
			lines[i] = l[:at]
		}
	}
	return strings.Join(lines, "\n")
}
