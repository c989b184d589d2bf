package pager

import (
	"cmp"
	"time"

	"ieg"
	"ieg/memory/tier"
)

// Status is how a Pager is doing. Counts are since New.
type Status struct {
	Up bool
	// Down tells that it can't be used and is tried again. When neither up nor
	// down it is on its way.
	Down bool
	// Why it is not up, or not all is stored: it is full, or the day's write
	// budget is short or spent.
	Why string

	Blocks int
	Tokens int64
	Bytes  int64 // of all blocks
	Size   int64 // the budget of Bytes
	Disk   int64 // bytes taken on the disk
	Free   int64 // bytes left on it for anybody

	WrittenToday int64 // bytes within 24 hours, overhead included

	// HitTokens are those of prompts that Find found, MissTokens the others.
	HitTokens, MissTokens int64
	// Corrupt blocks were wrong in the store, or lost with its files; Broken
	// ones were wrong in the arena.
	Corrupt, Broken int64
	// Evicted blocks had to go for want of room; Refused ones were not stored
	// because a budget is spent or the tier is full.
	Evicted, Refused int64

	Stores, Fetches MoveCount
	// ReadRate and WriteRate are measured lately, in bytes a second; 0: not
	// yet.
	ReadRate, WriteRate float64
	// StoresQueued and FetchesQueued wait; InFlight counts these and those
	// begun.
	StoresQueued, FetchesQueued, InFlight int
}

// MoveCount counts moves of a kind: those that did, that failed, and of these
// those whose block is gone.
type MoveCount struct {
	Done, Failed, Gone int64
	Bytes              int64
}

// counters are what Status counts; Pager.mu guards it.
type counters struct {
	hit, missed      int64
	corrupt, broken  int64
	evicted, refused int64
	moves            [2]MoveCount // by MoveKind
	read, write      speed
}

func (c *counters) move(kind ieg.MoveKind, o outcome) {
	m := &c.moves[kind]
	if o.err == "" {
		m.Done++
	} else {
		m.Failed++
	}
	if o.gone {
		m.Gone++
	}
	if o.took > 0 {
		m.Bytes += o.bytes
	}
}

// speed is a measured speed in bytes a second, smoothed; 0: not measured.
type speed float64

func (s *speed) measure(bytes int64, took time.Duration) {
	if bytes <= 0 || took <= 0 {
		return
	}
	now := float64(bytes) / took.Seconds()
	if *s == 0 {
		*s = speed(now)
		return
	}
	*s += speed(smooth * (now - float64(*s)))
}

// seconds is the time for so many bytes; 0 when it is not known.
func (s speed) seconds(bytes int64) float64 {
	if s == 0 {
		return 0
	}
	return float64(bytes) / float64(s)
}

// Status tells how the Pager is doing.
func (p *Pager) Status() Status {
	var st Status
	var room tier.Room
	if h := p.acquire(); h != nil {
		u := h.store.Usage()
		st.Disk, st.Free = u.Disk, u.Free
		room = h.store.Room()
		p.release(h)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.cfg.Now()
	c := &p.count
	st.Up, st.Down, st.Why = p.health.up, p.health.down, p.health.why
	if st.Up {
		st.Why = cmp.Or(p.health.full.note(now, room), p.budget.note())
	}
	st.Blocks, st.Tokens, st.Bytes = p.known.index.Len(), p.known.index.Tokens(), p.known.index.Bytes()
	if p.health.store == nil {
		st.Blocks, st.Tokens, st.Bytes = 0, 0, 0
	}
	st.Size = p.cfg.Size
	st.WrittenToday = p.budget.today()
	st.HitTokens, st.MissTokens = c.hit, c.missed
	st.Corrupt, st.Broken, st.Evicted, st.Refused = c.corrupt, c.broken, c.evicted, c.refused
	st.Stores, st.Fetches = c.moves[ieg.MoveStore], c.moves[ieg.MoveFetch]
	st.ReadRate, st.WriteRate = float64(c.read), float64(c.write)
	st.StoresQueued, st.FetchesQueued, st.InFlight = len(p.stores.jobs), len(p.fetches.jobs), p.flight
	return st
}
