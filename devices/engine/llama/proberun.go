package llama

import (
	"context"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// probeRun times passes in a context of one way. Times are the least seen.
type probeRun struct {
	way
	c     *engineContext
	vocab int32
	n     int // tokens of a prefill
	rows  int // of a step
	at    int // tokens in each slot
	code  int32

	prefill, deep time.Duration // n tokens in an empty slot, and behind at
	many, one     time.Duration // a step of all rows, and of one
}

// never is longer than anything measured.
const never = time.Duration(1<<63 - 1)

// probe opens a context for a way, as deep as this engine's may get: what is
// fastest for short contexts can be slowest for long ones.
func (l *loading) probe(w way) (*probeRun, error) {
	s := l.shapeFor(w.layout, w.flash)
	s.slots = min(s.slots, probeSlots)
	per := min(l.size.slotTokens, probeTokens)
	if most := int32(probeBytes / max(l.tokenBytes*int64(s.slots), 1)); per > most {
		per = max(most/slotStep*slotStep, 2*slotStep)
	}
	s.slotTokens, s.cells = per, per*s.slots
	c, err := newContext(l.lib, l.model, s, l.abort)
	if err != nil {
		return nil, err
	}
	return &probeRun{
		way: w, c: c, vocab: int32(yz.VocabNTokens(yz.ModelGetVocab(l.model))),
		n: int(min(probePrefill, per/2)), rows: int(s.slots),
		prefill: never, deep: never, many: never, one: never,
	}, nil
}

// takeTurns measures the runs until they have had their time, and returns them.
func takeTurns(ctx context.Context, runs []*probeRun) []*probeRun {
	slow := begin(runs)
	started := time.Now()
	budget := time.Duration(2*len(runs)) * probeTime
	for i := 0; i < probeSteps && (i == 0 || !slow) || i < probeStepsMax && time.Since(started) < budget; i++ {
		for _, r := range runs {
			if r.code != decodeOK || ctx.Err() != nil {
				continue
			}
			if i == 0 || i < probeSteps && r.deep < probeTime {
				r.deep = min(r.deep, r.chunk(r.n))
			}
			r.many = min(r.many, r.step(r.rows, i))
			r.one = min(r.one, r.step(1, i))
		}
	}
	return runs
}

// begin measures prompts and fills the slots, of the runs for which that was
// not done, and tells whether one of these is slow.
func begin(runs []*probeRun) (slow bool) {
	var fresh []*probeRun
	for _, r := range runs {
		if r.at == 0 {
			fresh = append(fresh, r)
			r.compute(probeFirst) // reads the weights, and compiles where the device needs that
			slow = r.compute(probeFirst) > probeSlow || slow
		}
	}
	for i := 0; i < probeSteps && (i == 0 || !slow); i++ {
		for _, r := range fresh {
			if slow {
				r.n, r.rows = probeFirst, min(r.rows, probeSlowSlots)
			}
			if r.prefill >= probeTime && r.prefill < never {
				continue
			}
			r.prefill = min(r.prefill, r.compute(r.n))
		}
	}
	for _, r := range fresh {
		per := int(r.c.shape.cells / r.c.shape.slots)
		r.context(per - max(slotStep, per/4))
	}
	return slow
}

// outcome is what was measured.
func (t *probeRun) outcome() ieg.LayoutProbe {
	return ieg.LayoutProbe{
		Layout: t.layout, FlashAttn: t.flash,
		PrefillTPS: float64(2*t.n) / (t.prefill + t.deep).Seconds(), DecodeTPS: float64(t.rows) / t.many.Seconds(),
	}
}

// fixed is the part of a step's time that does not grow with its rows, in
// seconds, and how many rows take as long: a step takes fixed + rows × row.
func (t *probeRun) fixed() (pass float64, rows int) {
	if t.rows < 2 {
		return 0, 0
	}
	row := (t.many - t.one).Seconds() / float64(t.rows-1)
	if row <= 0 {
		return 0, 0
	}
	pass = max(t.one.Seconds()-row, 0)
	return pass, min(int(pass/row), fillMost)
}

// compute computes n tokens in slot 0.
func (t *probeRun) compute(n int) time.Duration {
	t.c.trim(0, 0)
	b := t.c.batch
	b.n = 0
	for i := range n {
		b.add(ieg.Token((7+13*i)%int(t.vocab)), int32(i), 0, i == n-1)
	}
	return t.decode()
}

// chunk computes n tokens behind the context of slot 0 and takes them back.
func (t *probeRun) chunk(n int) time.Duration {
	b := t.c.batch
	b.n = 0
	for i := range n {
		b.add(ieg.Token((7+13*i)%int(t.vocab)), int32(t.at+i), 0, i == n-1)
	}
	took := t.decode()
	t.c.trim(0, int32(t.at))
	return took
}

// context gives all slots a context of want tokens, or of n.
func (t *probeRun) context(want int) {
	blob := make([]byte, yz.StateSeqGetSize(t.c.ctx, 0))
	yz.StateSeqGetData(t.c.ctx, blob, 0)
	t.at = t.n
	if long, ok := growState(blob, want); ok && want > t.n {
		if yz.StateSeqSetData(t.c.ctx, long, 0) == uint64(len(long)) && t.c.held(0) == int32(want) {
			blob, t.at = long, want
		} else {
			yz.StateSeqSetData(t.c.ctx, blob, 0)
		}
	}
	for s := int32(1); s < t.c.shape.slots; s++ {
		yz.StateSeqSetData(t.c.ctx, blob, yz.SeqId(s))
	}
	t.c.lib.log.Take()
}

// step adds a token to each of the first rows slots, and takes it back.
func (t *probeRun) step(rows, n int) time.Duration {
	b := t.c.batch
	b.n = 0
	for s := range rows {
		b.add(ieg.Token((11+n)%int(t.vocab)), int32(t.at), int32(s), true)
	}
	took := t.decode()
	for s := range rows {
		t.c.trim(int32(s), int32(t.at))
	}
	return took
}

func (t *probeRun) decode() time.Duration {
	started := time.Now()
	if code := t.c.decode(); code != decodeOK {
		t.code = code
	}
	_ = yz.Synchronize(t.c.ctx)
	return time.Since(started)
}
