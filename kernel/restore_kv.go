package kernel

import (
	"fmt"

	"ieg"
	"ieg/memory/kv"
)

// restoreHost makes the tiers below the device of a snapshot.
func (m *Machine) restoreHost(s *SavedKV) error {
	t := &m.kv
	t.spec, t.nvme, t.why, t.next, t.expiry = s.Spec, s.NVMe, s.Why, s.Next, s.Expiry
	t.read, t.write, t.counts = rate(s.Read), rate(s.Write), s.Counts
	t.since, t.long, t.ran = s.Since, s.Long, s.Ran
	if s.Host == nil {
		return nil
	}
	var err error
	if t.host, err = kv.FromLedger(*s.Host); err != nil {
		return err
	}
	t.host.Tell(t.events)
	for q := range s.Dirty {
		for _, h := range s.Dirty[q] {
			if k := t.host.Get(h); k != nil {
				t.dirty[q] = append(t.dirty[q], k)
			}
		}
	}
	for _, v := range s.Moves {
		k := t.host.Get(v.Block)
		if k == nil {
			return fmt.Errorf("move %d is of block %s, which is unknown", v.ID, v.Block)
		}
		t.moves = append(t.moves, &move{id: v.ID, kind: v.Kind, k: k, lease: v.Lease})
	}
	return nil
}

// pick finds blocks by their names.
func (m *Machine) pick(names []ieg.BlockHash) (blocks []*kv.Known, err error) {
	for _, h := range names {
		if m.kv.host == nil || m.kv.host.Get(h) == nil {
			return nil, fmt.Errorf("block %s is unknown", h)
		}
		blocks = append(blocks, m.kv.host.Get(h))
	}
	return blocks, nil
}

// restoreWaits gives a sequence back what it wants, awaits and is brought.
func (m *Machine) restoreWaits(n *seq, s *SavedSeq) (err error) {
	if n.wants, err = m.pick(s.Wants); err != nil {
		return err
	}
	if len(n.wants) > 0 {
		m.kv.host.Want(n.wants, 1)
	}
	n.from = s.From
	n.fetch = fetching{until: s.Until, tried: s.Tried, tokens: s.Tokens, short: s.Short}
	if n.fetch.awaits, err = m.pick(s.Awaits); err != nil || s.Rest == nil {
		return err
	}
	n.rest = brought{start: s.Rest.Start, n: s.Rest.N, sum: s.Rest.Sum, lease: s.Rest.Lease}
	n.rest.blocks, err = m.pick(s.Rest.Blocks)
	if err == nil && n.rest.n > 0 && len(n.rest.blocks) == 0 {
		err = fmt.Errorf("sequence %d has %d tokens to bring and no blocks for them", n.id, n.rest.n)
	}
	return err
}

func (m *Machine) restoreSaving(s *SavedSaving) (*saving, error) {
	if s == nil {
		return nil, nil
	}
	k, err := m.pick([]ieg.BlockHash{s.Block})
	if err != nil {
		return nil, err
	}
	return &saving{k: k[0], slot: s.Slot, done: s.Done, made: s.Made, lease: s.Lease}, nil
}

// restoreCopies gives an engine back what it is copying.
func (m *Machine) restoreCopies(e *engine, s *SavedEngine, known map[ieg.SeqID]*seq) (err error) {
	if e.saving, err = m.restoreSaving(s.Saving); err != nil {
		return err
	}
	e.keeps = make([][]*kv.Known, len(s.Keeps))
	for i, names := range s.Keeps {
		if e.keeps[i], err = m.pick(names); err != nil {
			return err
		}
		if len(names) > 0 {
			m.kv.host.Keep(e.keeps[i], 1)
		}
	}
	e.flight.copying, e.flight.beside = s.Flight.Copying, s.Flight.Beside
	savings := map[ieg.BlockHash]*saving{}
	if e.saving != nil {
		savings[s.Saving.Block] = e.saving
	}
	for _, c := range s.Flight.Copies {
		f := flown{op: c.Op, n: c.N, bytes: c.Bytes, open: c.Open, more: c.More, lease: c.Lease, seq: known[c.Seq], slot: c.Slot}
		if f.blocks, err = m.pick(c.Blocks); err != nil {
			return err
		}
		if c.Save != nil {
			if f.save = savings[c.Save.Block]; f.save == nil { // one saving, several copies
				if f.save, err = m.restoreSaving(c.Save); err != nil {
					return err
				}
				savings[c.Save.Block] = f.save
			}
		}
		if f.save == nil && f.seq == nil {
			return fmt.Errorf("a copy for sequence %d, which is unknown", c.Seq)
		}
		e.flight.copies = append(e.flight.copies, f)
	}
	return nil
}
