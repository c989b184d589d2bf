package kernel

import (
	"slices"

	"ieg"
	"ieg/memory/kv"
)

// saving is a block that is being copied from a row to the arena.
type saving struct {
	k     *kv.Known
	slot  ieg.Slot
	done  int32 // its first tokens whose copies are on their way, or made
	made  int32 // those of them that are made
	lease kv.LeaseID
}

// flown is a copy in flight: a part of a saving, or of what is brought for a
// sequence; the last one of that in the batch has its lease.
type flown struct {
	op     int32
	n      int32
	bytes  int64
	open   bool // its last block is not proven yet: the next copy of it goes on
	more   bool // the next copy belongs to the same part, which that one ends
	save   *saving
	seq    *seq
	slot   ieg.Slot
	blocks []*kv.Known
	lease  kv.LeaseID
}

// down adds copies of what is not saved to the batch: as many pieces as the
// step's share of time allows, or, without other work, a short step of them.
func (m *Machine) down(e *engine) {
	for s := e.pool.Dropped(); s != ieg.NoSlot; s = e.pool.Dropped() {
		e.batch.Ops = e.pool.Empty(s, e.batch.Ops)
		m.unkeep(e, s)
	}
	if !m.below(e) {
		return
	}
	piece := e.saveRate.seconds(e.bytes(ieg.CodecRaw, ieg.PieceTokens))
	room := IdleCopy.Seconds()
	working := len(e.batch.Work) > 0
	if working {
		step := e.profile.Speed().Step(e.flight.load)
		share := m.cfg.KV.CopyShare * step
		e.credit = min(e.credit+share, max(share, CopyRoom.Seconds(), piece))
		room = e.credit
	}
	for room >= piece || !working && room > 0 {
		if e.saving == nil && !m.nextSave(e) {
			break
		}
		sv := e.saving
		pieces := max(int32(room/piece), 1)
		n := min(pieces*ieg.PieceTokens, sv.k.N()-sv.done)
		m.save(e, sv, n)
		if e.saving = sv; sv.done == sv.k.N() {
			e.saving = nil
		}
		used := e.saveRate.seconds(e.bytes(ieg.CodecRaw, n))
		room -= used
		if working {
			e.credit = max(e.credit-used, 0)
		}
		if e.saving != nil {
			break // one op of a block in a batch
		}
	}
}

// save adds copies of the next n tokens of a saving to the batch.
func (m *Machine) save(e *engine, sv *saving, n int32) {
	most := e.short(e.saveRate, ieg.PieceTokens)
	for next := false; n > 0; next = true {
		part := min(n, most)
		e.batch.Ops = append(e.batch.Ops, ieg.KVOp{Kind: ieg.KVSave, From: sv.slot, Start: sv.k.Start + sv.done, N: part, Next: next, Extents: []ieg.Extent{sv.k.Extent()}})
		op := &e.batch.Ops[len(e.batch.Ops)-1]
		if op.Extents[0].Digest = 0; !next {
			op.Sum = sv.k.Digest
		}
		bytes := e.bytes(ieg.CodecRaw, part)
		e.flight.copies = append(e.flight.copies, flown{op: int32(len(e.batch.Ops) - 1), n: part, bytes: bytes, save: sv})
		e.flight.copying += e.saveRate.seconds(bytes)
		sv.done, n = sv.done+part, n-part
	}
}

// savable tells whether a row holds what could be copied down.
func (m *Machine) savable(e *engine) bool {
	switch {
	case e.pool.Dropped() != ieg.NoSlot:
		return true
	case !m.below(e) || e.saveBlocked:
		return false
	case e.saving != nil:
		return true
	}
	for i := range e.pool.Slots() {
		s := ieg.Slot(i)
		if _, n := e.pool.Unsaved(s, e.pool.Row(s).Owner == 0); n > 0 && (!e.saveWaits || s == e.clear) {
			return true
		}
	}
	return false
}

// nextSave begins with the next block.
func (m *Machine) nextSave(e *engine) bool {
	for !e.saveBlocked {
		slot := e.unsaved()
		last := slot == e.clear
		if slot == ieg.NoSlot || e.saveWaits && !last {
			return false
		}
		if sv := m.beginSave(e, slot, last); sv != nil {
			e.saving = sv
			return true
		}
	}
	return false
}

