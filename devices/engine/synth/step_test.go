package synth

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ieg"
	"ieg/devices/engine"
)

func open(t testing.TB, layout string, edit func(*engine.LoadSpec)) *Runner {
	spec := engine.LoadSpec{Name: "s", Context: 100, Slots: 4, Layout: layout, Synth: &engine.SynthSpec{Seed: 1}}
	if edit != nil {
		edit(&spec)
	}
	r, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tokens(n int) []ieg.Token {
	list := make([]ieg.Token, n)
	for i := range list {
		list[i] = firstWord + ieg.Token(i%50)
	}
	return list
}

func start(seq ieg.SeqID, slot ieg.Slot, n int) ieg.SeqStart {
	return ieg.SeqStart{Seq: seq, Slot: slot, Tokens: tokens(n), Prompt: int32(n), Sampling: ieg.Sampling{Logprobs: -1}}
}

func step(t testing.TB, r *Runner, b ieg.Batch, refusal string) *ieg.StepDone {
	t.Helper()
	d := &ieg.StepDone{}
	r.Step(&b, d)
	if refusal == "" && d.Outcome != ieg.StepOK || refusal != "" && !strings.Contains(d.Err, refusal) {
		t.Fatalf("outcome %d %q, want %q", d.Outcome, d.Err, refusal)
	}
	return d
}

// TestCells fills the engine: shared cells count once in the unified layout,
// copies count in streams.
func TestCells(t *testing.T) {
	r := open(t, "unified", func(s *engine.LoadSpec) { s.Synth.Cells = 120 })
	step(t, r, ieg.Batch{New: []ieg.SeqStart{start(1, 0, 80)}, Work: []ieg.Work{{Seq: 1, N: 80}}}, "")
	step(t, r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, To: 1, N: 70}, {Kind: ieg.KVCopy, To: 2, N: 70}}}, "")
	if r.kv.used != 80 {
		t.Errorf("%d cells in use, want 80", r.kv.used)
	}
	more := []ieg.SeqStart{start(2, 1, 100), start(3, 2, 100)}
	work := []ieg.Work{{Seq: 2, Slot: 1, Start: 70, N: 30}, {Seq: 3, Slot: 2, Start: 70, N: 11}}
	step(t, r, ieg.Batch{New: more, Work: work}, "no cells: 41 tokens, 40 of 120 cells free")
	step(t, r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 0, N: 70}}, Work: work}, "")
	if r.kv.used != 111 {
		t.Errorf("%d cells in use, want 111", r.kv.used)
	}
	for slot := range ieg.Slot(4) {
		step(t, r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot}}}, "")
	}
	if r.kv.used != 0 || len(r.kv.free) != len(r.kv.hash) {
		t.Errorf("%d cells in use, %d of %d free", r.kv.used, len(r.kv.free), len(r.kv.hash))
	}

	r = open(t, "streams", nil)
	step(t, r, ieg.Batch{New: []ieg.SeqStart{start(1, 0, 80)}, Work: []ieg.Work{{Seq: 1, N: 80}}}, "")
	step(t, r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, To: 1, N: 70}}}, "")
	if r.kv.used != 150 {
		t.Errorf("%d cells in use, want 150", r.kv.used)
	}
}

// TestWrongContent: a slot with as many tokens, but of another text.
func TestWrongContent(t *testing.T) {
	r := open(t, "unified", nil)
	step(t, r, ieg.Batch{New: []ieg.SeqStart{start(1, 0, 20)}, Work: []ieg.Work{{Seq: 1, N: 10}}}, "")
	other := start(2, 0, 20)
	other.Tokens[3]++
	step(t, r, ieg.Batch{New: []ieg.SeqStart{other}, Work: []ieg.Work{{Seq: 2, Start: 10, N: 10}}}, "slot 0 holds 10 tokens of another text")
	step(t, r, ieg.Batch{Work: []ieg.Work{{Seq: 2, Start: 3, N: 10}}}, "slot 0 holds 10 tokens, the work starts at 3")
	step(t, r, ieg.Batch{Ops: []ieg.KVOp{{To: 0, N: 3}}, Work: []ieg.Work{{Seq: 2, Start: 3, N: 10}}}, "")
}

func TestTook(t *testing.T) {
	times := func(s *engine.LoadSpec) {
		s.Synth.StepNS, s.Synth.PrefillNS, s.Synth.DecodeNS, s.Synth.KiloCellNS = 1e6, 1000, 100, 1e6
	}
	for layout, decode := range map[string]time.Duration{
		"unified": 1e6 + 2*100 + (2*20+2)*1000, // both read all 20 cells
		"streams": 1e6 + 2*100 + (20+2)*1000,
	} {
		r := open(t, layout, times)
		d := step(t, r, ieg.Batch{
			New:  []ieg.SeqStart{start(1, 0, 10), start(2, 1, 10)},
			Work: []ieg.Work{{Seq: 1, N: 10, Sample: true}, {Seq: 2, Slot: 1, N: 10, Sample: true}},
		}, "")
		if want := time.Duration(1e6 + 20*1000 + 20*1000); d.Took != want {
			t.Errorf("%s: prefill took %v, want %v", layout, d.Took, want)
		}
		d = step(t, r, ieg.Batch{Work: []ieg.Work{{Seq: 1, Start: 10, N: 1, Sample: true}, {Seq: 2, Slot: 1, Start: 10, N: 1, Sample: true}}}, "")
		if d.Took != decode {
			t.Errorf("%s: decode took %v, want %v", layout, d.Took, decode)
		}
	}
}

