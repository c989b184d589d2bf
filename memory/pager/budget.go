package pager

import (
	"time"

	"ieg"
	"ieg/memory/tier"
)

// budget says when and whether to write; Pager.mu guards it.
type budget struct {
	rate  int64 // bytes a second, 0: no bound
	daily int64 // bytes within 24 hours, 0: no bound

	free   ieg.Time // when all that was written is paid for by rate
	day    tier.Day // what the store says it wrote of late
	last   string   // why it refused a block since the last batch; "": it did not
	hasten bool
	wake   chan struct{} // ends the writer's pause
}

// pause is the time until a batch may be written.
func (b *budget) pause(now ieg.Time) time.Duration {
	if b.rate == 0 || b.hasten {
		return 0
	}
	burst := time.Duration(float64(max(b.rate, batchBytes)) / float64(b.rate) * float64(time.Second))
	return max(b.free.Sub(now)-burst, 0)
}

// hurry ends all pauses.
func (b *budget) hurry() {
	b.hasten = true
	b.rouse()
}

// rouse ends the pause there is.
func (b *budget) rouse() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// spend pays for what was written by the rate.
func (b *budget) spend(bytes int64, now ieg.Time) {
	if b.rate > 0 {
		took := time.Duration(float64(bytes) / float64(b.rate) * float64(time.Second))
		b.free = max(b.free, now).Add(took)
	}
}

// today is what was written within 24 hours.
func (b *budget) today() int64 { return b.day.Sum(time.Now()) }

// note says what the day's budget keeps from being stored.
func (b *budget) note() string {
	if float64(b.today()) < shortage*float64(b.daily) {
		return "" // another day
	}
	return b.last
}

// refuses says why a block of so many tokens, whose predecessor has so much
// heat, is not worth its part of the day.
func (b *budget) refuses(bytes int64, n int32, heat float64) string {
	if b.daily == 0 {
		return ""
	}
	today := b.today()
	used := float64(today) / float64(b.daily)
	switch {
	case today+bytes > b.daily:
		return "the day's write budget is spent"
	case used >= shortage && n < ieg.BlockTokens:
		return "the day's write budget is short: ends of texts are not stored"
	case used >= dearth && heat < littleHeat:
		return "the day's write budget is short: blocks of little use are not stored"
	}
	return ""
}
