package tier

import (
	"encoding/binary"
	"errors"
	"time"
)

// dayHours are the hours that touch any 24 hours.
const dayHours = 25

// Day is what was written of late, by hours of Unix time. The zero value says
// nothing was.
type Day struct {
	hour  int64           // the newest
	bytes [dayHours]int64 // of hour h at h modulo dayHours
}

// Add counts bytes that were written now.
func (d *Day) Add(bytes int64, now time.Time) {
	d.turn(now)
	d.bytes[d.hour%dayHours] += bytes
}

// Sum is what was written within the 24 hours before now, in bytes, and within
// the rest of the hour that they begin in: what is bounded by it is bounded in
// any 24 hours.
func (d Day) Sum(now time.Time) (sum int64) {
	d.turn(now)
	for _, n := range d.bytes {
		sum += n
	}
	return sum
}

// turn makes now's hour the newest. Of a clock that was set back the hours
// beyond it count as the last ones: they are over a day later.
func (d *Day) turn(now time.Time) {
	hour := max(now.Unix()/3600, 0)
	if hour < d.hour {
		was := *d
		for i := range int64(dayHours) {
			d.bytes[(hour+dayHours-i)%dayHours] = was.bytes[(was.hour+dayHours-i)%dayHours]
		}
		d.hour = hour
	}
	if hour-d.hour > dayHours {
		d.hour = hour - dayHours
	}
	for d.hour < hour {
		d.hour++
		d.bytes[d.hour%dayHours] = 0
	}
}

// ErrDay: the bytes are not a Day.
var ErrDay = errors.New("not a record of what was written")

// AppendBinary appends d in its lasting form; it does not fail.
func (d Day) AppendBinary(b []byte) ([]byte, error) {
	b = binary.LittleEndian.AppendUint64(b, uint64(d.hour))
	for _, n := range d.bytes {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return b, nil
}

// UnmarshalBinary reads what AppendBinary wrote. It returns ErrDay, and leaves
// d as it is, if b is something else.
func (d *Day) UnmarshalBinary(b []byte) error {
	if len(b) != 8*(1+dayHours) {
		return ErrDay
	}
	var v [1 + dayHours]int64
	for i := range v {
		if v[i] = int64(binary.LittleEndian.Uint64(b[8*i:])); v[i] < 0 || v[i] > 1<<56 {
			return ErrDay
		}
	}
	d.hour = v[0]
	copy(d.bytes[:], v[1:])
	return nil
}