func TestSpecRefused(t *testing.T) {
	for _, s := range []engine.LoadSpec{
		{Layout: "paged"}, {Slots: MaxSlots + 1}, {Context: -1}, {Synth: &engine.SynthSpec{Vocab: MinVocab - 1}},
	} {
		if _, err := New(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}

// TestStopEvery: about one token in N ends a sequence.
func TestStopEvery(t *testing.T) {
	r := open(t, "streams", func(s *engine.LoadSpec) { s.Synth.StopEvery, s.Context = 10, 1000 })
	ends, drawn := 0, 0
	for i := range 2000 {
		s := start(1, 0, 5)
		s.Tokens[0] += ieg.Token(i % 300)
		s.Tokens[1] += ieg.Token(i / 300)
		d := step(t, r, ieg.Batch{New: []ieg.SeqStart{s}, Ops: []ieg.KVOp{{To: 0}}, Work: []ieg.Work{{Seq: 1, N: 5, Sample: true}}}, "")
		drawn++
		if d.Results[0].Stop == ieg.StopEnd {
			ends++
		}
	}
	if ends < drawn/14 || ends > drawn/7 {
		t.Errorf("%d of %d tokens ended, want about a tenth", ends, drawn)
	}
}

// TestTextAgainstNaive compares the incremental text with the text made at
// once, over random bytes and stop strings.
func TestTextAgainstNaive(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	alphabet := []byte("ab\xC3\xA9\xE2\x82\xAC")
	for range 20_000 {
		s := sequence{prompt: 0, max: int32(5 + rng.IntN(20))}
		for range rng.IntN(3) {
			var stop []byte
			for range 1 + rng.IntN(3) {
				stop = append(stop, "abé"[rng.IntN(4)])
			}
			if utf8.Valid(stop) {
				s.sampling.Stop = append(s.sampling.Stop, string(stop))
			}
		}
		s.sampling.MinTokens = int32(rng.IntN(4))
		s.sampling.IncludeStop = rng.IntN(2) == 0
		var shown, raw []byte
		early := 0
		for {
			c := alphabet[rng.IntN(len(alphabet))]
			raw = append(raw, c)
			text, stop, _ := s.add(nil, firstByte+ieg.Token(c), false)
			if !utf8.Valid(text) {
				t.Fatalf("text %q is cut inside a character", text)
			}
			shown = append(shown, text...)
			if s.generated() <= s.sampling.MinTokens {
				early = whole(raw)
			}
			if stop != ieg.NotStopped {
				break
			}
		}
		// All at once: the first stop string in what came after MinTokens.
		want := raw
		if at, found := firstOf(raw[early:], s.sampling.Stop); at >= 0 {
			want = raw[:early+at]
			if s.sampling.IncludeStop {
				want = raw[:early+at+len(found)]
			}
		}
		if w := appendShown(nil, want); !bytes.Equal(shown, w) {
			t.Fatalf("stops %q, min %d: showed %q of %q, want %q", s.sampling.Stop, s.sampling.MinTokens, shown, raw, w)
		}
	}
}

// TestDrawIsPinned: the tokens of a seed are part of what recorded runs rely
// on.
func TestDrawIsPinned(t *testing.T) {
	r := open(t, "unified", nil)
	d := step(t, r, ieg.Batch{New: []ieg.SeqStart{start(1, 0, 3)}, Work: []ieg.Work{{Seq: 1, N: 3, Sample: true}}}, "")
	got := []ieg.Token{d.Results[0].Token}
	for i := range int32(7) {
		d = step(t, r, ieg.Batch{Work: []ieg.Work{{Seq: 1, Start: 3 + i, N: 1, Sample: true}}}, "")
		got = append(got, d.Results[0].Token)
	}
	if want := pinned; !slices.Equal(got, want) {
		t.Errorf("tokens %v, want %v", got, want)
	}
}

func decoding(t testing.TB) (*Runner, *ieg.Batch) {
	r := open(t, "streams", func(s *engine.LoadSpec) { s.Slots, s.Context = 256, 1<<20 })
	b := &ieg.Batch{}
	for i := range 256 {
		b.New = append(b.New, start(ieg.SeqID(i+1), ieg.Slot(i), 2+i%3))
		b.Work = append(b.Work, ieg.Work{Seq: ieg.SeqID(i + 1), Slot: ieg.Slot(i), N: int32(2 + i%3), Sample: true})
	}
	return r, b
}

func next(t testing.TB, r *Runner, b *ieg.Batch, d *ieg.StepDone) {
	r.Step(b, d)
	if d.Outcome != ieg.StepOK {
		t.Fatal(d.Err)
	}
	b.New = nil
	for i := range b.Work {
		b.Work[i].Start, b.Work[i].N = b.Work[i].Start+b.Work[i].N, 1
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	r, b := decoding(t)
	d := &ieg.StepDone{}
	for range 200 {
		next(t, r, b, d)
	}
	// What is left is the growth of the token lists: a few bytes a token.
	if n := testing.AllocsPerRun(500, func() { next(t, r, b, d) }); n > 2 {
		t.Errorf("%g allocations in a step of 256 sequences", n)
	}
}

func BenchmarkStep(b *testing.B) {
	r, batch := decoding(b)
	d := &ieg.StepDone{}
	b.ReportAllocs()
	for b.Loop() {
		next(b, r, batch, d)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/token")
}

func ExampleRunner_Detokenize() {
	r, _ := New(engine.LoadSpec{})
	list, _ := r.Tokenize("<s>w300 é", true)
	text, _ := r.Detokenize(list)
	fmt.Println(list, text)
	// Output: [1 300 199 173] <s>w300 é
}

// pinned holds the first tokens of seed 1.
var pinned = []ieg.Token{967, 199, 173, 736, 199, 173, 927, 827}
