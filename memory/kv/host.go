package kv

import (
	"fmt"
	"slices"

	"ieg"
)

// HostState is the state of a block's copy in the arena.
type HostState uint8

// The states, one function per arrow:
//
//	absent ──Begin──▶ filling ──Fill──▶ resident ──Evict──▶ absent
//	                     └────Abandon────▶ absent
const (
	HostAbsent   HostState = iota
	HostFilling            // an engine or a move writes its pages
	HostResident           // whole; its digest is known
)

// Known is a block below the device that this host's kernel knows: on pages of
// the arena, or promised by the NVMe tier.
type Known struct {
	ieg.Block
	Pages []ieg.Page
	State HostState
	// Disk tells that the NVMe tier has it, as far as is known, and Kept how.
	Disk bool
	Kept Kept
	// Queued tells that it waits for a move to the NVMe tier, Storing that one
	// writes it there.
	Queued, Storing bool
	// Dropped tells that it is to go as soon as nobody holds it.
	Dropped bool

	parent *Known
	kids   []*Known // newest last
	wanted int32    // live sequences that will need it
	kept   int32    // rows that go on from it: it stays known
	held   int32    // leases
	heat   Heat
	at     int // in Host.resident, when it is resident
	place  int // in the list that Ledger makes
}

// Kept is the form of a copy.
type Kept struct {
	Codec  ieg.Codec
	Bytes  int64
	Digest uint64
}

// Up is the block before it; nil for the first one of a text.
func (k *Known) Up() *Known {
	if k.parent == nil || len(k.parent.Tokens) == 0 {
		return nil
	}
	return k.parent
}

// N is the number of its tokens.
func (k *Known) N() int32 { return int32(len(k.Tokens)) }

// Full tells a full block from a tail.
func (k *Known) Full() bool { return len(k.Tokens) == ieg.BlockTokens }

// Extent is its place, for an engine.
func (k *Known) Extent() ieg.Extent {
	return ieg.Extent{Start: k.Start, N: k.N(), Codec: k.Codec, Bytes: k.Bytes, Digest: k.Digest, Pages: k.Pages}
}

// HostConfig describes the arena and how its blocks are valued.
type HostConfig struct {
	Pages     int32
	PageBytes int64
	Policy    Policy
}

// Host is the ledger of the blocks below the device: which of them lie on
// which pages of the arena, who holds them, which of them the NVMe tier has.
// It decides what gives way; it moves nothing.
type Host struct {
	cfg      HostConfig
	free     []ieg.Page
	blocks   map[ieg.BlockHash]*Known // roots included
	roots    []*Known                 // what first blocks follow; without tokens
	resident []*Known
	leases   []*Lease
	next     LeaseID
	turn     uint64 // of the sampling
	rates    Rates
	events   *Events
	// Evicted counts blocks that gave way, and of them those without a copy.
	Evicted, Lost int64
}

// NewHost returns the ledger of an empty arena.
func NewHost(cfg HostConfig) *Host {
	h := &Host{cfg: cfg, blocks: map[ieg.BlockHash]*Known{}}
	for p := cfg.Pages; p > 0; p-- {
		h.free = append(h.free, ieg.Page(p-1))
	}
	return h
}

// Tell makes the ledger tell of blocks that the tiers got and lost.
func (h *Host) Tell(v *Events) { h.events = v }

// Pages is the size of the arena, Free the number of pages nobody uses.
func (h *Host) Pages() int32 { return h.cfg.Pages }

// Free is the number of pages that hold nothing.
func (h *Host) Free() int32 { return int32(len(h.free)) }

// Resident is the number of blocks in the arena.
func (h *Host) Resident() int { return len(h.resident) }

// Get finds a block.
func (h *Host) Get(name ieg.BlockHash) *Known {
	if k := h.blocks[name]; k != nil && len(k.Tokens) > 0 {
		return k
	}
	return nil
}

// pages is the number of pages that bytes take.
func (h *Host) pages(bytes int64) int {
	return int((bytes + h.cfg.PageBytes - 1) / h.cfg.PageBytes)
}

// Fits tells whether so many bytes have room without anything giving way.
func (h *Host) Fits(bytes int64) bool { return h.pages(bytes) <= len(h.free) }

// Path is the longest part of a text that is known below the device.
type Path struct {
	Blocks []*Known // in order, each the parent of the next
	N      int32    // tokens of the text that they cover
	Host   int32    // the first of them that lie in the arena without a gap
	more   bool     // the text has more tokens than are covered, and could be
}

// Left is the number of tokens of the last block that the text does not share,
// though it goes on.
func (p *Path) Left() int32 {
	if len(p.Blocks) == 0 || !p.more {
		return 0
	}
	k := p.Blocks[len(p.Blocks)-1]
	return k.Start + k.N() - p.N
}

