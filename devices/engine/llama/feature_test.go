package llama

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/llama/gguf"
	"ieg/devices/engine/llama/tinygguf"
)

const jsonGrammar = `root ::= "{" ws "\"name\":" ws string "," ws "\"age\":" ws [1-9] [0-9]? "}"
string ::= "\"" [a-zA-Z ]{1,12} "\""
ws ::= " "?`

type person struct {
	Name string
	Age  int
}

func checkJSON(t *testing.T, s *seq) {
	t.Helper()
	var p person
	d := json.NewDecoder(strings.NewReader(s.text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.Name == "" || p.Age == 0 || s.stop != ieg.StopEnd {
		t.Errorf("%q stops by %v: %v", s.text, s.stop, err)
	}
}

func TestGrammar(t *testing.T) {
	for _, name := range []string{"tiny", "real"} {
		t.Run(name, func(t *testing.T) {
			spec := tinySpec(t)
			if name == "real" {
				spec.Path = realModel(t)
			}
			r := start(t, spec)
			d := &driver{t: t, r: r}
			prompt := tokenize(t, r, "Describe a person in JSON.")
			for seed := range uint64(8) {
				par := ieg.Sampling{Temperature: float32(seed) / 4, TopP: 0.95, Seed: seed, Grammar: jsonGrammar, Logprobs: -1}
				s := d.generate(0, prompt, par, 60, 512)
				checkJSON(t, s)
				// Continued from the middle of the text, it stays inside the grammar.
				cut := s.prompt + 3
				again, begin := d.newSeq(1, s.tokens[:cut], par, 60)
				begin.Prompt, again.prompt = int32(s.prompt), s.prompt
				b := ieg.Batch{New: []ieg.SeqStart{begin}, Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 1}}}
				for again.stop == ieg.NotStopped {
					b.Work = []ieg.Work{again.work(512)}
					again.took(d.ok(b).Results[0])
					b = ieg.Batch{}
				}
				head := ""
				for _, x := range s.tokens[s.prompt:cut] {
					head += string(r.vocab.piece(x))
				}
				again.text = head + again.text
				checkJSON(t, again)
			}
		})
	}
}

func TestGrammarTrigger(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	prompt := tokenize(t, r, "call a tool")
	bias := []ieg.TokenBias{}
	call := tokenize(t, r, "<tool_call>")
	if len(call) != 1 {
		t.Fatalf("%d tokens", len(call))
	}
	bias = append(bias, ieg.TokenBias{Token: call[0], Bias: 8})
	woken := 0
	for seed := range uint64(12) {
		par := ieg.Sampling{Temperature: 1, Seed: seed, LogitBias: bias, Logprobs: -1,
			Grammar: `root ::= "<tool_call>" ("ab" | "é€")+ "</tool_call>"`, GrammarTriggers: []string{"<tool_call>"}}
		s := d.generate(0, prompt, par, 120, 512)
		before, after, found := strings.Cut(s.text, "<tool_call>")
		if strings.Contains(before, "</tool_call>") && !found {
			continue // it never woke
		}
		if found {
			woken++
			body, ok := strings.CutSuffix(after, "</tool_call>")
			if rest := strings.NewReplacer("ab", "", "é€", "").Replace(body); s.stop == ieg.StopEnd && (!ok || rest != "") {
				t.Errorf("seed %d: %q stops by %v", seed, s.text, s.stop)
			}
		}
	}
	if woken < 3 {
		t.Errorf("the grammar woke in %d of 12 texts", woken)
	}
}

// TestBadGrammarEndsItsSequenceOnly: the others in its batch go on.
func TestBadGrammarEndsItsSequenceOnly(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	prompt := tokenize(t, r, "hello")
	var b ieg.Batch
	for i, g := range []string{"", `root ::= root "a"`, `root ::= "a`, "\x00", `root ::= "x"`} {
		par := greedy()
		par.Grammar = g
		if i == 4 {
			par.GrammarTriggers = []string{"y"}
		}
		s, begin := d.newSeq(ieg.Slot(i%4), prompt, par, 4)
		if i == 4 {
			d.ok(b)
			b = ieg.Batch{}
		}
		b.New, b.Work = append(b.New, begin), append(b.Work, s.work(512))
		if i == 3 {
			for k, res := range d.ok(b).Results {
				if (res.Stop == ieg.StopError) != (k > 0) || res.Sampled != (k == 0) {
					t.Errorf("%d: %+v", k, res)
				}
			}
		}
	}
	if res := d.ok(b).Results[0]; res.Stop != ieg.StopError {
		t.Errorf("a trigger outside the grammar: %+v", res)
	}
}