// unsaved is the row that is saved next: the one that somebody waits for, then
// idle ones, the least recently used before others, since they will be
// overwritten; then running ones.
func (e *engine) unsaved() ieg.Slot {
	best := ieg.NoSlot
	for i := range e.pool.Slots() {
		s := ieg.Slot(i)
		r := e.pool.Row(s)
		if _, n := e.pool.Unsaved(s, r.Owner == 0); n == 0 {
			continue
		}
		if s == e.clear {
			return s
		}
		if b := best; b == ieg.NoSlot || (r.Owner == 0) != (e.pool.Row(b).Owner == 0) && r.Owner == 0 ||
			(r.Owner == 0) == (e.pool.Row(b).Owner == 0) && r.Used < e.pool.Row(b).Used {
			best = s
		}
	}
	return best
}

// beginSave makes room in the arena for the next unsaved block of a row. Nil:
// there is nothing to be done for it, or no room: there may be some once the
// NVMe tier has more (saveWaits), or there is none (saveBlocked). last tells
// that the row is to be overwritten: it can't wait.
func (m *Machine) beginSave(e *engine, slot ieg.Slot, last bool) *saving {
	h, row := m.kv.host, e.pool.Row(slot)
	start, n := e.pool.Unsaved(slot, true)
	chain := e.pool.Chain(slot)
	parent := row.Root
	if i := start / ieg.BlockTokens; i > 0 {
		parent = chain[i-1]
		if k := h.Get(parent); k == nil || k.State == kv.HostAbsent && !k.Disk {
			row.Saved = row.Computed // what it follows was given up: so is this
			return nil
		}
	}
	tokens := row.Tokens[start : start+n]
	b := ieg.Block{Parent: parent, Root: row.Root, Start: start, Codec: m.codec(e)}
	b.Bytes = e.bytes(b.Codec, n)
	if n == ieg.BlockTokens {
		b.Hash = chain[start/ieg.BlockTokens]
	} else {
		b.Hash = kv.Name(parent, tokens)
	}
	if k := h.Get(b.Hash); k != nil && (k.State != kv.HostAbsent || k.Disk && m.kv.nvme && !h.Fits(b.Bytes)) {
		row.Saved = start + n
		return nil
	}
	b.Tokens = slices.Clone(tokens)
	m.price(e)
	k := h.Begin(b, m.now, last)
	if k == nil {
		if !last && m.kv.queued()+m.kv.inFlight(ieg.MoveStore) > 0 {
			e.saveWaits = true
			return nil
		}
		m.kv.counts.SavesRefused++
		e.saveBlocked = true
		return nil
	}
	row.Saved = start + n
	return &saving{k: k, slot: slot, lease: h.Hold(kv.LeaseStep, uint64(e.id), e.info.Epoch, ieg.Never, k)}
}

// clears tells whether what a row has beyond keep must be saved before it is
// overwritten and takes longer than the streams of a step should wait: then
// whoever is to have the row waits instead, while it is saved in pieces.
func (m *Machine) clears(e *engine, slot ieg.Slot, keep int32) bool {
	row := e.pool.Row(slot)
	if !m.below(e) || e.saveBlocked || row.Computed <= keep {
		return false
	}
	n := int32(0)
	if start, k := e.pool.Unsaved(slot, true); k >= RescueTokensMin {
		n = row.Computed - start
	}
	if sv := e.saving; sv != nil && sv.slot == slot {
		n += sv.k.N() - sv.done
	}
	seconds := e.saveRate.seconds(e.bytes(ieg.CodecRaw, n))
	if seconds <= e.room {
		e.room -= seconds
		return false
	}
	e.clear = slot
	return true
}

// rescue copies all that is not saved of a row, of which only the first keep
// tokens will stay, with this batch.
func (m *Machine) rescue(e *engine, slot ieg.Slot, keep int32) {
	if !m.below(e) {
		return
	}
	if sv := e.saving; sv != nil && sv.slot == slot && sv.k.Start+sv.k.N() > keep {
		m.save(e, sv, sv.k.N()-sv.done)
		e.saving = nil
	}
	for !e.saveBlocked {
		row := e.pool.Row(slot)
		if _, n := e.pool.Unsaved(slot, true); n < RescueTokensMin || row.Computed <= keep {
			return
		}
		if sv := m.beginSave(e, slot, true); sv != nil {
			m.save(e, sv, sv.k.N())
		}
	}
}

// evict empties the least recently used idle row other than keep, after what it
// holds was saved.
func (m *Machine) evict(e *engine, keep ieg.Slot) bool {
	s := e.pool.Oldest(keep)
	if s == ieg.NoSlot {
		return false
	}
	m.rescue(e, s, 0)
	e.batch.Ops = e.pool.Empty(s, e.batch.Ops)
	m.unkeep(e, s)
	return true
}

