package llama

import (
	"math/rand/v2"
	"slices"
	"testing"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/devices/engine/llama/gbnf"
)

// TestGrammarEqualsLlama compares the grammar's mask with llama.cpp's own, in
// random walks through several grammars over the real vocabulary.
func TestGrammarEqualsLlama(t *testing.T) {
	spec := tinySpec(t)
	spec.Path = realModel(t)
	r := start(t, spec)
	v := r.vocab
	for i, src := range []string{
		jsonGrammar,
		`root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ws ":" ws value ("," ws string ws ":" ws value)*)? ws "}"
array ::= "[" ws (value ("," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,14})?
ws ::= [ \n]{0,3}`,
		`root ::= ("é" | "€uro" | [α-ω]+ | "ab" [^a-y]{1,2})+ "!"`,
		`root ::= "a"{2,5} ("b"? "c"){1,3} "d"`,
	} {
		g, err := gbnf.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		rnd := rand.New(rand.NewPCG(uint64(i), 9))
		for range 3 {
			s := g.NewState()
			theirs := yz.SamplerInitGrammar(v.h, src, "root")
			if theirs == 0 {
				t.Fatal("llama.cpp refuses the grammar")
			}
			data := make([]yz.TokenData, v.n)
			for step := range 12 {
				ours, whole := v.sorted().Allowed(s, nil)
				if !whole {
					t.Fatal("cut short")
				}
				slices.Sort(ours)
				for k := range data {
					data[k] = yz.TokenData{Id: yz.Token(k), Logit: 1}
				}
				arr := yz.TokenDataArray{Data: &data[0], Size: uint64(len(data)), Selected: -1}
				yz.SamplerApply(theirs, &arr)
				var want []ieg.Token
				for _, d := range data[:arr.Size] {
					if d.Logit > 0 && !v.hidden[d.Id] && !v.end[d.Id] {
						want = append(want, ieg.Token(d.Id))
					}
				}
				slices.Sort(want)
				if !slices.Equal(ours, want) {
					a, b := odd(ours, want), odd(want, ours)
					t.Fatalf("grammar %d step %d: %d allowed, llama.cpp %d; only ours %q, only theirs %q", i, step, len(ours), len(want), texts(v, a), texts(v, b))
				}
				if len(ours) == 0 {
					break
				}
				x := ours[rnd.IntN(len(ours))]
				s.Advance(v.piece(x))
				yz.SamplerAccept(theirs, yz.Token(x))
			}
			yz.SamplerFree(theirs)
		}
	}
}

// odd returns some elements of a that b lacks.
func odd(a, b []ieg.Token) (out []ieg.Token) {
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); !ok && len(out) < 5 {
			out = append(out, x)
		}
	}
	return out
}

func texts(v *vocab, tokens []ieg.Token) (out []string) {
	for _, t := range tokens {
		out = append(out, string(v.piece(t)))
	}
	return out
}
