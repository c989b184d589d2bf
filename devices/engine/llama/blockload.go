package llama

import (
	"fmt"
	"sync"
	"sync/atomic"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// joiner is the working memory of one goroutine that joins pieces.
type joiner struct {
	raw, kept []byte
	pieces    []piece
}

// load makes a slot hold [0, Start+N), of which N come from the arena.
func (b *blocks) load(op *ieg.KVOp, done *ieg.CopyDone) error {
	first, err := b.aim(op)
	if err != nil {
		return err
	}
	bad, sum := b.joinAll(op, first)
	if bad >= 0 {
		done.Bad = int32(bad) + 1
		return b.empty(op.To, fmt.Errorf("extent %d of the load into slot %d (tokens from %d) is not what its digest says", bad, op.To, op.Extents[bad].Start))
	}
	switch {
	case b.inPlace:
		err = b.mark(op.To, op.Start+op.N)
	case b.s.c.shape.layout == ieg.Unified:
		err = b.adopt(op)
	default:
		if err = b.s.load(op.To, b.state); err != nil {
			err = b.empty(op.To, err)
		}
	}
	if err != nil {
		return err
	}
	if held := b.s.held(op.To); held != op.Start+op.N {
		return b.empty(op.To, fmt.Errorf("slot %d holds %d tokens after a load up to %d", op.To, held, op.Start+op.N))
	}
	b.s.tokens[op.To] = op.Start + op.N
	if op.Open {
		done.Digest = sum
	}
	return nil
}

// aim makes dst of a load: the stream's own rows, or those of a state. It tells
// the token whose rows come first there.
func (b *blocks) aim(op *ieg.KVOp) (first int, err error) {
	b.dst = b.dst[:0]
	if b.inPlace {
		for i := range b.shape.rows {
			b.dst = append(b.dst, b.shape.rows[i].tensor.Memory(int(b.s.seq[op.To])))
		}
		return 0, nil
	}
	first, n := int(op.Start), int(op.N)
	if b.s.c.shape.layout == ieg.Unified {
		err = b.s.trim(op.To, op.Start)
	} else {
		first, n = 0, first+n
	}
	b.state = sized(b.state, b.form.size(n))
	b.to = b.form.write(b.state, b.head, n, first, b.to)
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		b.dst = append(b.dst, b.state[b.to[r.export]:][:n*r.bytes])
	}
	if first < int(op.Start) {
		err = b.keep(op.To, int(op.Start))
	}
	return first, err
}

// empty empties a slot after an error, which it returns.
func (b *blocks) empty(slot ieg.Slot, err error) error {
	if e := b.s.trim(slot, 0); e != nil {
		return fmt.Errorf("%w; %w", err, e)
	}
	return err
}

// adopt brings the state into a slot of the unified layout by way of the
// scratch sequence: a state always replaces all of its sequence.
func (b *blocks) adopt(op *ieg.KVOp) error {
	c := b.s.c
	got := yz.StateSeqSetData(c.ctx, b.state, yz.SeqId(b.scratch))
	if got == uint64(len(b.state)) {
		_ = yz.MemorySeqCp(c.mem, yz.SeqId(b.scratch), yz.SeqId(b.s.seq[op.To]), yz.Pos(op.Start), yz.Pos(op.Start+op.N))
	}
	c.trim(b.scratch, 0)
	if got != uint64(len(b.state)) {
		return b.empty(op.To, fmt.Errorf("%w: no room for %d tokens in slot %d: %s", ieg.ErrOutOfMemory, op.N, op.To, c.lib.log.Take()))
	}
	return nil
}

// keep copies a slot's first n tokens into the state that will replace it.
func (b *blocks) keep(slot ieg.Slot, n int) error {
	src, err := b.source(slot, 0, n)
	if err != nil {
		return err
	}
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		if err := b.read(&src, r, 0, 0, b.dst[i][:n*r.bytes]); err != nil {
			return err
		}
	}
	return nil
}

// joinAll proves all extents and joins their rows in dst, whose first token is
// first. It returns the first bad extent, or -1, and the digest of the last one
// as far as it was read.
func (b *blocks) joinAll(op *ieg.KVOp, first int) (worst int, sum uint64) {
	bytes := int64(0)
	for i := range op.Extents {
		bytes += op.Extents[i].Bytes
	}
	var next atomic.Int32
	var bad [joiners]int
	work := func(k int) {
		bad[k] = -1
		for i := int(next.Add(1)) - 1; i < len(op.Extents); i = int(next.Add(1)) - 1 {
			got := b.joinExtent(&b.join[k], op, i, first)
			if i == len(op.Extents)-1 {
				if sum = got; op.Open {
					continue
				}
			}
			if got != op.Extents[i].Digest && bad[k] < 0 {
				bad[k] = i
			}
		}
	}
	n := 1
	if bytes > b.alone && len(op.Extents) > 1 {
		n = min(joiners, b.cores)
	}
	var all sync.WaitGroup
	for k := 1; k < n; k++ {
		all.Go(func() { work(k) })
	}
	work(0)
	all.Wait()
	worst = -1
	for _, i := range bad[:n] {
		if i >= 0 && (worst < 0 || i < worst) {
			worst = i
		}
	}
	return worst, sum
}

// joinExtent sums up an extent and joins its rows, as far as they are wanted,
// piece by piece, so that memory is read once.
func (b *blocks) joinExtent(j *joiner, op *ieg.KVOp, i, first int) (sum uint64) {
	e := &op.Extents[i]
	from, wanted := 0, int(min(e.N, op.Start+op.N-e.Start))
	if i == 0 {
		from, sum = int(op.Start-e.Start), b.before(op)
	}
	j.pieces = b.shape.pieces(b.arena, e, j.pieces[:0])
	for _, p := range j.pieces {
		n := min(p.n, wanted-p.first)
		switch {
		case p.first < from:
		case n <= 0 && op.Open:
			return sum
		case n <= 0:
			sum = b.place(e).Digest(sum, int64(p.at), int64(p.size))
		case e.Codec == ieg.CodecRaw:
			sum = b.joinPiece(e, p, n, first, sum)
		default:
			sum = b.unpackPiece(j, e, p, n, first, sum)
		}
	}
	return sum
}

// joinPiece copies the rows of a piece's first n tokens.
func (b *blocks) joinPiece(e *ieg.Extent, p piece, n, first int, sum uint64) uint64 {
	at := p.at
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		dst := b.dst[i][(int(e.Start)+p.first-first)*r.bytes:][:n*r.bytes]
		for left := p.n * r.bytes; left > 0; {
			s := b.place(e).Span(int64(at), int64(left))
			sum = b.arena.Digest(sum, s)
			dst = dst[copy(dst, s):]
			left, at = left-len(s), at+len(s)
		}
	}
	return sum
}

// unpackPiece decodes a piece and copies the rows of its first n tokens.
func (b *blocks) unpackPiece(j *joiner, e *ieg.Extent, p piece, n, first int, sum uint64) uint64 {
	kept := b.place(e).Span(int64(p.at), int64(p.size))
	if len(kept) < p.size {
		j.kept = sized(j.kept, p.size)
		b.place(e).Read(int64(p.at), j.kept)
		kept = j.kept
	}
	sum = b.arena.Digest(sum, kept)
	j.raw = sized(j.raw, p.n*b.shape.token)
	b.arena.Decode(e.Codec, b.kvType, j.raw, kept)
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		copy(b.dst[i][(int(e.Start)+p.first-first)*r.bytes:], j.raw[p.n*r.before:][:n*r.bytes])
	}
	return sum
}
