package kernel

import (
	"slices"
	"time"

	"ieg"
	"ieg/memory/kv"
)

// fetching is what a waiting sequence awaits from the NVMe tier.
type fetching struct {
	awaits []*kv.Known
	until  ieg.Time // by then computing would have been quicker
	tried  int
	tokens int32
	// short tells that its turn has come and the arena had no room for all: it
	// tries again when there is some.
	short bool
}

// open tells that it awaits blocks, or room for them.
func (f *fetching) open() bool { return len(f.awaits) > 0 || f.short }

// want looks up what is known of a sequence that waits, so that it stays known,
// and fetches what only the NVMe tier has if that is quicker than to compute
// it.
func (m *Machine) want(e *engine, s *seq) {
	if !m.tiered(e, s) {
		return
	}
	// Of one that ran before: what it had fetched may have left the arena, and
	// is no longer known then.
	if promised := m.promise(s.req.spec); promised != nil {
		defer m.kv.host.Want(promised, -1)
	}
	p := m.keepKnown(e, s)
	if m.kv.nvme && s.fetch.tried < FetchesMax && len(s.fetch.awaits) == 0 {
		m.fetch(e, s, p.Host, p.N, false)
	}
}

// keepKnown makes a waiting sequence want all that is known of its text.
func (m *Machine) keepKnown(e *engine, s *seq) *kv.Path {
	p := m.find(e, s)
	blocks := slices.Clone(p.Blocks)
	m.kv.host.Want(blocks, 1)
	m.unwant(s)
	s.wants = blocks
	return p
}

// wantAgain fetches for a sequence whose turn has come what has left the arena
// since it came, or was not known then. One sequence at a time does, or they
// would take the room from each other. False: there is nothing to wait for.
func (m *Machine) wantAgain(e *engine, s *seq) bool {
	f := &s.fetch
	if !m.tiered(e, s) || !m.kv.nvme || f.tried >= FetchesMax && !f.short {
		return false
	}
	p := m.find(e, s)
	switch {
	case p.N < max(p.Host, e.match(s).N)+AwaitTokensMin:
		f.short = false
		m.kv.settleFetchers()
		return false
	case e.fetcher != 0 && e.fetcher != s.id:
		return true
	}
	p = m.keepKnown(e, s)
	m.fetch(e, s, p.Host, p.N, true)
	if !f.open() {
		m.kv.settleFetchers()
		return false
	}
	e.fetcher = s.id
	return true
}

// offer makes the sequences whose text goes on with a block that came to the
// arena want it: it may go down further before their turn comes, and what
// nobody wants is no longer known then.
func (m *Machine) offer(k *kv.Known) {
	for _, e := range m.engines {
		for i := range e.waiting.Len() {
			s := e.seqs[e.waiting.At(i).Seq]
			if !m.tiered(e, s) {
				continue
			}
			if m.names(e, s); s.root == k.Root && s.goesOn(k) {
				m.keepKnown(e, s)
			}
		}
	}
}

// goesOn tells whether the sequence's text begins as that of a block does, and
// shares some of the block.
func (s *seq) goesOn(k *kv.Known) bool {
	i := int(k.Start / ieg.BlockTokens)
	if k.Full() && i < len(s.chain) && s.chain[i] == k.Hash {
		return true
	}
	return int(k.Start) < len(s.tokens) && i <= len(s.chain) && (i == 0 || s.chain[i-1] == k.Parent) && s.tokens[k.Start] == k.Tokens[0]
}

func (m *Machine) unwant(s *seq) {
	if len(s.wants) > 0 {
		m.kv.host.Want(s.wants, -1)
		s.wants = nil
	}
}

