package kv

import (
	"fmt"
	"slices"

	"ieg"
)

// LeaseID numbers the leases of a ledger; counters, never reused.
type LeaseID uint64

// LeaseKind says what a lease is for.
type LeaseKind uint8

// The kinds of leases.
const (
	LeaseStep LeaseKind = iota // an engine's step reads or writes the pages
	LeaseMove                  // a move does
	LeasePin                   // a person wants them to stay
)

var leaseNames = [...]string{"step", "move", "pin"}

// String is the kind's name.
func (k LeaseKind) String() string { return leaseNames[k] }

// Lease keeps blocks where they are: their pages are not given to others.
type Lease struct {
	ID   LeaseID
	Kind LeaseKind
	// Owner is the engine, move, or 0; Epoch the engine's incarnation. Pages
	// that an incarnation may still touch are free only once it is gone.
	Owner  uint64
	Epoch  ieg.Epoch
	Expiry ieg.Time // ieg.Never: until it is released
	Blocks []*Known
}

// Hold makes a lease of blocks, which it keeps a copy of.
func (h *Host) Hold(kind LeaseKind, owner uint64, epoch ieg.Epoch, expiry ieg.Time, blocks ...*Known) LeaseID {
	h.next++
	h.leases = append(h.leases, &Lease{ID: h.next, Kind: kind, Owner: owner, Epoch: epoch, Expiry: expiry, Blocks: slices.Clone(blocks)})
	for _, k := range blocks {
		k.held++
	}
	return h.next
}

// Release ends a lease; one that has ended is no error.
func (h *Host) Release(id LeaseID) {
	h.end(func(l *Lease) bool { return l.ID == id })
}

// Expire ends the leases whose time has come, and returns when the next one's
// does.
func (h *Host) Expire(now ieg.Time) ieg.Time {
	h.end(func(l *Lease) bool { return l.Expiry <= now })
	next := ieg.Never
	for _, l := range h.leases {
		next = min(next, l.Expiry)
	}
	return next
}

// ReleaseOwner ends all leases of a kind that an owner has in an epoch.
func (h *Host) ReleaseOwner(kind LeaseKind, owner uint64, epoch ieg.Epoch) {
	h.end(func(l *Lease) bool { return l.Kind == kind && l.Owner == owner && l.Epoch == epoch })
}

func (h *Host) end(which func(*Lease) bool) {
	var ended []*Lease
	h.leases = slices.DeleteFunc(h.leases, func(l *Lease) bool {
		if !which(l) {
			return false
		}
		ended = append(ended, l)
		return true
	})
	for _, l := range ended {
		for _, k := range l.Blocks {
			k.held--
		}
		for i := len(l.Blocks) - 1; i >= 0; i-- {
			h.leave(l.Blocks[i])
		}
	}
}

// Leases counts the leases of a kind.
func (h *Host) Leases(kind LeaseKind) (n int) {
	for _, l := range h.leases {
		if l.Kind == kind {
			n++
		}
	}
	return n
}

// Held tells whether anybody holds the block.
func (k *Known) Held() bool { return k.held > 0 }

// Check proves the sums: each page is free or one block's, what is resident is
// listed, links go both ways, and holds are the leases'.
func (h *Host) Check() error {
	pages := make([]bool, h.cfg.Pages)
	use := func(p ieg.Page) error {
		if int(p) >= len(pages) || pages[p] {
			return fmt.Errorf("kv: page %d is used twice, or none of %d", p, len(pages))
		}
		pages[p] = true
		return nil
	}
	for _, p := range h.free {
		if err := use(p); err != nil {
			return err
		}
	}
	held := map[*Known]int32{}
	for _, l := range h.leases {
		for _, k := range l.Blocks {
			held[k]++
		}
	}
	resident, all := 0, h.ordered()
	if len(all) != len(h.blocks) {
		return fmt.Errorf("kv: %d blocks are linked, %d known", len(all), len(h.blocks))
	}
	for _, k := range all {
		if err := h.checkBlock(k, held[k]); err != nil {
			return err
		}
		for _, p := range k.Pages {
			if err := use(p); err != nil {
				return err
			}
		}
		if k.State == HostResident {
			resident++
		}
		delete(held, k)
	}
	switch i := slices.Index(pages, false); {
	case i >= 0:
		return fmt.Errorf("kv: page %d is neither free nor used", i)
	case resident != len(h.resident):
		return fmt.Errorf("kv: %d blocks are resident, %d are listed", resident, len(h.resident))
	case len(held) > 0:
		return fmt.Errorf("kv: %d blocks are held and forgotten", len(held))
	}
	return nil
}

