package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"ieg"
)

// validator is another project's reading of a schema.
func validator(t testing.TB, schema string) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatalf("schema %s: %v", schema, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatalf("schema %s: %v", schema, err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("schema %s: %v", schema, err)
	}
	return func(text string) (err error) {
		defer func() { // it panics on exponents that no grammar of ours writes
			if p := recover(); p != nil {
				err = fmt.Errorf("not judged: %v", p)
			}
		}()
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return s.Validate(v)
	}
}

func mustGrammar(t testing.TB, schema string) *gbnf {
	t.Helper()
	text, err := FromSchema([]byte(schema))
	if err != nil {
		t.Fatalf("schema %s: %v", schema, err)
	}
	g, err := parseGBNF(text)
	if err != nil {
		t.Fatalf("schema %s\n%s%v", schema, text, err)
	}
	return g
}

// hoist moves the $defs of nested samples to the root, where "#/…" looks.
func hoist(s string) string {
	var defs []string
	for {
		i := strings.Index(s, `,"$defs":{`)
		if i < 0 {
			break
		}
		end, depth, quoted := i+len(`,"$defs":{`), 1, false
		for start := end; depth > 0; end++ {
			switch {
			case s[end] == '"' && s[end-1] != '\\':
				quoted = !quoted
			case quoted:
			case s[end] == '{':
				depth++
			case s[end] == '}':
				depth--
			}
			if depth == 0 {
				defs = append(defs, s[start:end])
			}
		}
		s = s[:i] + s[end:]
	}
	if len(defs) == 0 {
		return s
	}
	return s[:len(s)-1] + `,"$defs":{` + strings.Join(defs, ",") + "}}"
}

