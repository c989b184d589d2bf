package kernel

import (
	"fmt"

	"ieg"
	"ieg/memory/kv"
)

// Check proves what must hold between events: the KV ledgers add up, each
// sequence is where its state says, each row's owner is a running sequence or
// one that lands, and nothing is held for a request that ended. It is for
// tests and the simulator; its time grows with what is live.
func (m *Machine) Check() error {
	live := 0
	for _, e := range m.engines {
		if err := m.checkEngine(e); err != nil {
			return fmt.Errorf("engine %d: %w", e.id, err)
		}
		live += len(e.seqs)
	}
	sum := 0
	for _, r := range m.order {
		if m.reqs[r.spec.ID] != r || r.live < 1 {
			return fmt.Errorf("kernel: %s is in the order with %d live sequences", r.spec.ID, r.live)
		}
		sum += r.live
	}
	if err := m.checkTiers(); err != nil {
		return err
	}
	if sum != live || len(m.order) != len(m.reqs) {
		return fmt.Errorf("kernel: %d sequences live in requests, %d in engines; %d requests in order, %d known", sum, live, len(m.order), len(m.reqs))
	}
	return nil
}

func (m *Machine) checkEngine(e *engine) error {
	if e.waiting.Len()+len(e.running) != len(e.seqs) {
		return fmt.Errorf("%d waiting and %d running of %d sequences", e.waiting.Len(), len(e.running), len(e.seqs))
	}
	for i := range e.waiting.Len() {
		s := e.seqs[e.waiting.At(i).Seq]
		if s == nil || s.state != seqWaiting || s.slot != ieg.NoSlot || s.computed != 0 || s.rest.n != 0 || s.inFlight {
			return fmt.Errorf("waiting sequence %d is not waiting", e.waiting.At(i).Seq)
		}
		if i > 0 && e.waiting.At(i-1).Compare(e.waiting.At(i)) >= 0 {
			return fmt.Errorf("the queue is out of order at %d", i)
		}
	}
	ahead := int64(0)
	for i := range e.waiting.Len() {
		ahead += int64(e.seqs[e.waiting.At(i).Seq].gap())
	}
	for _, s := range e.running {
		ahead += int64(s.gap())
	}
	if ahead != e.ahead {
		return fmt.Errorf("%d tokens to compute, counted as %d", ahead, e.ahead)
	}
	if e.pool == nil {
		if len(e.running) > 0 {
			return fmt.Errorf("%d sequences run without an engine", len(e.running))
		}
		return nil
	}
	if err := e.pool.Check(); err != nil {
		return err
	}
	owned := map[ieg.SeqID]bool{}
	for _, s := range e.running {
		row := e.pool.Row(s.slot)
		if s.state != seqRunning || row.Owner != s.id || row.Computed != s.computed || s.computed > int32(len(s.tokens)) {
			return fmt.Errorf("sequence %d has computed %d of %d tokens in slot %d, whose owner %d has %d",
				s.id, s.computed, len(s.tokens), s.slot, row.Owner, row.Computed)
		}
		owned[s.id] = true
	}
	for _, w := range e.flight.work {
		if e.flight.active && w.seq != nil && !w.seq.inFlight {
			return fmt.Errorf("sequence %d is in flight and does not know", w.seq.id)
		}
		if w.seq != nil && w.seq.state == seqFinished {
			owned[w.seq.id] = true
		}
	}
	for i := range e.pool.Slots() {
		if o := e.pool.Row(ieg.Slot(i)).Owner; o != 0 && !owned[o] {
			return fmt.Errorf("slot %d is held by sequence %d, which does not run", i, o)
		}
	}
	return nil
}

// checkTiers proves the ledger below the device: each lease of a step belongs
// to a copy in flight, to the rest of one, or to a block being saved, each one of
// a move to a move, and only sequences that wait want blocks.
func (m *Machine) checkTiers() error {
	t := &m.kv
	if t.host == nil {
		return nil
	}
	if err := t.host.Check(); err != nil {
		return err
	}
	steps := 0
	for _, e := range m.engines {
		saving := map[*saving]bool{}
		if e.saving != nil {
			saving[e.saving] = true
		}
		for _, f := range e.flight.copies {
			switch {
			case f.save != nil:
				saving[f.save] = true
			case !f.more:
				steps++
			}
		}
		steps += len(saving)
		for _, s := range e.running {
			if s.rest.n > 0 {
				steps++
			}
			if row := e.pool.Row(s.slot); s.rest.inside() && !(row.Unproven && row.Computed == s.rest.start) {
				return fmt.Errorf("kernel: sequence %d is brought a block from token %d on, its row has %d (unproven %t)", s.id, s.rest.start, row.Computed, row.Unproven)
			}
			if len(s.wants)+len(s.fetch.awaits) > 0 {
				return fmt.Errorf("sequence %d runs and waits for blocks", s.id)
			}
		}
	}
	if n := t.host.Leases(kv.LeaseStep); n != steps {
		return fmt.Errorf("kernel: %d leases of steps for %d copies", n, steps)
	}
	if n := t.host.Leases(kv.LeaseMove); n != len(t.moves) {
		return fmt.Errorf("kernel: %d leases of moves for %d moves", n, len(t.moves))
	}
	for _, s := range t.fetchers {
		if s.state != seqWaiting || !s.fetch.open() {
			return fmt.Errorf("kernel: sequence %d is a fetcher that awaits nothing", s.id)
		}
	}
	return nil
}
