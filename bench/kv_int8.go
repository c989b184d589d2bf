package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"ieg"
	"ieg/bench/report"
	"ieg/devices/engine/llama"
	"ieg/memory/codec"
)

// kvInt8: the speed of the int8 codec, and what it does to what a model says.
func kvInt8(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := int8Speed(e)
	kl := report.Row{Name: "kv-int8-kl", Unit: "×", Bound: 1.5, Better: report.Lower, Against: "the KL divergence of the same KV in another batch shape"}
	ppl := report.Row{Name: "kv-int8-ppl", Unit: "×", Bound: 1.01, Better: report.Lower, Against: "the perplexity with undisturbed KV"}
	err := int8Loss(ctx, e, &kl, &ppl)
	return append(rows, kl, ppl), err
}

const (
	int8Hot    = 1 << 20
	int8Stream = 128 << 20
)

// int8Speed measures the codec on one core: 1 MB again and again, and large
// arrays beside a copy of them, in turn.
func int8Speed(e *Env) []report.Row {
	against := "the clock, one core, 1 MB in the cache"
	rows := []report.Row{
		{Name: "kv-int8-encode", Unit: "GB/s", Bound: 8, Better: report.Higher, Against: against},
		{Name: "kv-int8-decode", Unit: "GB/s", Bound: 8, Better: report.Higher, Against: against},
		{Name: "kv-int8-stream-encode", Unit: "×", Bound: 0.8, Better: report.Higher, Against: "a copy of the same bytes, through memory"},
		{Name: "kv-int8-stream-decode", Unit: "×", Bound: 0.8, Better: report.Higher, Against: "a copy of the same bytes, through memory"},
	}
	raw := make([]byte, int8Stream)
	randomHalves(raw, 5)
	packed := make([]byte, codec.Size(ieg.CodecINT8, int8Stream))
	same := slices.Repeat([]byte{1}, int8Stream) // no page of it is missing
	encode := func(n int) { codec.Encode(ieg.CodecINT8, codec.F16, packed[:codec.Size(ieg.CodecINT8, n)], raw[:n]) }
	decode := func(n int) { codec.Decode(ieg.CodecINT8, codec.F16, raw[:n], packed[:codec.Size(ieg.CodecINT8, n)]) }
	encode(int8Stream)
	for i, f := range []func(int){encode, decode} {
		f(int8Hot)
		var speeds, ratios []float64
		for range 8*e.Rounds + 1 {
			const times = 64
			took := timed(func() {
				for range times {
					f(int8Hot)
				}
			})
			speeds = append(speeds, times*int8Hot/took.Seconds()/1e9)
		}
		var own, copied float64
		for range 2*e.Rounds + 1 {
			own = timed(func() { f(int8Stream) }).Seconds()
			copied = timed(func() { copy(same, raw) }).Seconds()
			ratios = append(ratios, copied/own)
		}
		rows[i].Measure(speeds)
		rows[2+i].Measure(ratios)
		rows[2+i].Detail = fmt.Sprintf("%.1f against %.1f GB/s in the last round", int8Stream/own/1e9, int8Stream/copied/1e9)
	}
	return rows
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// The prompts with which the codec's loss is measured, and how many are
// computed in one pass.
const (
	lossPrompts = 50
	lossTokens  = 160
	lossFollow  = 64
	lossWide    = 10
	lossRun     = 64
)

// The versions of a prompt's KV: undisturbed and through int8, computed on in
// passes of one token of each prompt, and, as a control of what any other batch
// does, undisturbed in passes of lossRun tokens of one prompt.
const (
	plainKV = iota
	int8KV
	controlKV
	lossKinds
)

// int8Loss measures how far the next-token distributions are from the
// undisturbed ones, along text drawn from these.
func int8Loss(ctx context.Context, e *Env, kl, ppl *report.Row) error {
	l, err := newLoss(e)
	if err != nil {
		return err
	}
	defer l.raw.Close()
	groups := lossPrompts / lossWide
	if e.Tiny {
		groups = 1
	}
	var kls, ppls []float64
	for g := range groups {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := l.group(uint64(g)); err != nil {
			return err
		}
		n := float64(l.n)
		kls = append(kls, l.sum[int8KV]/l.sum[controlKV])
		ppls = append(ppls, math.Exp((l.nll[int8KV]-l.nll[plainKV])/n))
		e.logf("      %d tokens: KL %.3g, control %.3g; perplexity %.4f, int8 %.4f, control %.4f", l.n,
			l.sum[int8KV]/n, l.sum[controlKV]/n, math.Exp(l.nll[plainKV]/n), math.Exp(l.nll[int8KV]/n), math.Exp(l.nll[controlKV]/n))
	}
	kl.Measure(kls[len(kls)-1:])
	ppl.Measure(ppls[len(ppls)-1:])
	kl.Low, kl.High = slices.Min(kls), slices.Max(kls)
	ppl.Low, ppl.High = slices.Min(ppls), slices.Max(ppls)
	n := float64(l.n)
	kl.Detail = fmt.Sprintf("mean KL %.3g against %.3g nats over %d tokens; greedy texts of %d tokens changed: %d by int8, %d by the control, of %d",
		l.sum[int8KV]/n, l.sum[controlKV]/n, l.n, lossFollow, l.changed[int8KV], l.changed[controlKV], l.prompts)
	ppl.Detail = fmt.Sprintf("%.4f against %.4f; control %.4f", math.Exp(l.nll[int8KV]/n), math.Exp(l.nll[plainKV]/n), math.Exp(l.nll[controlKV]/n))
	return nil
}

// loss is the sums over prompts so far.
type loss struct {
	slots   []ieg.Slot // of the prompts
	raw     *llama.RawKV
	store   *kvStore // of which the arena only
	rand    *rand.Rand
	sum     [lossKinds]float64 // KL to the undisturbed
	nll     [lossKinds]float64
	changed [lossKinds]int // greedy texts
	n       int            // tokens
	prompts int
}

func newLoss(e *Env) (*loss, error) {
	arena, err := newArena(2*lossTokens*kvTokenBytes + 8*arenaPageBytes)
	if err != nil {
		return nil, err
	}
	l := &loss{store: &kvStore{arena: arena}, rand: rand.New(rand.NewPCG(6, 6))}
	for i := range lossWide {
		l.slots = append(l.slots, ieg.Slot(i))
	}
	l.raw, err = e.openRaw(arena, lossRun, lossTokens+lossFollow+32)
	return l, err
}

// lossGroup is the state of one group: for each prompt its KV as the library
// has it, raw and through int8, and what was drawn.
type lossGroup struct {
	state [2][lossWide][]byte
	last  [lossWide]ieg.Token
}

// group takes in lossWide prompts more.
func (l *loss) group(seed uint64) error {
	var g lossGroup
	for i := range lossWide {
		if err := l.prepare(&g, i, 130_000+100*seed+uint64(i)); err != nil {
			return err
		}
	}
	l.prompts += lossWide
	if err := l.forced(&g, l.draw); err != nil {
		return err
	}
	return l.forced(&g, l.follow)
}

// slot0 and slot1 are where a prompt is computed and brought back by prepare.
const slot0, slot1 ieg.Slot = 0, 1

// prepare computes a prompt less its last token, and keeps its KV raw and as
// it comes back through int8.
func (l *loss) prepare(g *lossGroup, i int, seed uint64) error {
	text, err := l.raw.Tokenize(prose(seed, lossTokens+16))
	if err != nil {
		return err
	}
	if len(text) < lossTokens {
		return fmt.Errorf("a prompt has %d tokens, %d are needed", len(text), lossTokens)
	}
	g.last[i] = text[lossTokens-1]
	const n = lossTokens - 1
	if err := l.clear(slot0, slot1); err != nil {
		return err
	}
	if err := l.raw.Fill(slot0, text[:n]); err != nil {
		return err
	}
	l.store.page = 0
	saved, err := saveSlot(l.raw, l.store, slot0, n, ieg.CodecINT8)
	if err != nil {
		return err
	}
	if _, err := loadSlot(l.raw, slot1, saved, n); err != nil {
		return err
	}
	if g.state[plainKV][i], err = l.raw.Export(slot0); err != nil {
		return err
	}
	g.state[int8KV][i], err = l.raw.Export(slot1)
	return err
}

func (l *loss) clear(slots ...ieg.Slot) error {
	for _, s := range slots {
		if _, err := l.raw.Ops(ieg.KVOp{Kind: ieg.KVTrim, To: s}); err != nil {
			return err
		}
	}
	return nil
}

// place puts the prompts' KV of a kind into the slots.
func (l *loss) place(g *lossGroup, kind int) error {
	from := &g.state[plainKV]
	if kind == int8KV {
		from = &g.state[int8KV]
	}
	for i := range lossWide {
		if err := l.clear(ieg.Slot(i)); err != nil {
			return err
		}
		if _, err := l.raw.Import(ieg.Slot(i), from[i], lossTokens-1); err != nil {
			return err
		}
	}
	return nil
}

// next computes a token of each prompt.
func (l *loss) next(tokens []ieg.Token, f func(i int, logits []float32)) error {
	rows, err := l.raw.Next(l.slots, tokens)
	for i, row := range rows {
		f(i, row)
	}
	return err
}

// forcedText is what follows the prompts, and what the undisturbed kind gave
// for each of its tokens.
type forcedText struct {
	tokens  [lossWide][]ieg.Token
	plain   [lossWide][][]float32
	changed [lossKinds][lossWide]bool
}

// taker takes in the logits after a token of a text; those of the undisturbed
// kind append the next token.
type taker func(t *forcedText, kind, i, pos int, logits []float32)

// forced computes on with all kinds along one text, which take makes from the
// logits of the undisturbed kind.
func (l *loss) forced(g *lossGroup, take taker) error {
	var t forcedText
	for i, x := range g.last {
		t.tokens[i] = []ieg.Token{x}
	}
	for _, kind := range []int{plainKV, int8KV} {
		if err := l.place(g, kind); err != nil {
			return err
		}
		for pos := range lossFollow {
			var now []ieg.Token
			for i := range t.tokens {
				now = append(now, t.tokens[i][pos])
			}
			if err := l.next(now, func(i int, logits []float32) { take(&t, kind, i, pos, logits) }); err != nil {
				return err
			}
		}
	}
	if err := l.place(g, controlKV); err != nil {
		return err
	}
	for i := range t.tokens {
		for pos := 0; pos < lossFollow; pos += lossRun {
			rows, err := l.raw.Run(ieg.Slot(i), t.tokens[i][pos:pos+lossRun])
			if err != nil {
				return err
			}
			for k, row := range rows {
				take(&t, controlKV, i, pos+k, row)
			}
		}
	}
	return nil
}

// draw makes text drawn by chance, and adds up how far the kinds are apart.
func (l *loss) draw(t *forcedText, kind, i, pos int, logits []float32) {
	lp := logSoftmax(logits)
	if kind == plainKV {
		t.plain[i] = append(t.plain[i], lp)
		t.tokens[i] = append(t.tokens[i], ieg.Token(drawFrom(lp, l.rand.Float64())))
		l.n++
	}
	l.nll[kind] -= float64(lp[t.tokens[i][pos+1]])
	l.sum[kind] += divergence(t.plain[i][pos], lp)
}

// follow makes greedy text, and counts the texts that a kind would have gone
// on with differently.
func (l *loss) follow(t *forcedText, kind, i, pos int, logits []float32) {
	next := ieg.Token(argMax(logits))
	if kind == plainKV {
		t.tokens[i] = append(t.tokens[i], next)
	}
	if next != t.tokens[i][pos+1] && !t.changed[kind][i] {
		t.changed[kind][i] = true
		l.changed[kind]++
	}
}
