package pager

import (
	"time"

	"ieg"
)

// budget says when and whether to write; Pager.mu guards it.
type budget struct {
	rate  int64 // bytes a second, 0: no bound
	daily int64 // bytes within 24 hours, 0: no bound

	free   ieg.Time  // when all that was written is paid for by rate
	hours  [24]int64 // written in the last hours
	hour   int64     // the newest of them
	today  int64     // their sum
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

// spend counts what was written.
func (b *budget) spend(bytes int64, now ieg.Time) {
	if b.rate > 0 {
		took := time.Duration(float64(bytes) / float64(b.rate) * float64(time.Second))
		b.free = max(b.free, now).Add(took)
	}
	b.turn(now)
	b.hours[b.hour%24] += bytes
	b.today += bytes
}

// turn forgets the hours that are over.
func (b *budget) turn(now ieg.Time) {
	hour := int64(now) / int64(time.Hour)
	for b.hour < hour {
		if hour-b.hour > 24 {
			b.hour = hour - 24
			b.hours, b.today = [24]int64{}, 0
		}
		b.hour++
		b.today -= b.hours[b.hour%24]
		b.hours[b.hour%24] = 0
	}
}

// refuses says why a block of so many tokens, whose predecessor has so much
// heat, is not worth its part of the day.
func (b *budget) refuses(bytes int64, n int32, heat float64, now ieg.Time) string {
	if b.daily == 0 {
		return ""
	}
	b.turn(now)
	used := float64(b.today) / float64(b.daily)
	switch {
	case b.today+bytes > b.daily:
		return "the day's write budget is spent"
	case used >= shortage && n < ieg.BlockTokens:
		return "the day's write budget is short: ends of texts are not stored"
	case used >= dearth && heat < littleHeat:
		return "the day's write budget is short: blocks of little use are not stored"
	}
	return ""
}
