package llama

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// choice is the outcome of the layout's measurement, as kept in StateDir.
type choice struct {
	Key     string            `json:"key"`
	Probe   []ieg.LayoutProbe `json:"probe"`
	FillGap int               `json:"fill_gap"`
	// PassSeconds is the fixed part of a step's time.
	PassSeconds float64 `json:"pass_seconds"`
}

// choose picks the layout and flash attention: as asked for, as measured
// before for the same model, device, library and sizes, or by measurement.
func (l *loading) choose(ctx context.Context, r *Runner) (shape, error) {
	layouts := []ieg.Layout{ieg.Streams, ieg.Unified}
	switch {
	case l.spec.Layout == "unified", l.size.slots == 1 && !l.tiers():
		layouts = layouts[1:]
	case l.spec.Layout == "streams", l.tiers() && (l.slides() || l.size.slots == 1 || l.size.slots == maxSlots):
		layouts = layouts[:1] // out of which blocks are read without a detour
	}
	flash := []bool{true, false}
	switch {
	case l.flash() == "on", quantised(l.kvType):
		flash = flash[:1]
	case l.spec.FlashAttn == "off":
		flash = flash[1:]
	}
	if len(layouts)*len(flash) == 1 {
		return l.shapeFor(layouts[0], flash[0]), nil
	}
	c := choice{Key: l.probeKey()}
	if !c.load(l.spec.StateDir) {
		if err := l.measure(ctx, &c, layouts, flash); err != nil {
			return shape{}, err
		}
		c.save(l.spec.StateDir)
	}
	l.info.Probe, r.fillGap = c.Probe, c.FillGap
	if c.PassSeconds > 0 {
		r.pass = c.PassSeconds
	}
	for _, p := range c.Probe {
		if p.Chosen {
			return l.shapeFor(p.Layout, p.FlashAttn), nil
		}
	}
	return l.shapeFor(layouts[0], flash[0]), nil
}

// flash is what the choice is bound to: blocks are rows, and V lies in rows only
// with flash attention.
func (l *loading) flash() string {
	if l.spec.FlashAttn != "off" && l.tiers() {
		return "on"
	}
	return l.spec.FlashAttn
}

// probeKey names everything that the outcome depends on, the way of measuring
// included.
func (l *loading) probeKey() string {
	m := &l.info.Model
	return fmt.Sprintf("way 2|%s|%s|%s|%s|%s|threads %d of %d|slots %d x %d|%s|%s|%s|tiers %t", m.Digest, l.info.Device, l.info.Backend,
		l.lib.x.Version(), l.lib.dir, l.threads, runtime.NumCPU(), l.size.slots, l.size.slotTokens, l.info.KVType, l.spec.Layout, l.flash(), l.tiers())
}

func (c *choice) path(dir string) string {
	sum := sha256.Sum256([]byte(c.Key))
	return filepath.Join(dir, "layout-"+hex.EncodeToString(sum[:8])+".json")
}

func (c *choice) load(dir string) bool {
	if dir == "" {
		return false
	}
	b, err := os.ReadFile(c.path(dir))
	if err != nil {
		return false
	}
	var old choice
	if json.Unmarshal(b, &old) != nil || old.Key != c.Key || len(old.Probe) == 0 {
		return false
	}
	*c = old
	return true
}

// save keeps the outcome; that it can't be kept costs the next load its time
// only.
func (c *choice) save(dir string) {
	if dir == "" {
		return
	}
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(dir, "layout-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(append(b, '\n'))
	if tmp.Close() != nil || err != nil || os.Rename(tmp.Name(), c.path(dir)) != nil {
		os.Remove(tmp.Name())
	}
}

// measure tries the layouts with flash attention, then, while there is time,
// the better one without.
func (l *loading) measure(ctx context.Context, c *choice, layouts []ieg.Layout, flash []bool) error {
	best, started := -1, time.Now()
	try := func(layout ieg.Layout, flash bool) error {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %w", ieg.ErrCancelled, ctx.Err())
		}
		p, gap, pass, err := l.probe(layout, flash)
		if err != nil {
			return err
		}
		c.Probe = append(c.Probe, p)
		if i := len(c.Probe) - 1; best < 0 || l.score(p) < l.score(c.Probe[best]) {
			best, c.FillGap, c.PassSeconds = i, gap, pass
		}
		return nil
	}
	var failed error
	for _, y := range layouts {
		if err := try(y, flash[0]); err != nil {
			failed = err // the model or the device may lack this way
		}
	}
	if len(flash) > 1 && (best < 0 || time.Since(started) < probeBudget) {
		y := layouts[0]
		if best >= 0 {
			y = c.Probe[best].Layout
		}
		if err := try(y, flash[1]); err != nil {
			failed = err
		}
	}
	if best < 0 {
		return failed
	}
	c.Probe[best].Chosen = true
	if c.Probe[best].Layout != ieg.Streams {
		c.FillGap = 0
	}
	return nil
}

