package pager

import (
	"fmt"
	"time"

	"ieg"
	"ieg/memory/tier"
)

// errReserve: others have taken what the store is to leave free.
var errReserve = fmt.Errorf("%w: the disk has no more free than is kept (kv.reserve)", tier.ErrFull)

// errRest: a part of what was to be stored had room.
var errRest = fmt.Errorf("%w: the disk has room for a part of what waits; the rest is tried again", tier.ErrFull)

// fullness is what is known of a store that had no room; Pager.mu guards it.
type fullness struct {
	until ieg.Time // nothing is stored before
	pause time.Duration
	why   string
	owed  bool  // blocks were refused, and nobody was told to store them again
	need  int64 // the room that the first of them waits for
	short bool  // the disk had less: once it has more, the pause is over
}

// says why nothing is stored now.
func (f *fullness) says(now ieg.Time) string {
	if now >= f.until {
		return ""
	}
	return f.why
}

// fill begins a pause in which nothing is stored.
func (f *fullness) fill(now ieg.Time, err error, need int64, r tier.Room) {
	f.pause = min(max(2*f.pause, retryMin), retryMax)
	f.until, f.why = now.Add(f.pause), err.Error()
	f.owed, f.need, f.short = true, need, r.Left < need
}

// note says why nothing can be stored, also before somebody tried.
func (f *fullness) note(now ieg.Time, r tier.Room) string {
	why := f.says(now)
	if why == "" && r.Left < max(f.need, 1) {
		if why = f.why; why == "" {
			why = errReserve.Error()
		}
	}
	return why
}

// probe has what was refused stored again once there is room for it. Where the
// disk seemed to have room and refused all the same, the pause is kept.
func (p *Pager) probe() {
	p.roomAgain(func(f *fullness) bool {
		if !f.short && p.cfg.Now() < f.until {
			return false
		}
		p.notify(notice{state: true, up: true})
		return true
	})
}

// Retry ends the pause in which a full store is not written to, if there is
// room now: somebody is about to ask for the stores that were refused.
func (p *Pager) Retry() { p.roomAgain(func(*fullness) bool { return true }) }

// roomAgain ends the pause if the store has room, blocks were refused for want
// of it, and the caller agrees.
func (p *Pager) roomAgain(agreed func(*fullness) bool) {
	p.mu.Lock()
	owed := p.health.up && p.health.full.owed
	p.mu.Unlock()
	if !owed {
		return
	}
	h := p.acquire()
	if h == nil {
		return
	}
	defer p.release(h)
	r := h.store.Room()
	p.mu.Lock()
	defer p.mu.Unlock()
	if f := &p.health.full; p.health.up && f.owed && r.Left >= f.need && agreed(f) {
		f.until, f.why, f.need, f.owed = 0, "", 0, false
	}
}

// full begins a pause after the store had no room for the batch.
func (b *batch) full(err error) tier.Room {
	r := b.h.store.Room()
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	b.p.health.full.fill(b.p.cfg.Now(), err, b.items[0].Block.Bytes+padBytes, r)
	return r
}

// trim ends the moves at the end of a batch that is more than the disk has room
// for, so that the others are not refused with them.
func (b *batch) trim(r tier.Room) {
	for len(b.items) > 1 && b.wants() > r.Left {
		last := len(b.items) - 1
		need := b.items[last].Block.Bytes
		b.bytes -= need
		b.p.finish(b.of[last], outcome{err: errRest.Error()})
		b.items, b.of = b.items[:last], b.of[:last]
		b.p.mu.Lock()
		f := &b.p.health.full
		f.owed, f.need, f.short = true, need+padBytes, true
		b.p.mu.Unlock()
	}
}

// giveWay deletes what is worth least after the disk had no room for a batch,
// if that makes some: as much at once as the store must have deleted before it
// gives anything back. Where others have filled the disk it would make none, and
// what is there stays.
func (b *batch) giveWay(r tier.Room) {
	p := b.p
	p.mu.Lock()
	live := p.known.index.Bytes()
	p.mu.Unlock()
	short := b.wants() - r.Left
	n := short + r.Lag - r.Dead
	if short <= 0 || n <= 0 || r.Left < -ownRoom || n > live {
		return
	}
	p.evict(b.h, n)
	p.mu.Lock()
	defer p.mu.Unlock()
	// Another try makes the store reclaim that in a hurry.
	p.health.full.need, p.health.full.short = -ownRoom, false
}

// wants is what the batch takes of the disk.
func (b *batch) wants() int64 { return b.bytes + int64(len(b.items))*padBytes }
