package enginetest

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"ieg"
	"ieg/devices/engine"
)

// bench is a runner on the test bench.
type bench struct {
	testing.TB
	o      Options
	runner engine.Runner
	info   ieg.EngineInfo
	step   ieg.StepID
	seq    ieg.SeqID
	live   []ieg.SeqID
	prompt []ieg.Token
	pages  int // of the arena, given to blocks
}

func newBench(t testing.TB, r engine.Runner, o Options) *bench {
	b := &bench{TB: t, o: o, runner: r, info: r.Info()}
	b.prompt = b.tokens(o.Prompt)
	if len(b.prompt) < 8 {
		t.Fatalf("the prompt has %d tokens, the suite needs 8", len(b.prompt))
	}
	return b
}

func (b *bench) tokens(text string) []ieg.Token {
	b.Helper()
	t, err := b.runner.Tokenize(text, false)
	if err != nil {
		b.Fatalf("tokenize %q: %v", text, err)
	}
	return t
}

// start describes a new greedy sequence.
func (b *bench) start(slot ieg.Slot, tokens []ieg.Token) ieg.SeqStart {
	b.seq++
	b.live = append(b.live, b.seq)
	return ieg.SeqStart{
		Seq: b.seq, Slot: slot, Tokens: tokens, Prompt: int32(len(tokens)),
		MaxTokens: b.info.SlotTokens, Sampling: greedy(),
	}
}

// try runs a batch whatever its outcome.
func (b *bench) try(batch ieg.Batch) *ieg.StepDone {
	b.Helper()
	b.step++
	batch.Step = b.step
	done := &ieg.StepDone{}
	b.runner.Step(&batch, done)
	if (done.Outcome == ieg.StepFailed) != (done.Err != "") {
		b.Fatalf("outcome %d with error %q", done.Outcome, done.Err)
	}
	return done
}

// run runs a batch that must succeed.
func (b *bench) run(batch ieg.Batch) *ieg.StepDone {
	b.Helper()
	done := b.try(batch)
	if done.Outcome != ieg.StepOK {
		b.Fatalf("step %d: outcome %d: %s", b.step, done.Outcome, done.Err)
	}
	if len(done.Results) != len(batch.Work) {
		b.Fatalf("step %d: %d results for %d sequences", b.step, len(done.Results), len(batch.Work))
	}
	for i, w := range batch.Work {
		r := &done.Results[i]
		if r.Seq != w.Seq || r.Computed != w.N || r.Sampled != w.Sample {
			b.Fatalf("step %d: work %+v gave %+v", b.step, w, *r)
		}
	}
	return done
}

// output is what a sequence has generated.
type output struct {
	tokens   []ieg.Token
	text     []byte
	stop     ieg.StopReason
	stopText string
	probs    []*ieg.Logprob
}

func (o *output) take(t testing.TB, r *ieg.SeqResult) {
	t.Helper()
	if !utf8.Valid(r.Text) {
		t.Fatalf("text %q is cut inside a character", r.Text)
	}
	o.tokens = append(o.tokens, r.Token)
	o.text = append(o.text, r.Text...)
	o.stop, o.stopText = r.Stop, r.StopText
	o.probs = append(o.probs, r.Logprob)
}

// prefill computes a new sequence's prompt from a start, in chunks, and draws
// its first token.
func (b *bench) prefill(s ieg.SeqStart, ops []ieg.KVOp, from, chunk int32) output {
	b.Helper()
	var out output
	batch := ieg.Batch{New: []ieg.SeqStart{s}, Ops: ops}
	end := int32(len(s.Tokens))
	for at := from; at < end; {
		n := min(chunk, end-at)
		batch.Work = []ieg.Work{{Seq: s.Seq, Slot: s.Slot, Start: at, N: n, Sample: at+n == end}}
		done := b.run(batch)
		if at += n; at == end {
			out.take(b, &done.Results[0])
		}
		batch = ieg.Batch{}
	}
	return out
}

// decode goes on with a prefilled sequence until it has n tokens or stops.
func (b *bench) decode(s ieg.SeqStart, out *output, n int) {
	b.Helper()
	for len(out.tokens) < n && out.stop == ieg.NotStopped {
		start := int32(len(s.Tokens) + len(out.tokens) - 1)
		done := b.run(ieg.Batch{Work: []ieg.Work{{Seq: s.Seq, Slot: s.Slot, Start: start, N: 1, Sample: true}}})
		out.take(b, &done.Results[0])
	}
}

// generate runs a sequence alone in a cleared engine, to n tokens.
func (b *bench) generate(s ieg.SeqStart, n int) output {
	b.Helper()
	b.clear()
	b.live = append(b.live, s.Seq)
	out := b.prefill(s, nil, 0, b.info.StepTokens)
	b.decode(s, &out, n)
	return out
}

// clear drops all sequences and empties all slots.
func (b *bench) clear() {
	b.Helper()
	batch := ieg.Batch{Drop: b.live}
	for slot := range b.info.Slots {
		batch.Ops = append(batch.Ops, ieg.KVOp{Kind: ieg.KVTrim, To: ieg.Slot(slot)})
	}
	b.run(batch)
	b.live = nil
}

func (b *bench) same(what string, a, c output) {
	b.Helper()
	if len(a.tokens) != len(c.tokens) {
		b.Fatalf("%s: %d tokens, then %d", what, len(a.tokens), len(c.tokens))
	}
	for i := range a.tokens {
		if a.tokens[i] != c.tokens[i] {
			b.Fatalf("%s: token %d is %d, then %d", what, i, a.tokens[i], c.tokens[i])
		}
	}
	if !bytes.Equal(a.text, c.text) || a.stop != c.stop || a.stopText != c.stopText {
		b.Fatalf("%s: %q %v %q, then %q %v %q", what, a.text, a.stop, a.stopText, c.text, c.stop, c.stopText)
	}
}