// Find looks for the longest known beginning of tokens: full blocks by their
// names in chain, then the block after them that agrees longest, be it whole
// or not. At most len(tokens)-1 are ever found: the last token's logits are
// needed. It keeps the order of p.Blocks' memory.
func (h *Host) Find(root ieg.BlockHash, chain []ieg.BlockHash, tokens []ieg.Token, p Path) Path {
	p = Path{Blocks: p.Blocks[:0]}
	at := h.blocks[root]
	if at == nil {
		return p
	}
	most := int32(len(tokens)) - 1
	for _, name := range chain {
		k := h.blocks[name]
		if k == nil || !k.usable() || p.N+ieg.BlockTokens > most {
			break
		}
		p.Blocks = append(p.Blocks, k)
		p.N += ieg.BlockTokens
		at = k
	}
	if k, n := at.closest(tokens[p.N:most]); k != nil {
		p.Blocks = append(p.Blocks, k)
		p.N += n
	}
	p.more = p.N < most
	for _, k := range p.Blocks {
		if k.State != HostResident {
			break
		}
		p.Host = min(k.Start+k.N(), p.N)
	}
	return p
}

// usable tells that its bytes are, or may be brought, in the arena.
func (k *Known) usable() bool {
	return len(k.Tokens) > 0 && !k.Dropped && (k.State == HostResident || k.Disk)
}

// closest is the child that agrees longest with what follows; among equals one
// in the arena wins, then the newest. Only the newest KidsTried are tried.
func (k *Known) closest(rest []ieg.Token) (best *Known, n int32) {
	for i := range min(len(k.kids), KidsTried) {
		kid := k.kids[len(k.kids)-1-i]
		if !kid.usable() {
			continue
		}
		c := common(kid.Tokens, rest)
		if c > n || c == n && c > 0 && kid.State == HostResident && best.State != HostResident {
			best, n = kid, c
		}
	}
	return best, n
}

// enter returns the block of that name, made if it is new and its parent, or
// root, is known or can be made.
func (h *Host) enter(b ieg.Block) *Known {
	if k := h.blocks[b.Hash]; k != nil {
		return k
	}
	up := h.blocks[b.Parent]
	if len(b.Tokens) == 0 || len(b.Tokens) > ieg.BlockTokens || up != nil && !up.precedes(&b) {
		return nil
	}
	if up == nil {
		if b.Parent != b.Root || b.Start != 0 {
			return nil
		}
		up = &Known{Block: ieg.Block{Hash: b.Root, Root: b.Root}}
		h.blocks[b.Root] = up
		h.roots = append(h.roots, up)
	}
	k := &Known{Block: b, parent: up}
	up.kids = append(up.kids, k)
	h.blocks[b.Hash] = k
	return k
}

// precedes tells whether b may follow k, a root or a full block.
func (k *Known) precedes(b *ieg.Block) bool {
	return k.Full() == (b.Parent != b.Root) && k.Root == b.Root && b.Start == k.Start+k.N()
}

// Promise takes in what the NVMe tier says it has of a text. The blocks are
// wanted until the caller says otherwise.
func (h *Host) Promise(s ieg.Stored) (blocks []*Known) {
	for _, b := range s.Blocks {
		if b.Bytes < 1 {
			break
		}
		k := h.enter(b)
		if k == nil || k.Start != b.Start || len(k.Tokens) != len(b.Tokens) {
			break
		}
		k.Disk, k.Kept = true, Kept{b.Codec, b.Bytes, b.Digest}
		k.wanted++
		blocks = append(blocks, k)
	}
	return blocks
}

// Want notes that a live sequence will need the blocks of a path, or with
// delta -1 that it no longer does: blocks that nobody wants and that are
// nowhere are forgotten.
func (h *Host) Want(blocks []*Known, delta int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		k := blocks[i]
		if k.wanted += delta; k.wanted < 0 {
			panic("kv: a block is wanted by fewer than none")
		}
		if delta < 0 {
			h.prune(k)
		}
	}
}

// Keep notes that a row goes on from blocks, so that what it computes next can
// be entered behind them, or with delta -1 that it no longer does.
func (h *Host) Keep(blocks []*Known, delta int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		k := blocks[i]
		if k.kept += delta; k.kept < 0 {
			panic("kv: a block is kept by fewer rows than none")
		}
		if delta < 0 {
			h.prune(k)
		}
	}
}

// prune forgets a block that is of no use, and then its parents.
func (h *Host) prune(k *Known) {
	for k != nil && k.State == HostAbsent && k.wanted == 0 && k.kept == 0 && k.held == 0 && len(k.kids) == 0 && !k.Storing && h.blocks[k.Hash] == k {
		delete(h.blocks, k.Hash)
		up, list := k.parent, &h.roots
		if up != nil {
			list = &up.kids
		}
		*list = slices.DeleteFunc(*list, func(o *Known) bool { return o == k })
		k = up
	}
}