// fetch starts moves of the wanted blocks that are not in the arena, of which
// the text has n tokens, host of them there. turn tells that it is the
// sequence's turn: it waits for room then, unless its text takes most of the
// arena by itself.
func (m *Machine) fetch(e *engine, s *seq, host, n int32, turn bool) {
	t, f := &m.kv, &s.fetch
	have := max(e.match(s).N, host)
	if n < have+AwaitTokensMin {
		return
	}
	bytes := int64(0)
	for _, k := range s.wants {
		if k.State == kv.HostAbsent {
			bytes += k.Kept.Bytes
		}
	}
	for _, v := range t.moves {
		if v.kind == ieg.MoveFetch {
			bytes += v.k.Bytes
		}
	}
	seconds := t.read.seconds(bytes) + e.loadRate.seconds(e.bytes(ieg.CodecRaw, n))
	saves := m.compute(e, have, n-have)
	again := f.short
	f.short = false
	if !again && (turn || seconds >= saves) {
		f.tried++ // what comes before its turn may have to go again before it
	}
	if seconds >= saves {
		t.counts.FetchesDeclined++
		s.req.note("%d tokens in nvme left there: to read them would take %s, to compute them %s",
			n-have, span(seconds).Round(time.Millisecond), span(saves).Round(time.Millisecond))
		return
	}
	if !again {
		f.until = m.now.Add(span(saves))
	}
	f.short = m.fill(s) && turn && 4*e.bytes(ieg.CodecRaw, n) <= 3*int64(t.spec.Pages)*t.spec.PageBytes
	if f.tokens = n - have; f.open() && !slices.Contains(t.fetchers, s) {
		t.fetchers = append(t.fetchers, s)
	}
}

// fill starts the moves of the wanted blocks, in their order, and notes what
// is awaited; true: there was no room for all.
func (m *Machine) fill(s *seq) (short bool) {
	t := &m.kv
	// What it has in the arena must not give way to what follows.
	own := t.host.Hold(kv.LeaseMove, 0, 0, ieg.Never, inArena(s.wants)...)
	defer t.host.Release(own)
	for _, k := range s.wants {
		if k.State == kv.HostAbsent {
			b := k.Block
			b.Codec, b.Bytes, b.Digest = k.Kept.Codec, k.Kept.Bytes, 0
			if t.host.Begin(b, m.now, false) == nil {
				return true
			}
			b.Digest = k.Kept.Digest
			k.Digest = b.Digest
			m.move(ieg.MoveFetch, k)
		}
		if k.State == kv.HostFilling {
			s.fetch.awaits = append(s.fetch.awaits, k)
		}
	}
	return false
}

// inArena are those of the blocks that lie there.
func inArena(blocks []*kv.Known) (list []*kv.Known) {
	for _, k := range blocks {
		if k.State == kv.HostResident {
			list = append(list, k)
		}
	}
	return list
}

// arrived notes that a block is no longer on its way.
func (s *seq) arrived(k *kv.Known) {
	s.fetch.awaits = slices.DeleteFunc(s.fetch.awaits, func(o *kv.Known) bool { return o == k })
}

// settleFetchers forgets the sequences that await nothing.
func (t *tiers) settleFetchers() {
	t.fetchers = slices.DeleteFunc(t.fetchers, func(s *seq) bool { return !s.fetch.open() || s.state != seqWaiting })
}

// awaitsFetch tells whether the sequence should wait for blocks on their way;
// it stops waiting, for room as well, once computing would have been quicker.
func (m *Machine) awaitsFetch(s *seq) bool {
	f := &s.fetch
	if !f.open() || m.now < f.until {
		return len(f.awaits) > 0
	}
	m.kv.counts.FetchesLate++
	if len(f.awaits) > 0 {
		s.req.note("nvme was slower than computing: gave up waiting for %d blocks", len(f.awaits))
	} else {
		s.req.note("the arena had no room for what nvme has until computing was quicker")
	}
	*f = fetching{tried: FetchesMax}
	m.kv.settleFetchers()
	return false
}

// forgetWaits ends what a sequence awaited: it runs, or is finished.
func (m *Machine) forgetWaits(s *seq) {
	if m.kv.host == nil {
		return
	}
	s.fetch.awaits, s.fetch.short = nil, false
	m.kv.settleFetchers()
	m.unwant(s)
}

// promise enters what the NVMe tier has of a request's prompt; the caller gives
// up the blocks returned once it was weighed, or the sequences want them.
func (m *Machine) promise(spec *ieg.Request) []*kv.Known {
	if m.kv.host == nil || len(spec.Stored.Blocks) == 0 {
		return nil
	}
	return m.kv.host.Promise(spec.Stored)
}
