package kernel

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/memory/kv"
)

// brought is what a sequence takes from the arena: tokens [start, start+n), and
// at what price.
type brought struct {
	start, n int32
	blocks   []*kv.Known
	sum      uint64 // digest of what precedes start of the first block
	lease    kv.LeaseID
	seconds  float64 // to copy
	saves    float64 // seconds to compute instead
}

func (b *brought) end() int32 { return b.start + b.n }

// inside tells whether a part of the first block was brought before.
func (b *brought) inside() bool { return b.n > 0 && b.start > b.blocks[0].Start }

// names completes the names of the sequence's full blocks.
func (m *Machine) names(e *engine, s *seq) {
	if s.root == (ieg.BlockHash{}) {
		s.root = kv.Root(e.info.KVName, s.tenant())
		m.kv.events.Name(s.root, e.model)
	}
	s.chain = kv.Names(s.chain, s.root, s.tokens)
}

// known is the longest beginning of the sequence's text below the device; it is
// valid until the next call.
func (m *Machine) find(e *engine, s *seq) *kv.Path {
	t := &m.kv
	m.names(e, s)
	t.path = t.host.Find(s.root, s.chain, s.tokens, t.path)
	return &t.path
}

// tiered tells whether a sequence's KV may come from below the device.
func (m *Machine) tiered(e *engine, s *seq) bool {
	return m.below(e) && s.req.spec.Kind == ieg.Generate && e.info.Prefixes
}

// bring weighs what the arena has of a sequence against what a row has, by the
// measured speeds of copying and computing. What it takes is leased. With
// something brought the match is what the row needs of another: all that is
// before it.
func (m *Machine) bring(e *engine, s *seq, match kv.Match) (brought, kv.Match) {
	var b brought
	if !m.tiered(e, s) {
		return b, match
	}
	p := m.find(e, s)
	if p.Host < match.N+AwaitTokensMin {
		return b, match
	}
	if e.info.Layout == ieg.Unified {
		b.start = match.N / ieg.BlockTokens * ieg.BlockTokens // those cells are shared
	}
	b.n = p.Host - b.start
	for _, k := range p.Blocks {
		if k.Start >= b.start && k.Start < b.end() {
			b.blocks = append(b.blocks, k)
		}
	}
	b.seconds = e.loadRate.seconds(e.bytes(ieg.CodecRaw, b.n))
	b.saves = m.compute(e, match.N, p.Host-match.N)
	if b.seconds >= b.saves {
		m.kv.counts.BringsDeclined++
		return brought{}, match
	}
	b.lease = m.kv.host.Hold(kv.LeaseStep, uint64(e.id), e.info.Epoch, ieg.Never, b.blocks...)
	if match.N = b.start; match.N == 0 {
		match.Slot = ieg.NoSlot
	}
	return b, match
}

// compute is the time to compute n tokens after past ones.
func (m *Machine) compute(e *engine, past, n int32) float64 {
	return e.profile.Speed().PrefillSeconds(past, n, e.info.StepTokens)
}

// letGo ends the lease of what is not brought after all.
func (m *Machine) letGo(b *brought) {
	if b.n > 0 {
		m.kv.host.Release(b.lease)
		*b = brought{}
	}
}

// copyRoom is the seconds of copies for which a step has room, those in the
// background aside: with streams in it a share of its time, but CopyRoom at
// least. In the unified layout cells for all that is brought are there now,
// and may not be later.
func (m *Machine) copyRoom(e *engine) float64 {
	var l cost.Step
	for _, s := range e.running {
		if s.decodes() {
			l.Seqs++
			l.KVTokens += int64(s.computed)
		}
	}
	if l.Seqs == 0 || e.info.Layout == ieg.Unified {
		return math.Inf(1)
	}
	step := e.profile.Speed().Step(l)
	if s := e.firstPrompt(); s != nil && e.long(s) && e.due <= 0 {
		step += m.compute(e, s.computed, e.piece(s)) // the streams wait anyhow
	}
	return max(CopyRoom.Seconds(), m.cfg.KV.CopyShare*step)
}

// roomBefore is what the sequence's own tile adds to the room, if that is due once
// its row is whole.
func (m *Machine) roomBefore(e *engine, s *seq) float64 {
	left := int32(len(s.tokens)) - s.rest.end()
	if e.due > 0 || e.info.Tile <= 1 || left < e.info.Tile {
		return 0
	}
	return m.cfg.KV.CopyShare * m.compute(e, s.rest.end(), e.info.Tile)
}

// carryOn brings more to the sequences that have a part of it.
func (m *Machine) carryOn(e *engine) {
	e.clear = ieg.NoSlot
	if !m.below(e) {
		return
	}
	e.flight.beside = slices.ContainsFunc(e.running, (*seq).decodes)
	e.room, e.carried = m.copyRoom(e), false
	for _, s := range e.running {
		if s.brings() {
			n := m.carry(e, s, s.slot)
			s.computed += n
			e.ahead -= int64(n)
		}
	}
}

// part is the next part of what is brought that takes no more than room, but
// one unit at least if it must: whole pieces, or blocks where an engine would
// copy the others again with each. open tells that its last block goes on in
// the next part.
func (m *Machine) part(e *engine, rest *brought, room float64, must bool) (p brought, open bool) {
	unit := e.unitUp()
	p = brought{start: rest.start, sum: rest.sum}
	for p.end() < rest.end() {
		n := min((p.end()/unit+1)*unit, rest.end()) - p.start
		seconds := e.loadRate.seconds(e.bytes(ieg.CodecRaw, n))
		if seconds > room && (p.n > 0 || !must) {
			break
		}
		p.n, p.seconds = n, seconds
	}
	var inside bool
	p.blocks, inside = until(rest.blocks, p.end())
	return p, inside && p.end() < rest.end()
}