// mutate changes a text here and there.
func mutate(r *rand.Rand, text string) string {
	bits := []string{"", "0", "1", "-", ".", "9", `"`, "a", "b", "null", "true", "{", "}", "[", "]", ",", " ", "  ", "e5", `\`, `"a":1,`, `,"a":1`, "é", "\n"}
	in := []rune(text)
	for range 1 + r.IntN(3) {
		i := r.IntN(len(in) + 1)
		j := min(len(in), i+r.IntN(3))
		in = []rune(string(in[:i]) + bits[r.IntN(len(bits))] + string(in[j:]))
	}
	return string(in)
}

// TestRandomSchemas checks both directions: instances made for the schema are
// accepted and valid, and what the grammar accepts (its own walks, and
// mutations of both) is valid.
func TestRandomSchemas(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	rejected, kept := 0, 0
	for n := range 600 {
		s := randomSample(r, 3)
		schema := hoist(s.schema)
		g, valid := mustGrammar(t, schema), validator(t, schema)
		for range 8 {
			text := s.make(r)
			if err := valid(text); err != nil {
				t.Fatalf("schema %d %s\nthe test's own instance %s: %v", n, schema, text, err)
			}
			if !g.accepts(text) {
				out, _ := FromSchema([]byte(schema))
				t.Fatalf("schema %s\nrejects the instance %s\n%s", schema, text, out)
			}
			walk := g.walk(r)
			if err := valid(walk); err != nil {
				t.Fatalf("schema %s\nthe grammar wrote %s: %v", schema, walk, err)
			}
			if !g.accepts(walk) {
				t.Fatalf("schema %s\nthe interpreter disagrees with itself on %s", schema, walk)
			}
			for _, base := range []string{text, walk} {
				if len(base) > 300 {
					continue
				}
				changed := mutate(r, base)
				if err := valid(changed); err == nil {
					kept++
				} else {
					rejected++
					if g.accepts(changed) {
						t.Fatalf("schema %s\naccepts %s, but: %v", schema, changed, err)
					}
				}
			}
		}
	}
	if rejected < 3000 || kept < 300 {
		t.Errorf("mutations: %d invalid, %d valid: too few to tell", rejected, kept)
	}
}

// TestIntegersExactly tries every integer around every small range.
func TestIntegersExactly(t *testing.T) {
	for lo := -12; lo <= 12; lo++ {
		for hi := lo; hi <= 110; hi += 1 + (hi+12)/9 {
			g := mustGrammar(t, fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, lo, hi))
			for n := lo - 11; n <= hi+101; n++ {
				if got, want := g.accepts(fmt.Sprint(n)), n >= lo && n <= hi; got != want {
					t.Fatalf("%d … %d: accepts(%d) = %v", lo, hi, n, got)
				}
			}
			for _, bad := range []string{"", "-", "00", "01", "1.0", "+1", "1e1"} {
				if g.accepts(bad) {
					t.Fatalf("%d … %d accepts %q", lo, hi, bad)
				}
			}
		}
	}
}

// TestOrderAndBounds pins what the package comment promises beyond validity.
func TestOrderAndBounds(t *testing.T) {
	for _, c := range []struct {
		schema, text string
		want         bool
	}{
		{`{"properties":{"a":{},"b":{}}}`, `{"a":1,"b":2}`, true},
		{`{"properties":{"a":{},"b":{}}}`, `{"b":2}`, true},
		{`{"properties":{"a":{},"b":{}}}`, `{"b":2,"a":1}`, false},
		{`{"properties":{"a":{}}}`, `{"a":1,"c":2}`, false},
		{`{"properties":{"a":{}}}`, `{}`, true},
		{`{"type":"object"}`, `{"x":[1,{"y":null}]}`, true},
		{`{"required":["z"]}`, `{"z":1,"y":2}`, true},
		{`{"required":["z"]}`, `{"y":2}`, false},
		{`{"properties":{"a":{"type":"null"}},"additionalProperties":true}`, `{"a":1}`, false},
		{`{"properties":{"a":{"type":"null"}},"additionalProperties":true}`, `{"\u0061":1}`, false},
		{`{"type":"array"}`, "[1,  2]", false},
		{`{"type":"array"}`, "[1,\n\n2]", false},
		{`{"type":"array"}`, "[\n    1,\n    2\n]", true},
		{`{"type":"array"}`, "[1 , 2]", false},
		{`true`, "3", true},
		{`{}`, `{"a":[]}`, true},
		{`{"type":"string"}`, "\"a\nb\"", false},
		{`{"type":"string"}`, `"\ud800"`, false},
		{`{"type":"number","minimum":0,"maximum":1}`, "0.5", true},
		{`{"type":"number","minimum":0,"maximum":1}`, "1.000", true},
		{`{"type":"number","minimum":0,"maximum":1}`, "1.0001", false},
		{`{"oneOf":[{"type":"null"},{"type":"boolean"}]}`, "null", true},
		{`{"type":"object","properties":{"k":{"const":"v"}},"anyOf":[{"required":["k"]},{"properties":{"m":{}}}]}`, `{"m":1}`, true},
		{`{"type":"string","maxLength":2500}`, `"` + strings.Repeat("x", 2500) + `"`, true},
		{`{"type":"string","maxLength":2500}`, `"` + strings.Repeat("x", 2501) + `"`, false},
		{`{"type":"string","minLength":1100}`, `"` + strings.Repeat("x", 1099) + `"`, false},
		{`{"type":"string","minLength":1100}`, `"` + strings.Repeat("x", 1100) + `"`, true},
	} {
		if got := mustGrammar(t, c.schema).accepts(c.text); got != c.want {
			t.Errorf("schema %.80s: accepts(%.40q) = %v", c.schema, c.text, got)
		}
	}
}

// TestSchemas runs the golden scripts: grammars and refusals.
func TestSchemas(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out string
			var err error
			switch d.Cmd {
			case "schema":
				out, err = FromSchema([]byte(d.Input))
			case "regex":
				out, err = Regex(d.Input)
			case "choice":
				out, err = Choice(strings.Split(d.Input, "\n"))
			case "tools":
				out, err = toolScript(t, d)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || !errors.Is(err, ieg.ErrUnsupported) {
					d.Fatalf(t, "the error %v has no identity", err)
				}
				return "refused: " + err.Error() + "\n"
			}
			if _, err := parseGBNF(strings.Split(out, "triggers ")[0]); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// TestHostileSchemas checks that size, depth and recursion are bounded.
func TestHostileSchemas(t *testing.T) {
	var wide, refs strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&wide, `"p%d":{"type":"string"},`, i)
	}
	for i := range 60 {
		fmt.Fprintf(&refs, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for name, schema := range map[string]string{
		"deep":          strings.Repeat(`{"items":`, 100) + "{}" + strings.Repeat("}", 100),
		"deep JSON":     strings.Repeat("[", 100000),
		"wide":          `{"properties":{` + strings.TrimSuffix(wide.String(), ",") + `}}`,
		"doubling refs": `{"$ref":"#/$defs/d0","$defs":{` + refs.String() + `"d60":{"type":"object"}}}`,
		"self":          `{"$ref":"#"}`,
		"self any":      `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`,
		"self merge":    `{"allOf":[{"$ref":"#"}]}`,
		"endless":       `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`,
		"big counts":    `{"type":"array","minItems":100000,"items":{"type":"string","minLength":100000}}`,
		"huge exponent": `{"type":"integer","minimum":1e999999999}`,
		"huge number":   `{"enum":[` + strings.Repeat("9", 1000) + `]}`,
		"remote":        `{"$ref":"other.json"}`,
		"nothing":       `{"$ref":"#/$defs/none"}`,
		"double key":    `{"type":"null","type":"string"}`,
		"two values":    `{} {}`,
		"empty":         ``,
		"not a schema":  `[]`,
		"false":         `false`,
		"nested repeat": `{"pattern":"((a{1000}){1000}){1000}"}`,
		"empty loop":    `{"pattern":"(a*b*)*"}`,
		"key":           `{"properties":{"` + strings.Repeat("k", 5000) + `":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			out, err := FromSchema([]byte(schema))
			if name == "big counts" { // large, but within bounds
				if err != nil || len(out) > 10_000 {
					t.Errorf("%d bytes, %v", len(out), err)
				}
				return
			}
			if !errors.Is(err, ieg.ErrUnsupported) {
				t.Errorf("got %d bytes, error %v", len(out), err)
			}
		})
	}
}

// TestOptionalIsLinear checks that optional properties don't multiply.
func TestOptionalIsLinear(t *testing.T) {
	size := func(n int) int {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"p%03d":{"type":"null"}`, i)
		}
		out, err := FromSchema([]byte(`{"properties":{` + b.String()[1:] + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return len(out)
	}
	if small, large := size(50), size(400); large > 9*small {
		t.Errorf("50 optional properties take %d bytes, 400 take %d", small, large)
	}
}

func FuzzFromSchema(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 40 {
		f.Add([]byte(hoist(randomSample(r, 3).schema)), uint64(1))
	}
	for _, s := range []string{`{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"},{}]}`, `{"allOf":[true,{"type":"object"}]}`, `{"pattern":"^(a|^b)$"}`,
		`{"prefixItems":[{}],"items":false,"minItems":1}`, `{"type":"number","minimum":0.1,"maximum":0.2}`} {
		f.Add([]byte(s), uint64(2))
	}
	f.Fuzz(func(t *testing.T, schema []byte, seed uint64) {
		out, err := FromSchema(schema)
		if err != nil {
			if !errors.Is(err, ieg.ErrUnsupported) {
				t.Fatalf("an error without identity: %v", err)
			}
			return
		}
		if len(out) > MaxGrammarBytes+4096 {
			t.Fatalf("%d bytes", len(out))
		}
		g, err := parseGBNF(out)
		if err != nil {
			t.Fatalf("schema %s\n%s%v", schema, out, err)
		}
		if g.cost["root"] >= endless {
			t.Fatalf("schema %s: the grammar never ends", schema)
		}
		walk := g.walk(rand.New(rand.NewPCG(seed, 0)))
		if len(walk) < 500 && !g.accepts(walk) {
			t.Fatalf("schema %s: %q is not accepted", schema, walk)
		}
	})
}
