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
	"slices"
	"time"

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
	return fmt.Sprintf("way 3|%s|%s|%s|%s|%s|threads %d of %d|slots %d x %d|%s|%s|%s|tiers %t", m.Digest, l.info.Device, l.info.Backend,
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
// the better one without. Those that are compared are measured in turn: the
// speed of a shared machine can change by more than they differ.
func (l *loading) measure(ctx context.Context, c *choice, layouts []ieg.Layout, flash []bool) error {
	m := &measuring{ctx: ctx, probe: l.probe, score: l.score}
	defer func() { m.keep(nil) }()
	started := time.Now()
	var ways []way
	for _, y := range layouts {
		ways = append(ways, way{y, flash[0]})
	}
	best := m.compare(nil, ways...)
	if len(flash) > 1 && (best == nil || time.Since(started) < probeBudget) {
		y := layouts[0]
		if best != nil {
			y = best.layout
		}
		m.keep(best)
		best = m.compare(best, way{y, flash[1]})
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ieg.ErrCancelled, ctx.Err())
	}
	if best == nil {
		return m.failed
	}
	for _, r := range m.runs {
		p := r.outcome()
		p.KVType = l.info.KVType
		p.Chosen = r == best
		c.Probe = append(c.Probe, p)
	}
	c.PassSeconds, c.FillGap = best.fixed()
	if best.layout != ieg.Streams {
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

// way is what is tried.
type way struct {
	layout ieg.Layout
	flash  bool
}

// measuring is the measurement of several ways.
type measuring struct {
	ctx    context.Context
	probe  func(way) (*probeRun, error)
	score  func(ieg.LayoutProbe) float64
	runs   []*probeRun // measured, in the order they were tried
	open   []*probeRun // whose contexts are open
	failed error       // the last: the model or the device may lack a way
}

// compare measures ways in turn with the best so far, which is open, and
// returns the best of all; nil: none works. Where the contexts don't fit
// beside each other they are measured one after the other.
func (m *measuring) compare(best *probeRun, ways ...way) *probeRun {
	var alone []way
	for _, w := range ways {
		if !m.begin(w) && len(m.open) > 0 {
			alone = append(alone, w)
		}
	}
	best = m.better(best, takeTurns(m.ctx, m.open))
	for _, w := range alone {
		m.keep(nil)
		if m.begin(w) {
			best = m.better(best, takeTurns(m.ctx, m.open))
		}
	}
	return best
}

// begin opens a way's context.
func (m *measuring) begin(w way) bool {
	r, err := m.probe(w)
	if err != nil {
		m.failed = err
		return false
	}
	m.open = append(m.open, r)
	return true
}

// better takes in what was measured.
func (m *measuring) better(best *probeRun, measured []*probeRun) *probeRun {
	for _, r := range measured {
		if r.code != decodeOK {
			m.failed = contextError(r.c.shape, r.c.lib.log.Take())
			continue
		}
		if !slices.Contains(m.runs, r) {
			m.runs = append(m.runs, r)
		}
		if best == nil || m.score(r.outcome()) < m.score(best.outcome()) {
			best = r
		}
	}
	return best
}

// keep closes all contexts but one.
func (m *measuring) keep(one *probeRun) {
	for _, r := range m.open {
		if r != one {
			r.c.close()
		}
	}
	m.open = slices.DeleteFunc(m.open, func(r *probeRun) bool { return r != one })
}
