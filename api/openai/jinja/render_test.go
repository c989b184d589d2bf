package jinja

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

var testNow = time.Date(2024, 7, 26, 15, 4, 5, 0, time.UTC)

// TestGolden renders scripts. The first line of an input that begins with
// "#vars " holds the variables as JSON. The outputs are those of Jinja2 3.1
// with trim_blocks, lstrip_blocks and the loop controls extension.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			src := d.Input
			vars := Vars{}
			if rest, ok := strings.CutPrefix(src, "#vars "); ok {
				line, body, _ := strings.Cut(rest, "\n")
				src = body
				v, err := FromJSON([]byte(line), nil)
				if err != nil {
					t.Fatalf("%s: %v", d.Pos, err)
				}
				m := v.(*Dict)
				for _, k := range m.Keys() {
					vars[k], _ = m.Get(k)
				}
			}
			tmpl, err := Parse(src)
			if err != nil {
				return "parse error: " + err.Error() + "\n"
			}
			out, err := tmpl.Render(vars, testNow)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(out); err != nil {
				t.Fatal(err)
			}
			return b.String()
		})
	})
}

func TestLimits(t *testing.T) {
	for name, src := range map[string]string{
		"nested loops":    `{% for a in range(4000) %}{% for b in range(4000) %}{% endfor %}{% endfor %}`,
		"huge range":      `{{ range(1000000000000) | length }}`,
		"doubling":        `{% set ns = namespace(x='aaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}`,
		"repeat":          `{{ 'abc' * 4000000000 }}`,
		"repeat list":     `{{ ([1,2,3] * 4000000000) | length }}`,
		"recursion":       `{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}`,
		"replace":         `{% set s = 'a' * 100000 %}{{ s | replace('a', s) | length }}`,
		"replace empty":   `{% set s = 'a' * 100000 %}{{ s.replace('', s) | length }}`,
		"join":            `{% set s = 'a' * 100000 %}{{ range(100000) | join(s) | length }}`,
		"output":          `{% set s = 'a' * 1000000 %}{% for i in range(200) %}{{ s }}{% endfor %}`,
		"recursive loop":  `{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}`,
		"list of itself":  `{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}`,
		"deep expression": strings.Repeat("{{ ", 1) + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}",
		"deep blocks":     strings.Repeat("{% if 1 %}", 5000) + strings.Repeat("{% endif %}", 5000),
		"deep not":        "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"deep minus":      "{{ " + strings.Repeat("- ", 100000) + "1 }}",
		"long source":     strings.Repeat("x", SourceBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			tmpl, err := Parse(src)
			if err == nil {
				_, err = tmpl.Render(nil, testNow)
			}
			if !errors.Is(err, ErrLimit) {
				t.Fatalf("got %v, want ErrLimit", err)
			}
		})
	}
}

func TestSyntaxErrorsNameTheLine(t *testing.T) {
	for src, want := range map[string]string{
		"a\n{% if x %}":         "line 2",
		"\n\n{{ x | nope }}":    `line 3: no filter named "nope"`,
		"{{ x is nope }}":       `no test named "nope"`,
		"{% include 'x' %}":     `statement "include" is not part of chat templates`,
		"{{ 'abc }}":            "string without an end",
		"{% endif %}":           `"endif"`,
		"{{ a b }}":             `unexpected "b"`,
		"{% break %}":           "outside of a loop",
		"{{ [1, 2 }}":           `unexpected "}"`,
		"{# no end":             "comment without an end",
		"{% for x y %}":         `expected "in"`,
		"{% macro f(a=1, b) %}": "without a default",
		"{{ ? }}":               "unexpected character",
	} {
		_, err := Parse(src)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want ErrSyntax with %q", src, err, want)
		}
	}
}

func TestFromJSONEditsEveryString(t *testing.T) {
	v, err := FromJSON([]byte(`{"b":["x",{"a":"y"}],"a":1.5,"n":12345678901234567890}`), strings.ToUpper)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := Parse(`{{ v | tojson }}`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tmpl.Render(Vars{"v": v}, testNow)
	if want := `{"B": ["X", {"A": "Y"}], "A": 1.5, "N": 1.2345678901234567e+19}`; err != nil || out != want {
		t.Fatalf("got %s %v, want %s", out, err, want)
	}
	for _, bad := range []string{`{`, `[1,2`, `1 2`, `{"a":1e999}`, strings.Repeat("[", 100) + strings.Repeat("]", 100)} {
		if _, err := FromJSON([]byte(bad), nil); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, s := range []string{
		`{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}`,
		`{%- set ns = namespace(a=1) -%}{{ ns.a }}{% raw %}{{{% endraw %}`,
		`{% macro f(a, b=2) %}{{ a + b }}{% endmacro %}{{ f(1) }}{{ x[::-1] }}`,
		`{{ '%s' % 1 }}{{ {'a': [1, 2.5, none]} | tojson(indent=2) }}{# c #}`,
		`{% call(x) f() %}{% endcall %}{% filter upper %}a{% endfilter %}{% with a=1 %}{{ a }}{% endwith %}`,
	} {
		f.Add(s)
	}
	msgs := NewList(NewDict("role", "user", "content", "héllo"), NewDict("role", "assistant", "content", nil))
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse(src)
		if err != nil {
			return
		}
		out, err := tmpl.Render(Vars{"messages": msgs, "x": "abc"}, testNow)
		if err == nil && len(out) > OutputBytes {
			t.Fatalf("output of %d bytes", len(out))
		}
	})
}
