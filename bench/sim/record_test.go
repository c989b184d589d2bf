package sim

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/record"
)

// recorded runs a configuration under a recorder and returns its segments.
func recorded(cfg Config, age time.Duration) (plain, redacted [][]byte, err error) {
	rec, err := record.New(record.Config{SegmentBytes: 1 << 40, SegmentAge: age, Segments: 1 << 20, Queue: 1 << 16, Build: "test"})
	if err != nil {
		return nil, nil, err
	}
	cfg.Before = func(now ieg.Time, ev kernel.Event, m *kernel.Machine) {
		rec.Before(now, ev, m)
		runtime.Gosched()
	}
	cfg.Observe = rec.Observe
	if _, err := run(cfg); err != nil {
		return nil, nil, err
	}
	if err := rec.Close(); err != nil || rec.Lost() > 0 {
		return nil, nil, fmt.Errorf("%d events lost, %w", rec.Lost(), err)
	}
	segs, err := rec.Segments()
	if err != nil {
		return nil, nil, err
	}
	for _, s := range segs {
		for _, redact := range []bool{false, true} {
			in, err := rec.Open(s.Name, redact)
			if err != nil {
				return nil, nil, err
			}
			b, err := io.ReadAll(in)
			if err != nil {
				return nil, nil, err
			}
			if redact {
				redacted = append(redacted, b)
			} else {
				plain = append(plain, b)
			}
		}
	}
	return plain, redacted, nil
}

// A recording of a run with tiers gives the same decisions again, from the
// start and from a snapshot in the middle, with its content and without.
func TestTiersReplay(t *testing.T) {
	judged, cut := 0, 0
	seeds(t, func(seed uint64) error {
		if seed%4 != 0 && *seedFlag < 0 {
			return nil
		}
		cfg := deep(seed)
		cfg.Verify, cfg.Check = false, false // TestTiers does
		if seed%3 == 1 {
			plague(&cfg, rand.New(rand.NewPCG(seed, 2)))
		}
		plain, redacted, err := recorded(cfg, 700*time.Millisecond)
		if err != nil {
			return err
		}
		for i := range plain {
			a, err := record.Replay(bytes.NewReader(plain[i]))
			if err != nil {
				return fmt.Errorf("segment %d: %w", i, err)
			}
			b, err := record.Replay(bytes.NewReader(redacted[i]))
			if err != nil || b.Judged != a.Judged || !b.Header.Redacted {
				return fmt.Errorf("segment %d, redacted: %w: %+v, %+v", i, err, a, b)
			}
			judged += a.Judged
		}
		cut += len(plain) - 1
		return nil
	})
	if *seedFlag < 0 && (judged == 0 || cut == 0) {
		t.Errorf("%d events were judged in recordings with %d cuts", judged, cut)
	}
	t.Logf("%d events judged, %d cuts", judged, cut)
}