// unitUp is the least that is copied up by itself.
func (e *engine) unitUp() int32 {
	if e.info.KVPieces {
		return ieg.PieceTokens
	}
	return ieg.BlockTokens
}

// short is the most tokens in one copy: beside streams as many units as take
// CopyMax, one at least.
func (e *engine) short(r rate, unit int32) int32 {
	if !e.flight.beside {
		return math.MaxInt32
	}
	units := CopyMax.Seconds() / r.seconds(e.bytes(ieg.CodecRaw, unit))
	return int32(min(max(units, 1), math.MaxInt16)) * unit
}

// until are the blocks that begin before end; inside tells that the last one
// goes on there.
func until(blocks []*kv.Known, end int32) (before []*kv.Known, inside bool) {
	k := 0
	for k < len(blocks) && blocks[k].Start < end {
		k++
	}
	return blocks[:k], k > 0 && end < blocks[k-1].Start+blocks[k-1].N()
}

// carry adds the copy of the next part of what is brought for a sequence to the
// batch, and tells how many tokens that are: as many as the step has room for,
// a few at least if nothing else was brought with it.
func (m *Machine) carry(e *engine, s *seq, slot ieg.Slot) int32 {
	rest, h := &s.rest, m.kv.host
	part, open := m.part(e, rest, e.room+m.roomBefore(e, s), !e.carried)
	if part.n == 0 {
		return 0
	}
	e.room, e.carried = e.room-part.seconds, true
	part.lease = rest.lease
	if part.n == rest.n {
		*rest = brought{}
	} else {
		// Each part is leased by itself: it may be over when the rest is given up.
		part.lease = h.Hold(kv.LeaseStep, uint64(e.id), e.info.Epoch, ieg.Never, part.blocks...)
		done := len(part.blocks)
		if open {
			done--
		}
		rest.start, rest.n, rest.sum, rest.blocks = part.end(), rest.n-part.n, 0, rest.blocks[done:]
		whole := rest.lease
		rest.lease = h.Hold(kv.LeaseStep, uint64(e.id), e.info.Epoch, ieg.Never, rest.blocks...)
		h.Release(whole)
	}
	m.copyUp(e, s, slot, &part, open)
	return part.n
}

// copyUp adds the copies of a part to the batch, one in the unified layout.
func (m *Machine) copyUp(e *engine, s *seq, slot ieg.Slot, b *brought, open bool) {
	left, most := b.blocks, b.n
	if e.info.Layout == ieg.Streams {
		most = min(most, e.short(e.loadRate, e.unitUp()))
	}
	for at := b.start; at < b.end(); {
		end := min(at+most, b.end())
		blocks, inside := until(left, end)
		op := ieg.KVOp{Kind: ieg.KVLoad, To: slot, Start: at, N: end - at, Open: inside && (end < b.end() || open)}
		if at == b.start {
			op.Sum = b.sum
		} else {
			op.Next = at > blocks[0].Start
		}
		for _, k := range blocks {
			op.Extents = append(op.Extents, k.Extent())
		}
		e.batch.Ops = append(e.batch.Ops, op)
		f := flown{op: int32(len(e.batch.Ops) - 1), n: op.N, bytes: e.bytes(ieg.CodecRaw, op.N), open: op.Open, more: end < b.end(), seq: s, slot: slot, blocks: blocks}
		if !f.more {
			f.lease = b.lease
		}
		e.flight.copies = append(e.flight.copies, f)
		done := len(blocks)
		if inside {
			done--
		}
		left, at = left[done:], end
	}
	e.pool.Brought(slot, b.end())
	e.flight.copying += b.seconds
}

// account counts from which tier a sequence's cached tokens came, and notes why.
// Of one that was admitted before the request tells the last time only.
func (m *Machine) account(s *seq, row int32, b *brought) {
	nvme := min(s.fetch.tokens, b.n)
	from := [ieg.NumTiers]int32{ieg.TierDevice: row, ieg.TierHost: b.n - nvme, ieg.TierNVMe: nvme}
	for t, n := range from {
		m.kv.counts.Hits[t] += int64(n)
		s.req.tiers[t] += n - s.from[t]
	}
	s.from = from
	if b.n > 0 {
		s.req.note("tokens %d to %d brought from %s in %s; to compute them would take %s",
			b.start, b.end(), source(nvme, b.n), span(b.seconds).Round(time.Microsecond*100), span(b.saves).Round(time.Millisecond))
	}
}

// unaccount takes back what was counted of a sequence for which what was
// brought is wrong: it is admitted anew.
func (m *Machine) unaccount(s *seq) {
	for t, n := range s.from {
		m.kv.counts.Hits[t] -= int64(n)
		s.req.tiers[t] -= n
	}
	s.from = [ieg.NumTiers]int32{}
	s.req.note("what was brought is not what its digest says: it is computed")
}

func source(nvme, n int32) string {
	switch nvme {
	case 0:
		return "host"
	case n:
		return "nvme"
	}
	return fmt.Sprintf("host and nvme (%d tokens)", nvme)
}

// note keeps a line for explain.
func (r *request) note(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); len(r.notes) < NotesMax && !slices.Contains(r.notes, line) {
		r.notes = append(r.notes, line)
	}
}
