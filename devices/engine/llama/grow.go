package llama

import "encoding/binary"

// growState turns the exported KV of a short sequence into that of a longer
// one by repeating its rows, so that the layouts can be timed with a long
// context without computing one. The numbers in it mean nothing.
//
// The format is the library's own: per cache a count of streams, and for each
// that holds cells their number, per cell its position and sequences, then K
// and V layer by layer (V by columns without flash attention). What doesn't
// follow it to the last byte is refused; the caller then makes do with less.
func growState(blob []byte, want int) ([]byte, bool) {
	g := &grower{in: blob, want: want}
	g.copy(8) // magic, sequence
	for !g.bad && len(g.in) > 0 {
		g.cache()
	}
	return g.out, !g.bad
}

type grower struct {
	in, out []byte
	want    int
	bad     bool
}

func (g *grower) take(n int) []byte {
	if g.bad || n < 0 || n > len(g.in) {
		g.bad = true
		return nil
	}
	b := g.in[:n]
	g.in = g.in[n:]
	return b
}

func (g *grower) copy(n int) { g.out = append(g.out, g.take(n)...) }

// word copies a 32-bit number.
func (g *grower) word() int {
	b := g.take(4)
	if b == nil {
		return -1
	}
	g.out = append(g.out, b...)
	return int(int32(binary.LittleEndian.Uint32(b)))
}

func (g *grower) put(n int) { g.out = binary.LittleEndian.AppendUint32(g.out, uint32(n)) }

// repeat writes want rows that repeat have rows of size bytes.
func (g *grower) repeat(have, size int) {
	if size <= 0 || have > len(g.in)/size {
		g.bad = true
		return
	}
	rows := g.take(have * size)
	for n := g.want * size; n > 0 && !g.bad; n -= len(rows) {
		g.out = append(g.out, rows[:min(n, len(rows))]...)
	}
}

func (g *grower) cache() {
	streams := g.word()
	if streams < 1 || streams > maxSlots {
		g.bad = true
		return
	}
	for range streams {
		b := g.take(4)
		if b == nil {
			return
		}
		have := int(binary.LittleEndian.Uint32(b))
		if have == 0 {
			g.put(0)
			continue
		}
		g.put(g.want)
		g.stream(have)
	}
}

func (g *grower) stream(have int) {
	seq := 0
	for i := range have {
		b := g.take(12)
		if b == nil {
			return
		}
		word := func(k int) int { return int(int32(binary.LittleEndian.Uint32(b[4*k:]))) }
		if word(0) != i || word(1) != 1 {
			g.bad = true
			return
		}
		seq = word(2)
	}
	for i := range g.want {
		g.put(i)
		g.put(1)
		g.put(seq)
	}
	columns, layers := g.word(), g.word()
	if columns < 0 || columns > 1 || layers < 1 || layers > 4096 {
		g.bad = true
		return
	}
	for range layers {
		g.rows(have)
	}
	for range layers {
		if columns == 0 {
			g.rows(have)
			continue
		}
		g.word() // type
		size, n := g.word(), g.word()
		for range n {
			g.repeat(have, size)
		}
	}
}

// rows copies one layer kept row by row: type, bytes of a row, rows.
func (g *grower) rows(have int) {
	g.word()
	b := g.take(8)
	if b == nil {
		return
	}
	g.out = append(g.out, b...)
	size := binary.LittleEndian.Uint64(b)
	if size > 1<<24 {
		g.bad = true
		return
	}
	g.repeat(have, int(size))
}