func TestMinAndMaxTokens(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	prompt := tokenize(t, r, "some words")
	all := []ieg.TokenBias{{Token: r.info.Model.EOS, Bias: 100}}
	par := ieg.Sampling{LogitBias: all, MinTokens: 5, Logprobs: -1}
	if s := d.generate(0, prompt, par, 20, 512); s.stop != ieg.StopEnd || len(s.tokens)-s.prompt != 6 {
		t.Errorf("%d tokens, %v", len(s.tokens)-s.prompt, s.stop)
	}
	par.IgnoreEOS = true
	if s := d.generate(0, prompt, par, 20, 512); s.stop != ieg.StopLength || len(s.tokens)-s.prompt != 20 {
		t.Errorf("%d tokens, %v", len(s.tokens)-s.prompt, s.stop)
	}
	par = greedy()
	par.IgnoreEOS = true
	free := d.generate(0, prompt, par, 30, 512)
	par.StopTokens = []ieg.Token{free.tokens[free.prompt+4]}
	first := slices.Index(free.tokens[free.prompt:], par.StopTokens[0])
	if s := d.generate(0, prompt, par, 30, 512); s.stop != ieg.StopEnd || len(s.tokens)-s.prompt != first+1 || !strings.HasPrefix(free.text, s.text) {
		t.Errorf("stop token: %d tokens, %v", len(s.tokens)-s.prompt, s.stop)
	}
	// The context's end.
	long := slices.Repeat(prompt, 400)[:510]
	par.StopTokens = nil
	if s := d.generate(0, long, par, 100, 512); s.stop != ieg.StopLength || len(s.tokens) != 512 {
		t.Errorf("context's end: %d tokens, %v", len(s.tokens), s.stop)
	}
}

func TestLogprobsOfStep(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	par := ieg.Sampling{Logprobs: 5}
	s, begin := d.newSeq(0, tokenize(t, r, "hello"), par, 4)
	lp := d.ok(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{s.work(512)}}).Results[0].Logprob
	if lp == nil || len(lp.Top) != 5 || lp.Chosen.Token != lp.Top[0].Token || lp.Chosen.Logprob > 0 || string(lp.Chosen.Bytes) != string(r.vocab.piece(lp.Chosen.Token)) {
		t.Errorf("%+v", lp)
	}
}

func TestTokenizeBesideSteps(t *testing.T) {
	r := start(t, tinySpec(t))
	d := &driver{t: t, r: r}
	texts := []string{"the quick brown fox", "né € \x00 zero", "", strings.Repeat("a", 3*runBytes), strings.Repeat(" \n", runBytes), strings.Repeat("17", runBytes)}
	var want [][]ieg.Token
	for _, x := range texts {
		out, err := r.Tokenize(x, false)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := r.Detokenize(out); err != nil || back != x {
			t.Errorf("%.20q comes back as %.20q: %v", x, back, err)
		}
		want = append(want, out)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				x := i % len(texts)
				if out, _ := r.Tokenize(texts[x], false); !slices.Equal(out, want[x]) {
					t.Errorf("%.20q: %v", texts[x], out)
				}
			}
		})
	}
	for range 5 {
		d.generate(0, want[0], greedy(), 20, 512)
	}
	wg.Wait()
}

func TestControlTextStaysText(t *testing.T) {
	r := start(t, tinySpec(t))
	for _, x := range r.info.Model.ControlText {
		if out := tokenize(t, r, x); len(out) != 1 {
			t.Errorf("%q is %d tokens as a control token", x, len(out))
		}
		if out, _ := r.Tokenize(x, false); len(out) < 2 {
			t.Errorf("%q became a control token", x)
		}
	}
	if len(r.info.Model.ControlText) != 3 || len(r.info.Model.EOG) < 2 {
		t.Errorf("control %q, end %v", r.info.Model.ControlText, r.info.Model.EOG)
	}
	if _, err := r.Detokenize([]ieg.Token{1 << 30}); err == nil {
		t.Error("a token out of range was accepted")
	}
}

func TestEmbedGenerative(t *testing.T) {
	spec := tinySpec(t)
	spec.Embedding = true
	r := start(t, spec)
	d := &driver{t: t, r: r}
	embed := func(slot ieg.Slot, text string) (ieg.SeqStart, ieg.Work) {
		tokens := tokenize(t, r, text)
		s, begin := d.newSeq(slot, tokens, greedy(), 0)
		begin.Embed = true
		return begin, ieg.Work{Seq: s.id, Slot: slot, N: int32(len(tokens))}
	}
	g, begin := d.newSeq(0, tokenize(t, r, "and a chat"), greedy(), 4)
	b := ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{g.work(512)}}
	for i, x := range []string{"one text", "another one, longer", "one text"} {
		begin, work := embed(ieg.Slot(i+1), x)
		b.New, b.Work = append(b.New, begin), append(b.Work, work)
	}
	res := d.ok(b).Results
	if !res[0].Sampled || res[0].Vector != nil {
		t.Errorf("the chat beside: %+v", res[0])
	}
	checkUnit(t, res[1].Vector, 64)
	if c := cosine(res[1].Vector, res[3].Vector); c < 0.9999 {
		t.Errorf("equal texts are %v alike", c)
	}
	if c := cosine(res[1].Vector, res[2].Vector); c > 0.999 {
		t.Errorf("other texts are %v alike", c)
	}
	if done := (&driver{t: t, r: start(t, tinySpec(t))}).run(ieg.Batch{New: b.New[1:2], Work: b.Work[1:2]}); done.Outcome != ieg.StepFailed {
		t.Error("an engine not loaded for it embeds")
	}
}

