package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// sample is a random schema with a maker of valid instances, spelled as the
// grammar promises to accept them.
type sample struct {
	schema string
	make   func(r *rand.Rand) string
}

func fixed(schema string, texts ...string) sample {
	return sample{schema, func(r *rand.Rand) string { return texts[r.IntN(len(texts))] }}
}

// sp is white space as it may stand between tokens.
func sp(r *rand.Rand) string {
	return []string{"", "", " ", "\n", "\n  ", "\n" + strings.Repeat("\t", r.IntN(MaxIndent))}[r.IntN(6)]
}

var someStrings = []string{"", "a", "hello world", `say \"hi\"`, "é", "世界", "😀", `\\`, `tab\there`, `\u00e9`, `\ud83d\ude00`, `a\/b`, `\u001f`}

// textOf is a JSON string of n characters.
func textOf(r *rand.Rand, n int) string {
	units := []string{"a", "Z", "7", " ", "é", "世", "😀", `\"`, `\\`, `\n`, `\u0041`, `\ud83d\ude00`, "/"}
	var b strings.Builder
	for range n {
		b.WriteString(units[r.IntN(len(units))])
	}
	return `"` + b.String() + `"`
}

var leaves = []func(r *rand.Rand) sample{
	func(*rand.Rand) sample { return fixed(`{"type":"null"}`, "null") },
	func(*rand.Rand) sample { return fixed(`{"type":"boolean","description":"x"}`, "true", "false") },
	func(*rand.Rand) sample {
		return fixed(`{"type":"number"}`, "0", "-1", "3.25", "1e5", "-0.001E-3", "123456789012345678")
	},
	func(*rand.Rand) sample { return fixed(`{"type":"integer"}`, "0", "-1", "42", "999999999999999999") },
	func(r *rand.Rand) sample {
		return sample{`{"type":"string"}`, func(r *rand.Rand) string { return `"` + someStrings[r.IntN(len(someStrings))] + `"` }}
	},
	func(*rand.Rand) sample { return fixed(`{"type":["string","null"]}`, `"x"`, "null") },
	func(*rand.Rand) sample {
		return fixed(`{"enum":["red","gr\"een",3,null,true,[1,{"a":2}]]}`, `"red"`, `"gr\"een"`, "3", "null", "true", "[1,{\"a\":2}]", "[1, {\n\"a\": 2}\n]")
	},
	func(*rand.Rand) sample { return fixed(`{"const":{"k":["v"]}}`, `{"k":["v"]}`, `{ "k": [ "v" ] }`) },
	func(*rand.Rand) sample { return fixed(`{"type":"string","enum":["a","b",3]}`, `"a"`, `"b"`) },
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"date"}`, `"2024-02-29"`, `"1999-12-31"`, `"2000-02-29"`)
	},
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"time"}`, `"23:59:59Z"`, `"00:00:00.123+05:30"`)
	},
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"date-time"}`, `"2024-01-31T10:00:00Z"`, `"1970-01-01T00:00:00.5-08:00"`)
	},
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"uuid"}`, `"123e4567-e89b-12d3-a456-426614174000"`)
	},
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"email"}`, `"a@b.de"`, `"john.doe+x@mail.example.com"`)
	},
	func(*rand.Rand) sample {
		return fixed(`{"type":"string","format":"ipv4"}`, `"127.0.0.1"`, `"255.255.255.255"`)
	},
	lengths, integers, numbers, patterns,
}

func lengths(r *rand.Rand) sample {
	lo := r.IntN(4)
	hi := lo + r.IntN(5)
	if r.IntN(4) == 0 {
		return sample{fmt.Sprintf(`{"type":"string","minLength":%d}`, lo), func(r *rand.Rand) string { return textOf(r, lo+r.IntN(9)) }}
	}
	return sample{fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, lo, hi),
		func(r *rand.Rand) string { return textOf(r, lo+r.IntN(hi-lo+1)) }}
}

func integers(r *rand.Rand) sample {
	span := []int{1, 10, 100, 12345}[r.IntN(4)]
	lo := r.IntN(2*span+1) - span
	hi := lo + r.IntN(span+1)
	at := func(r *rand.Rand, lo, hi int) string { return fmt.Sprint(lo + r.IntN(hi-lo+1)) }
	switch r.IntN(3) {
	case 0:
		return sample{fmt.Sprintf(`{"type":"integer","minimum":%d}`, lo), func(r *rand.Rand) string { return at(r, lo, lo+1000000) }}
	case 1:
		return sample{fmt.Sprintf(`{"type":"integer","exclusiveMinimum":%d,"exclusiveMaximum":%d}`, lo-1, hi+1),
			func(r *rand.Rand) string { return at(r, lo, hi) }}
	}
	return sample{fmt.Sprintf(`{"type":"integer","minimum":%d,"maximum":%d}`, lo, hi), func(r *rand.Rand) string { return at(r, lo, hi) }}
}

func numbers(r *rand.Rand) sample {
	scale := []int{1, 10, 100, 1000}[r.IntN(4)]
	digits := len(fmt.Sprint(scale)) - 1
	lo := r.IntN(6*scale+1) - 3*scale
	hi := lo + r.IntN(3*scale+1)
	text := func(n int) string { return fmt.Sprintf("%.*f", digits, float64(n)/float64(scale)) }
	in := func(lo, hi int) func(r *rand.Rand) string {
		return func(r *rand.Rand) string { return text(lo + r.IntN(hi-lo+1)) }
	}
	switch r.IntN(3) {
	case 0:
		return sample{fmt.Sprintf(`{"type":"number","minimum":%s}`, text(lo)), in(lo, lo+5*scale)}
	case 1:
		return sample{fmt.Sprintf(`{"type":"number","exclusiveMinimum":%s,"maximum":%s}`, text(lo-1), text(hi)), in(lo, hi)}
	}
	return sample{fmt.Sprintf(`{"type":"number","minimum":%s,"exclusiveMaximum":%s}`, text(lo), text(hi+1)), in(lo, hi)}
}

func patterns(r *rand.Rand) sample {
	all := []sample{
		fixed(`{"type":"string","pattern":"^[a-z]{2,4}-\\d+$"}`, `"ab-1"`, `"wxyz-0042"`),
		fixed(`{"type":"string","pattern":"foo"}`, `"foo"`, `"a foo b"`, `"\"foo\\"`),
		fixed(`{"type":"string","pattern":"^(a|b)+\"?$"}`, `"ab"`, `"ba\""`),
		fixed(`{"type":"string","pattern":"^x$|^[^a-y]*z$"}`, `"x"`, `"z"`, `"ABz"`, `"\nz"`),
		fixed(`{"type":"string","pattern":"^.{3}$"}`, `"abc"`, `"世😀\\"`, `"\t\"é"`),
		fixed(`{"type":"string","pattern":"^\\\\[\\s\\S]\\w$"}`, `"\\\n_"`, `"\\xy"`),
		fixed(`{"pattern":"(?i)^yes|no$"}`, `"YES!"`, `"oh nO"`),
	}
	return all[r.IntN(len(all))]
}

// randomSample nests leaves in arrays, objects and combinations.
func randomSample(r *rand.Rand, depth int) sample {
	if depth == 0 || r.IntN(3) == 0 {
		return leaves[r.IntN(len(leaves))](r)
	}
	switch r.IntN(8) {
	case 0:
		return randomArray(r, depth)
	case 1:
		return randomTuple(r, depth)
	case 2:
		return randomAnyOf(r, depth)
	case 3:
		return randomRef(r, depth)
	}
	return randomObject(r, depth)
}

func brackets(r *rand.Rand, open, end string, parts []string) string {
	if len(parts) == 0 {
		return open + sp(r) + end
	}
	text := open + sp(r)
	for i, p := range parts {
		if i > 0 {
			text += "," + sp(r)
		}
		text += p
	}
	return text + sp(r) + end
}

func randomArray(r *rand.Rand, depth int) sample {
	item := randomSample(r, depth-1)
	lo := r.IntN(3)
	hi := lo + r.IntN(4)
	limit := fmt.Sprintf(`,"minItems":%d,"maxItems":%d`, lo, hi)
	if r.IntN(3) == 0 {
		hi, limit = lo+5, fmt.Sprintf(`,"minItems":%d,"uniqueItems":false`, lo)
	}
	return sample{fmt.Sprintf(`{"type":"array","items":%s%s}`, item.schema, limit), func(r *rand.Rand) string {
		parts := make([]string, lo+r.IntN(hi-lo+1))
		for i := range parts {
			parts[i] = item.make(r)
		}
		return brackets(r, "[", "]", parts)
	}}
}

func randomTuple(r *rand.Rand, depth int) sample {
	first, second, rest := randomSample(r, depth-1), randomSample(r, depth-1), randomSample(r, 0)
	lo := r.IntN(4)
	open := lo > 2 || r.IntN(2) == 0
	items := ""
	if open {
		items = `,"items":` + rest.schema
	}
	return sample{fmt.Sprintf(`{"type":"array","prefixItems":[%s,%s]%s,"minItems":%d}`, first.schema, second.schema, items, lo), func(r *rand.Rand) string {
		n := lo + r.IntN(3)
		if !open {
			n = min(n, 2)
		}
		var parts []string
		for i := range n {
			parts = append(parts, []sample{first, second, rest}[min(i, 2)].make(r))
		}
		return brackets(r, "[", "]", parts)
	}}
}

func randomAnyOf(r *rand.Rand, depth int) sample {
	a, b := randomSample(r, depth-1), randomSample(r, depth-1)
	return sample{fmt.Sprintf(`{"anyOf":[%s,%s]}`, a.schema, b.schema), func(r *rand.Rand) string {
		if r.IntN(2) == 0 {
			return a.make(r)
		}
		return b.make(r)
	}}
}

// randomRef is a list that refers to itself, or a merge.
func randomRef(r *rand.Rand, depth int) sample {
	v := randomSample(r, 0)
	if r.IntN(2) == 0 {
		s := fmt.Sprintf(`{"allOf":[{"type":"object","properties":{"a":%s},"required":["a"]},{"properties":{"b":{"type":"null"}}}],"title":"t"}`, v.schema)
		return sample{s, func(r *rand.Rand) string {
			parts := []string{`"a":` + sp(r) + v.make(r)}
			if r.IntN(2) == 0 {
				parts = append(parts, `"b": null`)
			}
			return brackets(r, "{", "}", parts)
		}}
	}
	id := fmt.Sprintf("n%d", r.Uint32())
	node := fmt.Sprintf(`{"type":"object","properties":{"v":%s,"next":{"$ref":"#/$defs/%s"}},"required":["v"],"additionalProperties":false}`, v.schema, id)
	s := sample{schema: fmt.Sprintf(`{"$ref":"#/$defs/%s","$defs":{%q:%s}}`, id, id, node)}
	var build func(r *rand.Rand, left int) string
	build = func(r *rand.Rand, left int) string {
		parts := []string{`"v":` + v.make(r)}
		if left > 0 {
			parts = append(parts, `"next":`+sp(r)+build(r, left-1))
		}
		return brackets(r, "{", "}", parts)
	}
	s.make = func(r *rand.Rand) string { return build(r, r.IntN(4)) }
	return s
}

func randomObject(r *rand.Rand, depth int) sample {
	names := []string{"a", "ab", "b", `q"x`, "naïve", "tab\t", "long name", "\u2028", ""}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = names[:r.IntN(5)]
	props := make([]sample, len(names))
	required := map[int]bool{}
	var fields, req []string
	for i, name := range names {
		props[i] = randomSample(r, depth-1)
		fields = append(fields, quote(name)+":"+props[i].schema)
		if r.IntN(2) == 0 {
			required[i] = true
			req = append(req, quote(name))
		}
	}
	schema := `{"type":"object","properties":{` + strings.Join(fields, ",") + `}`
	if len(req) > 0 {
		schema += `,"required":[` + strings.Join(req, ",") + `]`
	}
	var extra *sample
	switch r.IntN(4) {
	case 0:
		schema += `,"additionalProperties":false`
	case 1:
		e := randomSample(r, 0)
		extra = &e
		schema += `,"additionalProperties":` + e.schema
	case 2:
		e := fixed("", "1", `"x"`, `{"deep":[true, null]}`)
		extra = &e
		schema += `,"additionalProperties":true`
	}
	return sample{schema + "}", func(r *rand.Rand) string {
		var parts []string
		for i, name := range names {
			if required[i] || r.IntN(2) == 0 {
				parts = append(parts, quote(name)+":"+sp(r)+props[i].make(r))
			}
		}
		if extra != nil {
			for _, key := range []string{`"other"`, `"abc"`, `"A"`, `"naïv"`, `"q\"y"`}[:r.IntN(4)] {
				parts = append(parts, key+":"+extra.make(r))
			}
		}
		return brackets(r, "{", "}", parts)
	}}
}