func (h *Host) checkBlock(k *Known, held int32) error {
	root := len(k.Tokens) == 0
	switch {
	case k.held != held:
		return fmt.Errorf("kv: block %s is held %d times by %d leases", k.Hash, k.held, held)
	case (k.State == HostAbsent) != (len(k.Pages) == 0):
		return fmt.Errorf("kv: block %s has %d pages in state %d", k.Hash, len(k.Pages), k.State)
	case k.State != HostAbsent && len(k.Pages) != h.pages(k.Bytes):
		return fmt.Errorf("kv: block %s of %d bytes has %d pages", k.Hash, k.Bytes, len(k.Pages))
	case k.State == HostResident && (k.at >= len(h.resident) || h.resident[k.at] != k):
		return fmt.Errorf("kv: block %s is resident and not listed", k.Hash)
	case k.Queued && k.State != HostResident:
		return fmt.Errorf("kv: block %s is to be stored in state %d", k.Hash, k.State)
	case root != (k.parent == nil):
		return fmt.Errorf("kv: block %s of %d tokens: parent %v", k.Hash, len(k.Tokens), k.parent != nil)
	case !root && (h.blocks[k.parent.Hash] != k.parent || !slices.Contains(k.parent.kids, k)):
		return fmt.Errorf("kv: block %s and its parent don't know each other", k.Hash)
	case !root && k.Start != k.parent.Start+k.parent.N():
		return fmt.Errorf("kv: block %s starts at %d, its parent ends at %d", k.Hash, k.Start, k.parent.Start+k.parent.N())
	case k.State == HostAbsent && k.wanted == 0 && k.kept == 0 && k.held == 0 && len(k.kids) == 0 && !k.Storing:
		return fmt.Errorf("kv: block %s is of no use and known", k.Hash)
	}
	return nil
}

// Line is the block with those before it, the first of the text first.
func (k *Known) Line() (line []*Known) {
	for ; k != nil && len(k.Tokens) > 0; k = k.parent {
		line = append(line, k)
	}
	slices.Reverse(line)
	return line
}

// Unpin ends the pins whose last block is k.
func (h *Host) Unpin(k *Known) {
	h.end(func(l *Lease) bool { return l.Kind == LeasePin && l.Blocks[len(l.Blocks)-1] == k })
}

// Drop takes all blocks of some roots off their pages, pins included; what a
// step or a move still uses serves nobody else and goes afterwards. The NVMe
// tier's copies are forgotten with them.
func (h *Host) Drop(which func(root ieg.BlockHash) bool) {
	h.end(func(l *Lease) bool { return l.Kind == LeasePin && which(l.Blocks[0].Root) })
	list := h.ordered()
	slices.Reverse(list) // the last of a text first
	for _, k := range list {
		if len(k.Tokens) == 0 || !which(k.Root) {
			continue
		}
		if k.Disk {
			h.events.removed(ieg.TierNVMe, k.Root, k.Hash)
		}
		k.Disk, k.Dropped = false, k.State != HostAbsent
		h.leave(k)
	}
}

// Discard takes a block whose bytes are wrong out of the arena: it serves nobody
// any more, and goes once no step or move uses it. A pin outlasts it, for the
// bytes that may come back under its name.
func (h *Host) Discard(k *Known) {
	if k.State == HostResident {
		k.Dropped = true
		h.leave(k)
	}
}

// leave lets a block go that nobody uses, if it is to go or of no use.
func (h *Host) leave(k *Known) {
	if k.Dropped && k.State == HostResident && k.held == h.pins(k) {
		h.takeOff(k)
		return
	}
	h.prune(k)
}

// pins is how often a block is pinned.
func (h *Host) pins(k *Known) (n int32) {
	if k.held == 0 {
		return 0
	}
	for _, l := range h.leases {
		if l.Kind == LeasePin && slices.Contains(l.Blocks, k) {
			n++
		}
	}
	return n
}