// copied takes in what a step tells of its copies, and returns the sequences
// for which what was brought is not what it should be.
func (m *Machine) copied(e *engine, d *ieg.StepDone) (bad []*seq) {
	for _, f := range e.flight.copies {
		i := slices.IndexFunc(d.Copies, func(c ieg.CopyDone) bool { return c.Op == f.op })
		var c *ieg.CopyDone
		if i >= 0 {
			c = &d.Copies[i]
		}
		if f.save != nil {
			m.saved(e, &f, c)
			continue
		}
		if right := m.loaded(e, &f, c); !f.more && m.brought(e, &f, c, right) {
			bad = append(bad, f.seq)
		}
	}
	clear(e.flight.copies)
	e.flight.copies = e.flight.copies[:0]
	return bad
}

// loaded takes in the end of one copy up; c is nil if it was not done, as those
// of a part are that follow a wrong one.
func (m *Machine) loaded(e *engine, f *flown, c *ieg.CopyDone) (right bool) {
	switch {
	case c == nil:
		return false
	case c.Bad != 0:
		m.kv.counts.Corrupt++
		m.kv.host.Discard(f.blocks[min(int(c.Bad), len(f.blocks))-1])
		return false
	}
	e.loadRate.observe(f.bytes, c.Took)
	m.longest(e, c)
	m.kv.counts.LoadedBytes += f.bytes
	return true
}

// brought takes in the end of a part, and tells whether its sequence has lost
// what it was brought.
func (m *Machine) brought(e *engine, f *flown, c *ieg.CopyDone, right bool) bool {
	m.kv.host.Release(f.lease)
	if right {
		m.kv.counts.Loads++
		if f.open {
			f.seq.rest.sum = c.Digest // if that was given up, nobody asks for it
			return false
		}
		if f.seq.inFlight {
			m.count(f.seq)
		}
	}
	computed := f.seq.computed
	if !e.pool.Proven(f.slot, right) || right || f.seq.state != seqRunning {
		return false
	}
	e.ahead += int64(computed)
	f.seq.computed = 0
	return true
}

// longest notes how long the streams of a step waited for a copy: the longest of
// the last one to two LongestFor.
func (m *Machine) longest(e *engine, c *ieg.CopyDone) {
	t := &m.kv
	if !e.flight.beside {
		return
	}
	if m.now.Sub(t.since) >= LongestFor {
		t.since, t.long[0], t.long[1], t.ran[0], t.ran[1] = m.now, 0, t.long[0], 0, t.ran[0]
	}
	t.long[0], t.ran[0] = max(t.long[0], c.Took), max(t.ran[0], c.Ran)
	t.counts.LongestCopy, t.counts.LongestRun = max(t.long[0], t.long[1]), max(t.ran[0], t.ran[1])
}

// saved takes in the end of a part of a saving; c is nil if it was not done.
func (m *Machine) saved(e *engine, f *flown, c *ieg.CopyDone) {
	sv := f.save
	if c == nil {
		m.abandon(e, sv)
		return
	}
	e.saveRate.observe(f.bytes, c.Took)
	m.longest(e, c)
	sv.k.Digest = c.Digest
	if sv.made += f.n; sv.k.State != kv.HostFilling || sv.made < sv.k.N() {
		return
	}
	m.kv.counts.Saves++
	m.kv.counts.SavedBytes += sv.k.Bytes
	m.kv.host.Release(sv.lease)
	m.kv.host.Fill(sv.k, c.Digest, m.now)
	if sv.k.State == kv.HostResident { // else it was dropped meanwhile
		m.keepAlso(e, sv.slot, sv.k)
		m.offer(sv.k)
		m.store(sv.k)
	}
}

// abandon gives up a saving; its row may try again.
func (m *Machine) abandon(e *engine, sv *saving) {
	if e.saving == sv {
		e.saving = nil
	}
	if sv.k.State != kv.HostFilling {
		return
	}
	m.kv.host.Release(sv.lease)
	if e.pool != nil {
		row := e.pool.Row(sv.slot)
		row.Saved = min(row.Saved, sv.k.Start)
	}
	m.kv.host.Abandon(sv.k)
}

// dropCopies gives up all that an incarnation was copying: it is gone.
func (m *Machine) dropCopies(e *engine) {
	if m.kv.host == nil {
		return
	}
	for _, f := range e.flight.copies {
		switch {
		case f.save != nil:
			m.abandon(e, f.save)
		case !f.more:
			m.kv.host.Release(f.lease)
		}
	}
	e.flight.copies = nil
	if e.saving != nil {
		m.abandon(e, e.saving)
	}
	for s := range e.keeps {
		m.unkeep(e, ieg.Slot(s))
	}
}
