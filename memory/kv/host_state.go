package kv

import (
	"fmt"
	"slices"

	"ieg"
)

// HostLedger is a Host as plain data: for snapshots. Tokens and pages are
// shared with the ledger: what they hold never changes.
type HostLedger struct {
	Config   HostConfig
	Rates    Rates
	Turn     uint64
	Next     LeaseID
	Evicted  int64
	Lost     int64
	Free     []ieg.Page
	Blocks   []KnownState // each after its parent
	Resident []int32      // of Blocks, in their order
	Leases   []LeaseState
}

// KnownState is one block.
type KnownState struct {
	Block   ieg.Block
	Parent  int32 // in Blocks; -1: a root
	Pages   []ieg.Page
	State   HostState
	Disk    bool
	Kept    Kept
	Queued  bool
	Storing bool
	Dropped bool
	Heat    Heat
}

// LeaseState is one lease.
type LeaseState struct {
	ID     LeaseID
	Kind   LeaseKind
	Owner  uint64
	Epoch  ieg.Epoch
	Expiry ieg.Time
	Blocks []int32
}

// Ledger copies the state.
func (h *Host) Ledger() HostLedger {
	st := HostLedger{Config: h.cfg, Rates: h.rates, Turn: h.turn, Next: h.next, Evicted: h.Evicted, Lost: h.Lost, Free: slices.Clone(h.free)}
	all := h.ordered()
	st.Blocks = make([]KnownState, 0, len(all))
	for i, k := range all {
		k.place = i
		parent := int32(-1)
		if k.parent != nil {
			parent = int32(k.parent.place)
		}
		st.Blocks = append(st.Blocks, KnownState{Block: k.Block, Parent: parent, Pages: k.Pages, State: k.State, Disk: k.Disk, Kept: k.Kept, Queued: k.Queued, Storing: k.Storing, Dropped: k.Dropped, Heat: k.heat})
	}
	for _, k := range h.resident {
		st.Resident = append(st.Resident, int32(k.place))
	}
	for _, l := range h.leases {
		s := LeaseState{ID: l.ID, Kind: l.Kind, Owner: l.Owner, Epoch: l.Epoch, Expiry: l.Expiry}
		for _, k := range l.Blocks {
			s.Blocks = append(s.Blocks, int32(k.place))
		}
		st.Leases = append(st.Leases, s)
	}
	return st
}

// FromLedger makes the Host of a state. What live sequences want is told to it
// afterwards, by Want; then Check tells whether all adds up.
func FromLedger(st HostLedger) (*Host, error) {
	h := &Host{cfg: st.Config, rates: st.Rates, turn: st.Turn, next: st.Next, Evicted: st.Evicted, Lost: st.Lost,
		free: slices.Clone(st.Free), blocks: map[ieg.BlockHash]*Known{}}
	all := make([]*Known, len(st.Blocks))
	for i, b := range st.Blocks {
		k := &Known{Block: b.Block, Pages: b.Pages, State: b.State, Disk: b.Disk, Kept: b.Kept, Queued: b.Queued, Storing: b.Storing, Dropped: b.Dropped, heat: b.Heat}
		switch {
		case h.blocks[k.Hash] != nil || b.Parent >= int32(i) || b.State > HostResident:
			return nil, fmt.Errorf("kv: block %d is there twice, or before its parent, or in no known state", i)
		case b.Parent >= 0:
			k.parent = all[b.Parent]
			k.parent.kids = append(k.parent.kids, k)
		default:
			h.roots = append(h.roots, k)
		}
		all[i], h.blocks[k.Hash] = k, k
	}
	pick := func(i int32) (*Known, error) {
		if i < 0 || int(i) >= len(all) {
			return nil, fmt.Errorf("kv: block %d of %d", i, len(all))
		}
		return all[i], nil
	}
	for n, i := range st.Resident {
		k, err := pick(i)
		if err != nil {
			return nil, err
		}
		k.at = n
		h.resident = append(h.resident, k)
	}
	for _, s := range st.Leases {
		l := &Lease{ID: s.ID, Kind: s.Kind, Owner: s.Owner, Epoch: s.Epoch, Expiry: s.Expiry}
		for _, i := range s.Blocks {
			k, err := pick(i)
			if err != nil {
				return nil, err
			}
			k.held++
			l.Blocks = append(l.Blocks, k)
		}
		h.leases = append(h.leases, l)
	}
	return h, nil
}