// score is the seconds that a layout takes per drawn token in a mix of two
// computed prompt tokens for each. Less is better.
func (l *loading) score(p ieg.LayoutProbe) float64 {
	s := 2/p.PrefillTPS + 1/p.DecodeTPS
	if l.tiers() && p.Layout == ieg.Unified {
		s *= tiersPay
	}
	return s
}

// probe measures one layout with contexts as deep as this engine's may get:
// what is fastest for short ones can be slowest for long ones.
func (l *loading) probe(layout ieg.Layout, flash bool) (p ieg.LayoutProbe, gap int, pass float64, err error) {
	s := l.shapeFor(layout, flash)
	s.slots = min(s.slots, probeSlots)
	per := min(l.size.slotTokens, probeTokens)
	if most := int32(probeBytes / max(l.tokenBytes*int64(s.slots), 1)); per > most {
		per = max(most/slotStep*slotStep, 2*slotStep)
	}
	s.slotTokens, s.cells = per, per*s.slots
	c, err := newContext(l.lib, l.model, s, l.abort)
	if err != nil {
		return p, 0, 0, err
	}
	defer c.close()
	t := &probeRun{c: c, n: int(min(probePrefill, per/2)), vocab: int32(yz.VocabNTokens(yz.ModelGetVocab(l.model)))}
	t.prefill(probeFirst) // reads the weights, and compiles where the device needs that
	prefill, rows := t.prefill(probeFirst), s.slots
	if prefill > probeSlow {
		t.n, rows = probeFirst, min(rows, probeSlowSlots)
	} else {
		prefill = t.prefill(t.n)
	}
	t.context(int(per - max(slotStep, per/4)))
	deep := t.chunk(t.n)
	many := t.steps(int(rows))
	one := t.steps(1)
	if t.code != decodeOK {
		return p, 0, 0, contextError(s, l.lib.log.Take())
	}
	p = ieg.LayoutProbe{
		Layout: layout, FlashAttn: flash, KVType: l.info.KVType,
		PrefillTPS: float64(2*t.n) / (prefill + deep).Seconds(), DecodeTPS: float64(rows) / many.Seconds(),
	}
	// A step takes a fixed part and a part per row: fixed + rows × row.
	if row := (many - one).Seconds() / float64(rows-1); rows > 1 && row > 0 {
		pass = max(one.Seconds()-row, 0)
		gap = min(int(pass/row), fillMost)
	}
	return p, gap, pass, nil
}

// probeRun times passes in a context.
type probeRun struct {
	c     *engineContext
	n     int // tokens of the prefill
	at    int // tokens in each slot
	vocab int32
	code  int32
}

// prefill computes n tokens in slot 0.
func (t *probeRun) prefill(n int) time.Duration {
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

// steps is the least time of a step that adds a token to each of the first
// rows slots.
func (t *probeRun) steps(rows int) time.Duration {
	least := time.Duration(1<<63 - 1)
	started := time.Now()
	for n := 0; n < probeSteps && (n == 0 || least < probeSlow) || time.Since(started) < probeTime && n < 32; n++ {
		b := t.c.batch
		b.n = 0
		for s := range rows {
			b.add(ieg.Token((11+n)%int(t.vocab)), int32(t.at), int32(s), true)
		}
		least = min(least, t.decode())
		for s := range rows {
			t.c.trim(int32(s), int32(t.at))
		}
	}
	return least
}

func (t *probeRun) decode() time.Duration {
	started := time.Now()
	if code := t.c.decode(); code != decodeOK {
		t.code = code
	}
	_ = yz.Synchronize(t.c.ctx)
	return time.Since(started)
}
