package tier

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// A Day agrees with a list of all that was written, as long as the clock goes
// forward: nothing of the last 24 hours is missing, nothing older than 25 is
// left.
func TestDayAgreesWithAList(t *testing.T) {
	type write struct {
		at    time.Time
		bytes int64
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		var d Day
		var all []write
		now := time.Unix(r.Int64N(1<<32), 0)
		for range 500 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(time.Hour)))
			if r.IntN(50) == 0 {
				now = now.Add(time.Duration(r.IntN(60)) * time.Hour)
			}
			if r.IntN(3) > 0 {
				w := write{now, r.Int64N(1000)}
				d.Add(w.bytes, now)
				all = append(all, w)
			}
			var least, most int64
			for _, w := range all {
				if age := now.Sub(w.at); age < 24*time.Hour {
					least += w.bytes
					most += w.bytes
				} else if age < 25*time.Hour {
					most += w.bytes
				}
			}
			if got := d.Sum(now); got < least || got > most {
				t.Fatalf("seed %d: %d, of 24 hours %d, of 25 %d", seed, got, least, most)
			}
		}
	}
}

// A clock that is set back forgets nothing, and a day later it is over.
func TestDayWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Hour, 7 * time.Hour, 500_000 * time.Hour} {
		var d Day
		now := time.Unix(2e9, 0)
		d.Add(3, now.Add(-5*time.Hour))
		d.Add(5, now)
		now = now.Add(-back)
		if got := d.Sum(now); got != 8 {
			t.Errorf("%v back: %d", back, got)
		}
		d.Add(2, now)
		if got := d.Sum(now.Add(21 * time.Hour)); got != 7 {
			t.Errorf("%v back and 21 hours: %d", back, got)
		}
		if got := d.Sum(now.Add(26 * time.Hour)); got != 0 {
			t.Errorf("%v back and a day: %d", back, got)
		}
	}
}

// What the decoder takes, the encoder gives back.
func FuzzDay(f *testing.F) {
	var d Day
	d.Add(5, time.Unix(2e9, 0))
	good, _ := d.AppendBinary(nil)
	f.Add(good)
	f.Add(good[1:])
	f.Add(bytes.Repeat([]byte{0xff}, len(good)))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := d
		err := got.UnmarshalBinary(b)
		if err != nil && (!errors.Is(err, ErrDay) || got != d) {
			t.Fatalf("%v, %+v", err, got)
		}
		again, _ := got.AppendBinary(nil)
		if err == nil && !bytes.Equal(again, b) {
			t.Fatalf("%+v", got)
		}
		if sum := got.Sum(time.Unix(2e9, 0)); sum < 0 {
			t.Fatalf("%d bytes", sum)
		}
	})
}
