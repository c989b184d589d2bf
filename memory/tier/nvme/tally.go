package nvme

import (
	"sync"
	"time"

	"ieg/memory/tier"
)

// tally keeps what was written by hours. It is part of every transaction, so
// that a restart begins no new day.
type tally struct {
	mu      sync.Mutex
	day     tier.Day
	counted int64 // of Usage.Written
}

// upTo counts what was written since it was called last.
func (t *tally) upTo(written int64, now time.Time) tier.Day {
	t.mu.Lock()
	defer t.mu.Unlock()
	if written > t.counted {
		t.day.Add(written-t.counted, now)
		t.counted = written
	}
	return t.day
}

// update makes the changes of f durable, all or none, and what was written
// before it.
func (s *Store) update(f func(*change) error) error {
	day := s.tally.upTo(s.wrote.Load()+s.index.written(), s.now())
	record, err := day.AppendBinary(nil)
	if err != nil {
		return err
	}
	return s.index.update(func(c *change) error {
		if err := f(c); err != nil {
			return err
		}
		return c.set([]byte{keyDay}, record)
	})
}
