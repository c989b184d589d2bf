package text

import "bytes"

// Finder finds the first of several strings in bytes that arrive in pieces.
type Finder struct {
	needles [][]byte
	longest int
	tail    []byte // the last longest-1 bytes
	buf     []byte
}

// NewFinder makes a finder; empty strings are ignored.
func NewFinder(needles []string) *Finder {
	f := &Finder{}
	for _, n := range needles {
		if n != "" {
			f.needles = append(f.needles, []byte(n))
			f.longest = max(f.longest, len(n))
		}
	}
	return f
}

// Find looks whether a string becomes complete in piece, without taking the
// piece in. It returns the string and the rest of the piece after it, or nil.
func (f *Finder) Find(piece []byte) (needle, rest []byte) {
	if len(piece) == 0 || f.longest == 0 {
		return nil, nil
	}
	f.buf = append(append(f.buf[:0], f.tail...), piece...)
	end := len(f.buf) + 1
	for _, n := range f.needles {
		// A match that ended in the tail would have been found before.
		from := max(0, len(f.tail)-len(n)+1)
		i := bytes.Index(f.buf[from:], n)
		if i < 0 {
			continue
		}
		e := from + i + len(n)
		if e < end || e == end && len(n) > len(needle) {
			needle, end = n, e
		}
	}
	if needle == nil {
		return nil, nil
	}
	return needle, f.buf[end:]
}

// Push takes a piece in, in which Find found nothing.
func (f *Finder) Push(piece []byte) {
	if f.longest == 0 {
		return
	}
	f.tail = append(f.tail, piece...)
	if n := len(f.tail) - f.longest + 1; n > 0 {
		f.tail = append(f.tail[:0], f.tail[n:]...)
	}
}
