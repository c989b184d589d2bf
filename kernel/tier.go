package kernel

import (
	"time"

	"ieg"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// The tiers below the device. The arena (host) is the machine's own ledger:
// which block lies on which pages is decided here. The NVMe tier keeps its own
// index; what it has of a text comes with the request, as a hint.

// KVConfig holds the choices for KV below the device.
type KVConfig struct {
	// Policy says which block gives way in the arena.
	Policy kv.Policy
	// HostCodec is ieg.CompressNone or CompressINT8; CompressAuto is none: what
	// the arena saves in bytes it would cost in the engine's time.
	HostCodec string
	// CopyShare is the part of a step's time that copies may take, those down in
	// the background and those up for newcomers each.
	CopyShare float64
	// Moves is the most moves to the NVMe tier in flight.
	Moves int
	// Events makes the machine tell which blocks tiers got and lost.
	Events bool
}

// tiers is the machine's view of what lies below the device.
type tiers struct {
	host   *kv.Host // nil: no arena
	spec   HostUp
	nvme   bool
	why    string // why not
	dirty  [2][]*kv.Known
	moves  []*move
	next   ieg.MoveID
	expiry ieg.Time // of the lease that ends next
	path   kv.Path  // scratch
	read   rate     // of the NVMe tier
	write  rate
	counts ieg.KVCounts
	since  ieg.Time         // when the present LongestFor began
	long   [2]time.Duration // the longest copy in it, and in the one before
	ran    [2]time.Duration // the most processor time of one
	// fetchers are waiting sequences that await blocks, or room for them.
	fetchers []*seq
	events   *kv.Events // nil: nobody wants to know
}

// move is a block on its way to or from the NVMe tier.
type move struct {
	id    ieg.MoveID
	kind  ieg.MoveKind
	k     *kv.Known
	lease kv.LeaseID
}

// rate is a measured speed as seconds a byte: what becomes slow is seen at
// once.
type rate float64

func (r *rate) observe(bytes int64, took time.Duration) {
	if took > 0 && bytes > 0 {
		gain := RateGain * min(1, rate(bytes)/RateBytes) // little says more of latency
		*r += gain * (rate(took.Seconds()/float64(bytes)) - *r)
	}
}

func (r rate) seconds(bytes int64) float64 { return float64(r) * float64(bytes) }

// perSecond is the speed in bytes a second.
func (r rate) perSecond() float64 { return 1 / float64(r) }

func (m *Machine) hostUp(ev HostUp) {
	if m.kv.host != nil {
		panic("kernel: the arena is there twice")
	}
	m.kv.spec = ev
	m.kv.host = kv.NewHost(kv.HostConfig{Pages: ev.Pages, PageBytes: ev.PageBytes, Policy: m.cfg.KV.Policy})
	m.kv.host.Tell(m.kv.events)
}

// nvmeUp begins to use the NVMe tier, or uses it again after it had no room;
// what it lacks is copied down.
func (m *Machine) nvmeUp() {
	m.kv.nvme, m.kv.why = true, ""
	m.storeAll()
}

// storeAll queues all that the NVMe tier lacks. What it refused is not kept
// apart: it is in the arena, and not on the disk.
func (m *Machine) storeAll() {
	if t := &m.kv; t.nvme && t.host != nil {
		t.host.Each(m.store)
	}
}

func (m *Machine) nvmeDown(why string) {
	t := &m.kv
	t.nvme, t.why = false, why
	for q := range t.dirty {
		for _, k := range t.dirty[q] {
			k.Queued = false
		}
		t.dirty[q] = nil
	}
	m.roomier()
}

// store queues a resident block for the NVMe tier.
func (m *Machine) store(k *kv.Known) {
	if t := &m.kv; t.nvme && k.State == kv.HostResident && !k.Disk && !k.Storing && !k.Queued {
		k.Queued = true
		q := 0
		if !k.Full() {
			q = 1 // it may be superfluous soon
		}
		t.dirty[q] = append(t.dirty[q], k)
	}
}

// pump starts moves to the NVMe tier while there is room for them.
func (m *Machine) pump() {
	t := &m.kv
	if t.host == nil || !t.nvme {
		return
	}
	for q := range t.dirty {
		for len(t.dirty[q]) > 0 && t.inFlight(ieg.MoveStore) < m.cfg.KV.Moves {
			k := t.dirty[q][0]
			t.dirty[q] = t.dirty[q][1:]
			if t.host.Get(k.Hash) == k && k.Queued && !k.Disk && !k.Dropped {
				k.Queued, k.Storing = false, true
				m.move(ieg.MoveStore, k)
			}
		}
	}
}

// queued is how many blocks wait for a move to the NVMe tier.
func (t *tiers) queued() int { return len(t.dirty[0]) + len(t.dirty[1]) }

func (t *tiers) inFlight(kind ieg.MoveKind) (n int) {
	for _, v := range t.moves {
		if v.kind == kind {
			n++
		}
	}
	return n
}

// move starts a move of a block whose pages are there.
func (m *Machine) move(kind ieg.MoveKind, k *kv.Known) {
	t := &m.kv
	t.next++
	v := &move{id: t.next, kind: kind, k: k}
	v.lease = t.host.Hold(kv.LeaseMove, uint64(t.next), 0, ieg.Never, k)
	t.moves = append(t.moves, v)
	m.ready.Moves = append(m.ready.Moves, ieg.Move{ID: v.id, Kind: kind, Block: k.Block, Pages: k.Pages})
}

// moveDone takes in the end of a move.
func (m *Machine) moveDone(d *ieg.MoveDone) {
	t := &m.kv
	i := 0
	for i < len(t.moves) && t.moves[i].id != d.ID {
		i++
	}
	if i == len(t.moves) {
		return
	}
	v := t.moves[i]
	t.moves = append(t.moves[:i], t.moves[i+1:]...)
	v.k.Storing = false
	t.host.Release(v.lease)
	if v.kind == ieg.MoveStore {
		m.stored(v.k, d)
	} else {
		m.fetched(v.k, d)
	}
	m.roomier()
}

// roomier lets engines try again what the arena had no room for.
func (m *Machine) roomier() {
	for _, e := range m.engines {
		e.saveBlocked, e.saveWaits = false, false
	}
	for _, s := range m.kv.fetchers {
		if s.fetch.short {
			m.interrupt(s.req.engine)
		}
	}
}

func (m *Machine) stored(k *kv.Known, d *ieg.MoveDone) {
	t := &m.kv
	switch {
	case d.Err == "":
		t.write.observe(d.Bytes, d.Took)
		t.counts.Stores++
		t.counts.StoredBytes += d.Bytes
		if k.State != kv.HostResident {
			return // dropped meanwhile
		}
		t.host.OnDisk(k, kv.Kept{Codec: d.Codec, Bytes: d.Bytes, Digest: d.Digest})
	case d.Gone:
		t.counts.Corrupt++
		m.kv.host.Discard(k)
	default:
		t.counts.StoresRefused++
	}
}

func (m *Machine) fetched(k *kv.Known, d *ieg.MoveDone) {
	t := &m.kv
	if d.Err == "" {
		t.read.observe(k.Bytes, d.Took)
		t.counts.Fetches++
		t.counts.FetchedBytes += k.Bytes
		t.host.Fill(k, k.Kept.Digest, m.now)
	} else {
		t.counts.FetchesFailed++
		if d.Gone {
			t.host.OffDisk(k)
		}
		t.host.Abandon(k)
	}
	for _, s := range t.fetchers {
		s.arrived(k)
		if len(s.fetch.awaits) == 0 {
			m.interrupt(s.req.engine)
		}
	}
	t.settleFetchers()
}

// expire ends the leases whose time has come.
func (m *Machine) expire() {
	if t := &m.kv; m.now >= t.expiry {
		t.expiry = t.host.Expire(m.now)
		m.roomier()
	}
}

// control does what a person asks.
func (m *Machine) control(ev KVControl) {
	t := &m.kv
	switch {
	case ev.Kind == KVDrop:
		m.drop(func(root ieg.BlockHash) bool { return root == ev.Hash })
	case ev.Kind == KVDropAll:
		m.drop(func(ieg.BlockHash) bool { return true })
	case t.host == nil:
	case ev.Kind == KVStore:
		m.storeAll()
	case ev.Kind == KVPin:
		if k := t.host.Get(ev.Hash); k != nil {
			t.host.Hold(kv.LeasePin, 0, 0, ev.Until, k.Line()...)
			t.expiry = min(t.expiry, ev.Until)
		}
	case ev.Kind == KVUnpin:
		if k := t.host.Get(ev.Hash); k != nil {
			t.host.Unpin(k)
		}
	}
	m.roomier()
}

// drop forgets the KV of some roots: in the arena, and in rows that nobody
// uses, also those that stay on the device and have no root. Rows in use keep
// theirs to themselves and are emptied with the next batch after they were
// given up.
func (m *Machine) drop(which func(root ieg.BlockHash) bool) {
	if m.kv.host != nil {
		m.kv.host.Drop(which)
	}
	for _, e := range m.engines {
		if e.pool != nil {
			e.pool.Forget(func(r *kv.Row) bool { return which(r.Root) || which(kv.Root(e.info.KVName, r.Tenant)) })
		}
	}
}

// bytes is the size of n tokens of an engine's KV under a codec.
func (e *engine) bytes(c ieg.Codec, n int32) int64 {
	raw := int64(n) * e.info.KVToken
	if c == ieg.CodecINT8 {
		return raw / 128 * 66
	}
	return raw
}

// codec is how the engine's blocks are kept in the arena.
func (m *Machine) codec(e *engine) ieg.Codec {
	if m.cfg.KV.HostCodec == ieg.CompressINT8 && e.info.KVINT8 {
		return ieg.CodecINT8
	}
	return ieg.CodecRaw
}

// below tells whether the engine's KV can be kept below its device.
func (m *Machine) below(e *engine) bool {
	return m.kv.host != nil && e.pool != nil && e.info.KVToken > 0
}

// price tells the ledger what a lost copy costs at the engine's speed.
func (m *Machine) price(e *engine) {
	s := e.profile.Speed()
	m.kv.host.SetRates(kv.Rates{Token: s.Prefill, Pair: s.Attended, Byte: float64(m.kv.read)})
}

// span turns seconds into a duration.
func span(seconds float64) time.Duration { return sched.Seconds(seconds) }

// Flushed tells that nothing waits to be copied below the device or to the
// NVMe tier.
func (m *Machine) Flushed() bool {
	t := &m.kv
	if t.host == nil {
		return true
	}
	for _, e := range m.engines {
		if e.pool != nil && !e.doomed && (m.savable(e) || len(e.flight.copies) > 0) {
			return false
		}
	}
	return len(t.moves)+len(t.dirty[0])+len(t.dirty[1]) == 0
}