func checkUnit(t *testing.T, v []float32, dim int) {
	t.Helper()
	if len(v) != dim || math.Abs(cosine(v, v)-1) > 1e-4 {
		t.Fatalf("%d dimensions, length² %v", len(v), cosine(v, v))
	}
}

func cosine(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// TestEmbedPooling holds the poolings of a causal model against each other:
// of one token all are the same, the first one's vector knows nothing of what
// follows, the last one's does, and the mean lies between.
func TestEmbedPooling(t *testing.T) {
	vectors := map[string][][]float32{}
	for _, pooling := range []string{"mean", "cls", "last"} {
		spec := tinySpec(t)
		var err error
		if spec.Path, err = tinygguf.Write(t.TempDir(), tinygguf.Config{Seed: 3, Pooling: pooling}); err != nil {
			t.Fatal(err)
		}
		r := start(t, spec)
		if got := r.Info().Model.Pooling; got != pooling {
			t.Fatalf("pooling %q, want %q", got, pooling)
		}
		d := &driver{t: t, r: r}
		var b ieg.Batch
		for i, tokens := range [][]ieg.Token{{40}, {40, 41, 42}} {
			s, begin := d.newSeq(ieg.Slot(i), tokens, greedy(), 0)
			begin.Embed = true
			b.New, b.Work = append(b.New, begin), append(b.Work, ieg.Work{Seq: s.id, Slot: ieg.Slot(i), N: int32(len(tokens))})
		}
		for _, res := range d.ok(b).Results {
			checkUnit(t, res.Vector, 64)
			vectors[pooling] = append(vectors[pooling], slices.Clone(res.Vector))
		}
	}
	one, three := vectors["cls"][0], func(p string) []float32 { return vectors[p][1] }
	for p, v := range vectors {
		if c := cosine(v[0], one); c < 0.9999 {
			t.Errorf("%s of one token: cosine %.5f to cls of it", p, c)
		}
	}
	if c := cosine(three("cls"), one); c < 0.9999 {
		t.Errorf("cls of three tokens: cosine %.5f to cls of the first", c)
	}
	if c := cosine(three("last"), one); c > 0.99 {
		t.Errorf("last of three tokens is that of the first: cosine %.5f", c)
	}
	apart := cosine(three("cls"), three("last"))
	if cosine(three("mean"), three("cls")) <= apart || cosine(three("mean"), three("last")) <= apart {
		t.Errorf("the mean is not between the first and the last")
	}
}

func TestEmbedMiniLM(t *testing.T) {
	lib := libDir(t)
	r := start(t, engine.LoadSpec{Path: present(t, cached("models", "all-MiniLM-L6-v2.gguf")), LibDir: lib, Threads: 1})
	info := r.Info()
	if info.Model.Generative || !info.Model.Embedding || info.Model.Pooling != "mean" {
		t.Errorf("%+v", info.Model)
	}
	var b ieg.Batch
	d := &driver{t: t, r: r}
	for i, x := range []string{"A man is eating food.", "A man is eating a piece of bread.", "Two planes fly over the sea."} {
		tokens, _ := r.Tokenize(x, false)
		s, begin := d.newSeq(ieg.Slot(i), tokens, greedy(), 0)
		begin.Embed = true
		b.New, b.Work = append(b.New, begin), append(b.Work, ieg.Work{Seq: s.id, Slot: ieg.Slot(i), N: int32(len(tokens))})
	}
	res := d.ok(b).Results
	checkUnit(t, res[0].Vector, 384)
	near, other := cosine(res[0].Vector, res[1].Vector), cosine(res[0].Vector, res[2].Vector)
	if near < 0.7 || other > 0.3 {
		t.Errorf("alike %.3f, other %.3f", near, other)
	}
}

func TestTypeSizesAreTheLibrarys(t *testing.T) {
	if _, err := openLibrary(libDir(t)); err != nil {
		t.Fatal(err)
	}
	for k := range gguf.Known {
		block, bytes := gguf.TypeSize(k)
		if block == 0 {
			continue
		}
		if uint64(yz.GGMLBlockSize(yz.GGMLType(k))) != block || yz.GGMLTypeSize(yz.GGMLType(k)) != bytes {
			t.Errorf("%v: %d elements in %d bytes, the library has %d in %d", k, block, bytes, yz.GGMLBlockSize(yz.GGMLType(k)), yz.GGMLTypeSize(yz.GGMLType(k)))
		}
	}
}

func TestDevices(t *testing.T) {
	devs, err := Devices(libDir(t))
	if err != nil || len(devs) == 0 {
		t.Fatal(devs, err)
	}
	if i := slices.IndexFunc(devs, func(d ieg.ResourceSpec) bool { return d.Type == "CPU" }); i < 0 || devs[i].Memory.VRAM == 0 || devs[i].Model == "" {
		t.Errorf("%+v", devs)
	}
}
