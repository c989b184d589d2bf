package sim

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math/rand/v2"
	"testing"

	"ieg"
	"ieg/kernel"
)

func encode(s *kernel.Snapshot) ([]byte, error) {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(s)
	return b.Bytes(), err
}

func decode(b []byte) (*kernel.Machine, error) {
	var s kernel.Snapshot
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&s); err != nil {
		return nil, err
	}
	return kernel.Restore(&s)
}

// shadow is a machine that was restored from a snapshot of another and takes
// in the same facts from then on.
type shadow struct {
	rng *rand.Rand
	m   *kernel.Machine
	err error
	n   int // snapshots taken
}

func (s *shadow) before(now ieg.Time, ev kernel.Event, m *kernel.Machine) {
	if s.err != nil {
		return
	}
	if s.rng.IntN(40) == 0 {
		s.err = s.restore(m)
	}
	if s.m != nil && s.err == nil {
		s.m.Apply(now, ev)
	}
}

// restore begins anew from m as it is, through bytes; a snapshot of the result
// is the same bytes.
func (s *shadow) restore(m *kernel.Machine) error {
	b, err := encode(m.Snapshot())
	if err != nil {
		return err
	}
	if s.m, err = decode(b); err != nil {
		return err
	}
	again, err := encode(s.m.Snapshot())
	if err != nil {
		return err
	}
	if !bytes.Equal(b, again) {
		return fmt.Errorf("a snapshot of the restored machine differs: %d and %d bytes", len(b), len(again))
	}
	s.n++
	return nil
}

func (s *shadow) observe(now ieg.Time, ev kernel.Event, r *kernel.Ready) {
	if s.m == nil || s.err != nil {
		return
	}
	if a, b := r.Digest(), s.m.Ready().Digest(); a != b {
		s.err = fmt.Errorf("at %d, after %T: the restored machine decides otherwise: %+v, %+v", now, ev, *r, *s.m.Ready())
	}
}

func TestSnapshots(t *testing.T) {
	taken := 0
	seeds(t, func(seed uint64) error {
		cfg := scene(seed)
		cfg.Verify = false // TestSeeds does
		rng := rand.New(rand.NewPCG(seed, 3))
		if seed%2 == 0 {
			plague(&cfg, rng)
		}
		s := &shadow{rng: rng}
		cfg.Before, cfg.Observe = s.before, s.observe
		if _, err := run(cfg); err != nil {
			return err
		}
		taken += s.n
		return s.err
	})
	if taken == 0 {
		t.Error("no snapshot was taken")
	}
}