// Begin reserves pages for a block that is to be written to the arena; other
// blocks give way if they must. press tells that it can't wait: then blocks that
// are queued for the NVMe tier may give way too, and are lost. Nil: it is there
// already, its parent is not known, or there is no room.
func (h *Host) Begin(b ieg.Block, now ieg.Time, press bool) *Known {
	k := h.blocks[b.Hash]
	if k != nil && k.State != HostAbsent {
		return nil
	}
	if k == nil {
		if k = h.enter(b); k == nil {
			return nil
		}
	}
	k.wanted++ // what gives way must not be its own parent
	n := h.pages(b.Bytes)
	ok := h.reserve(n, k, now, press)
	k.wanted--
	if !ok {
		h.prune(k)
		return nil
	}
	k.Codec, k.Bytes, k.Digest = b.Codec, b.Bytes, b.Digest
	k.Pages = append([]ieg.Page(nil), h.free[len(h.free)-n:]...)
	h.free = h.free[:len(h.free)-n]
	k.State = HostFilling
	return k
}

// reserve makes n pages free; the parents of keep stay.
func (h *Host) reserve(n int, keep *Known, now ieg.Time, press bool) bool {
	if n > int(h.cfg.Pages) {
		return false
	}
	for len(h.free) < n {
		v := h.victim(keep, now, press)
		if v == nil {
			return false
		}
		h.Evict(v)
	}
	return true
}

// Fill makes a block resident whose bytes are all there, with their digest.
// Tails that it continues have become superfluous and are dropped.
func (h *Host) Fill(k *Known, digest uint64, now ieg.Time) {
	if k.State != HostFilling {
		panic(fmt.Sprintf("kv: block %s is filled in state %d", k.Hash, k.State))
	}
	k.State, k.Digest, k.at = HostResident, digest, len(h.resident)
	h.resident = append(h.resident, k)
	h.events.stored(ieg.TierHost, &k.Block)
	k.heat.Touch(now)
	if k.Dropped {
		h.leave(k)
		return
	}
	for i := len(k.parent.kids) - 1; i >= max(0, len(k.parent.kids)-KidsTried); i-- {
		t := k.parent.kids[i]
		if t != k && t.N() < k.N() && t.State == HostResident && t.held == 0 && t.wanted == 0 && len(t.kids) == 0 &&
			common(t.Tokens, k.Tokens) == t.N() {
			h.Evict(t)
		}
	}
}

// Abandon gives up a block that was being filled.
func (h *Host) Abandon(k *Known) {
	if k.State != HostFilling {
		panic(fmt.Sprintf("kv: block %s is abandoned in state %d", k.Hash, k.State))
	}
	h.giveBack(k)
}

// Evict takes a resident block that nobody holds off its pages.
func (h *Host) Evict(k *Known) {
	if k.State != HostResident || k.held > 0 {
		panic(fmt.Sprintf("kv: block %s is evicted in state %d, held by %d", k.Hash, k.State, k.held))
	}
	h.takeOff(k)
}

// takeOff takes a resident block off its pages.
func (h *Host) takeOff(k *Known) {
	last := len(h.resident) - 1
	h.resident[k.at] = h.resident[last]
	h.resident[k.at].at = k.at
	h.resident = h.resident[:last]
	h.events.removed(ieg.TierHost, k.Root, k.Hash)
	h.Evicted++
	if !k.Disk {
		h.Lost++
	}
	h.giveBack(k)
}

func (h *Host) giveBack(k *Known) {
	h.free = append(h.free, k.Pages...)
	k.Pages, k.State, k.Dropped, k.Queued = nil, HostAbsent, false, false
	h.prune(k)
}

// Touch notes that a text which begins with these blocks was used.
func (h *Host) Touch(blocks []*Known, now ieg.Time) {
	for _, k := range blocks {
		k.heat.Touch(now)
	}
}

// OnDisk notes that the NVMe tier has a block, and how.
func (h *Host) OnDisk(k *Known, kept Kept) {
	k.Disk, k.Kept = true, kept
	h.events.stored(ieg.TierNVMe, &k.Block)
}

// OffDisk notes that it has not.
func (h *Host) OffDisk(k *Known) {
	if k.Disk {
		h.events.removed(ieg.TierNVMe, k.Root, k.Hash)
	}
	k.Disk = false
	h.prune(k)
}

// Each calls f for every block in the arena, in no particular but a fixed
// order.
func (h *Host) Each(f func(*Known)) {
	for _, k := range h.resident {
		f(k)
	}
}
