package llama

import (
	"bytes"
	"slices"

	yz "github.com/hybridgroup/yzma/pkg/llama"
	"golang.org/x/sys/unix"

	"ieg"
)

// The rows of streams that lie in this process's memory are written where they
// lie. The library learns of them by a state whose rows it is kept from
// copying: only so does it take cells for a sequence without computing.

// mark makes the library hold tokens [0, n) in a slot with the rows that are in
// its cells already. n 0 empties it.
func (b *blocks) mark(slot ieg.Slot, n int32) error {
	if n == 0 {
		return b.s.trim(slot, 0)
	}
	b.state = sized(b.state, b.form.size(int(n)))
	b.to = b.form.write(b.state, b.head, int(n), 0, b.to)
	release := b.s.c.lib.x.HoldWrites(b.tensors)
	err := b.s.load(slot, b.state)
	release()
	if err != nil {
		return b.empty(slot, err)
	}
	b.s.tokens[slot] = n
	return nil
}

// reserve sets addresses aside for the largest state that mark will need. Its
// rows are never touched and take no memory; a buffer that grew would be
// cleared whole each time.
func (b *blocks) reserve(n int) {
	if m, err := unix.Mmap(-1, 0, b.form.size(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE); err == nil {
		b.state, b.reserved = m[:0], true
	}
}

// release gives back what was reserved.
func (b *blocks) release() {
	if b != nil && b.reserved {
		_ = unix.Munmap(b.state[:cap(b.state)])
		b.state, b.reserved = nil, false
	}
}

// copyRows makes the first n tokens of a slot the content of another.
func (b *blocks) copyRows(from, to ieg.Slot, n int32) error {
	_ = yz.Synchronize(b.s.c.ctx)
	for i := range b.tensors {
		t := &b.tensors[i]
		copy(t.Memory(int(b.s.seq[to])), t.Memory(int(b.s.seq[from]))[:int(n)*t.Bytes])
	}
	return b.mark(to, n)
}

// swapRows exchanges what two streams hold, as much as the slots do.
func (b *blocks) swapRows(x, y ieg.Slot) {
	n := int(max(b.s.tokens[x], b.s.tokens[y]))
	buf := make([]byte, swapBytes)
	_ = yz.Synchronize(b.s.c.ctx)
	for i := range b.tensors {
		t := &b.tensors[i]
		p, q := t.Memory(int(b.s.seq[x]))[:n*t.Bytes], t.Memory(int(b.s.seq[y]))[:n*t.Bytes]
		for len(p) > 0 {
			k := copy(buf, p)
			copy(p[:k], q)
			copy(q, buf[:k])
			p, q = p[k:], q[k:]
		}
	}
}

// provePlace tells whether rows can be written where they lie. A slot's rows
// are inverted there; a state with the right ones must not restore them while
// its writes are held, and must afterwards.
func (b *blocks) provePlace(slot ieg.Slot, n int) bool {
	want, err := b.whole(slot, n, nil)
	if err != nil {
		return false
	}
	invert := func() bool {
		for i := range b.tensors {
			m := b.tensors[i].Memory(int(b.s.seq[slot]))
			if m == nil {
				return false
			}
			for k := range m[:n*b.tensors[i].Bytes] {
				m[k] ^= 0xff
			}
		}
		return true
	}
	if !invert() {
		return false
	}
	inverted, err := b.whole(slot, n, nil)
	if err != nil || bytes.Equal(inverted, want) {
		return false
	}
	b.state = slices.Clone(want)
	if b.mark(slot, int32(n)) != nil || b.s.held(slot) != int32(n) {
		return false
	}
	got, err := b.whole(slot, n, nil)
	if err != nil || !bytes.Equal(got, inverted) || b.s.load(slot, want) != nil {
		return false
	}
	got, err = b.whole(slot, n, got)
	return err == nil && bytes.Equal(got, want)
}
