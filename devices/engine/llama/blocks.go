package llama

import (
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"
	"golang.org/x/sys/unix"

	"ieg"
	"ieg/cgo/llamax"
	"ieg/devices/engine"
)

// blocks copies KV between the slots and the arena.
//
// Out of a stream rows are read where they lie: cell i of a stream is its token
// i, since streams are filled from their beginning and cut at their end only.
// Where that is not to be had, a slot's whole export is cut, or, in the unified
// layout, that of a scratch sequence which gets the range of tokens. Into a
// stream of this process's memory rows are written where they belong; else a
// whole state is joined from the pieces, and imported.
type blocks struct {
	s      *slots
	info   *ieg.EngineInfo
	arena  engine.Arena
	shape  *blockShape
	form   *stateForm
	head   [stateHead]byte
	kvType string
	int8   bool
	// direct: rows are read where they lie; inPlace: they are written there.
	direct, inPlace bool
	tensors         []llamax.Rows
	// scratch is a spare sequence of the unified layout.
	scratch int32
	// reserved: state is address space set aside for its largest size.
	reserved bool
	// cores join the extents of a load of more than alone bytes.
	cores int
	alone int64

	sum uint64 // what the last copy told

	// Working memory: the places of rows in the export and in the state, the
	// state that is built, where a load's rows go, pieces, and what each joiner
	// needs.
	at, to []int
	state  []byte
	dst    [][]byte
	pieces []piece
	join   [joiners]joiner
}

// do makes a Save or Load and reports it in done, whose Op is set. An error
// leaves the slot as the report says: a bad extent leaves it empty.
func (b *blocks) do(op *ieg.KVOp, done *ieg.CopyDone) error {
	started, ran := time.Now(), threadTime()
	err := engine.CheckCopy(op, b.info, b.arena, b.held)
	if err == nil {
		_ = yz.Synchronize(b.s.c.ctx)
		if op.Kind == ieg.KVSave {
			err = b.save(op, done)
		} else {
			err = b.load(op, done)
		}
		b.sum = done.Digest
	}
	done.Took = time.Since(started)
	done.Ran = min(max(threadTime()-ran, 0), done.Took)
	return err
}

// threadTime is the processor time of this thread, on which steps stay.
func threadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

func (b *blocks) held(slot ieg.Slot) int32 { return b.s.tokens[slot] }

// source is where rows of a slot's tokens come from.
type source struct {
	stream int    // of direct reads
	blob   []byte // else: an export, whose first token is
	first  int
}

// source makes tokens [from, from+n) of a slot readable.
func (b *blocks) source(slot ieg.Slot, from, n int) (source, error) {
	seq := b.s.seq[slot]
	if b.direct {
		return source{stream: int(seq)}, nil
	}
	if b.s.c.shape.layout == ieg.Streams {
		if err := b.s.exportOnce(slot, b.s.tokens[slot]); err != nil {
			return source{}, err
		}
		var err error
		b.at, err = b.form.places(b.s.blob, int(b.s.blobTokens), 0, b.at)
		return source{blob: b.s.blob}, err
	}
	// Only one slot's export is kept; this one replaces it.
	b.s.blobOf = ieg.NoSlot
	_ = yz.MemorySeqCp(b.s.c.mem, yz.SeqId(seq), yz.SeqId(b.scratch), yz.Pos(from), yz.Pos(from+n))
	var err error
	b.s.blob, err = b.s.c.export(b.scratch, b.s.blob)
	b.s.c.trim(b.scratch, 0)
	if err != nil {
		return source{}, err
	}
	b.at, err = b.form.places(b.s.blob, n, from, b.at)
	return source{blob: b.s.blob, first: from}, err
}

// read copies bytes of row r, beginning with byte skip of token, into dst.
func (b *blocks) read(src *source, r *blockRows, token, skip int, dst []byte) error {
	if b.direct {
		return b.s.c.lib.x.ReadRows(r.tensor, src.stream, token*r.bytes+skip, dst)
	}
	at := b.at[r.export] + (token-src.first)*r.bytes + skip
	copy(dst, src.blob[at:at+len(dst)])
	return nil
}

// whole writes tokens [0, n) of a slot as a state into buf. The library's own
// export may lack tokens, and copies all that the slot holds.
func (b *blocks) whole(slot ieg.Slot, n int, buf []byte) ([]byte, error) {
	src := source{stream: int(b.s.seq[slot])}
	_ = yz.Synchronize(b.s.c.ctx)
	buf = sized(buf, b.form.size(n))
	b.to = b.form.write(buf, b.head, n, 0, b.to)
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		if err := b.read(&src, r, 0, 0, buf[b.to[r.export]:][:n*r.bytes]); err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// save copies the op's pieces into the pages.
func (b *blocks) save(op *ieg.KVOp, done *ieg.CopyDone) error {
	e := &op.Extents[0]
	src, err := b.source(op.From, int(op.Start), int(op.N))
	if err != nil {
		return err
	}
	b.pieces = b.shape.pieces(b.arena, e, b.pieces[:0])
	sum := b.before(op)
	for _, p := range b.pieces {
		at := e.Start + int32(p.first)
		if at < op.Start || at >= op.Start+op.N {
			continue
		}
		if e.Codec == ieg.CodecRaw {
			sum, err = b.savePiece(&src, e, p, sum)
		} else {
			sum, err = b.packPiece(&src, e, p, sum)
		}
		if err != nil {
			return err
		}
	}
	done.Digest = sum
	return nil
}

// before is the digest of what precedes an op of its first block.
func (b *blocks) before(op *ieg.KVOp) uint64 {
	if op.Next {
		return b.sum
	}
	return op.Sum
}

// savePiece copies a piece as it is: the digest follows while the bytes are in
// the processor's cache.
func (b *blocks) savePiece(src *source, e *ieg.Extent, p piece, sum uint64) (uint64, error) {
	at := p.at
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		for done, all := 0, p.n*r.bytes; done < all; {
			dst := b.place(e).Span(int64(at), int64(all-done))
			if err := b.read(src, r, int(e.Start)+p.first, done, dst); err != nil {
				return 0, err
			}
			sum = b.arena.Digest(sum, dst)
			done, at = done+len(dst), at+len(dst)
		}
	}
	return sum, nil
}

// packPiece copies a piece through its codec.
func (b *blocks) packPiece(src *source, e *ieg.Extent, p piece, sum uint64) (uint64, error) {
	j := &b.join[0]
	j.raw = sized(j.raw, p.n*b.shape.token)
	for i := range b.shape.rows {
		r := &b.shape.rows[i]
		if err := b.read(src, r, int(e.Start)+p.first, 0, j.raw[p.n*r.before:][:p.n*r.bytes]); err != nil {
			return 0, err
		}
	}
	if dst := b.place(e).Span(int64(p.at), int64(p.size)); len(dst) == p.size {
		b.arena.Encode(e.Codec, b.kvType, dst, j.raw)
		return b.arena.Digest(sum, dst), nil
	}
	j.kept = sized(j.kept, p.size)
	b.arena.Encode(e.Codec, b.kvType, j.kept, j.raw)
	b.place(e).Write(int64(p.at), j.kept)
	return b.arena.Digest(sum, j.kept), nil
}

func (b *blocks) place(e *ieg.Extent) engine.Place {
	return engine.Place{Arena: b.arena, Pages: e.Pages}
}

// sized is a buffer of n bytes, buf if it is large enough.
func sized(buf []byte, n int) []byte {
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	return buf[:n]
}
