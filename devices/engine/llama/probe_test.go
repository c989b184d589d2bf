package llama

import (
	"context"
	"errors"
	"testing"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// Ways are measured beside each other or, where a context more does not fit,
// one after the other; a way that can't be had does not hinder the others.
func TestWaysAreMeasuredWhereTheyFit(t *testing.T) {
	spec := tinySpec(t)
	r := start(t, spec)
	l := &loading{
		spec: &spec, abort: r.abort, lib: r.lib, model: r.model, kvType: yz.GGMLTypeF16, threads: 2,
		tokenBytes: 4096, size: sizing{slots: 2, slotTokens: 512},
	}
	streams, unified, plain := way{ieg.Streams, true}, way{ieg.Unified, true}, way{ieg.Streams, false}
	errLack := errors.New("the device lacks it")
	for what, c := range map[string]struct {
		fit  int // contexts at once
		lack map[way]bool
		want int // measured ways
	}{
		"all fit":      {fit: 3, want: 3},
		"one fits":     {fit: 1, want: 3},
		"one lacks":    {fit: 2, lack: map[way]bool{streams: true}, want: 2},
		"all lack":     {fit: 2, lack: map[way]bool{streams: true, unified: true, plain: true}},
		"nothing fits": {},
	} {
		t.Run(what, func(t *testing.T) {
			most := 0
			m := &measuring{ctx: context.Background(), score: l.score}
			m.probe = func(w way) (*probeRun, error) {
				if len(m.open) >= c.fit || c.lack[w] {
					return nil, errLack
				}
				most = max(most, len(m.open)+1)
				return l.probe(w)
			}
			best := m.compare(nil, streams, unified)
			m.keep(best)
			best = m.compare(best, plain)
			if len(m.runs) != c.want || most > c.fit || (best == nil) != (c.want == 0) {
				t.Fatalf("%d ways measured, want %d, at most %d at once, best %v", len(m.runs), c.want, most, best)
			}
			if failed := c.want < 3; failed && !errors.Is(m.failed, errLack) {
				t.Errorf("failed: %v", m.failed)
			}
			for _, r := range m.runs {
				p := r.outcome()
				if r.code != decodeOK || !(p.PrefillTPS > 0 && p.DecodeTPS > 1e-3) || r.one == never || r.rows != 2 || r.at != 256 {
					t.Errorf("%+v: %+v", r.way, p)
				}
				if m.score(p) < m.score(best.outcome()) {
					t.Errorf("%+v is better than the best", r.way)
				}
			}
			m.keep(nil)
			if len(m.open) != 0 {
				t.Errorf("%d contexts stay open", len(m.open))
			}
		})
	}
}
