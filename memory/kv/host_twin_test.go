package kv_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"ieg"
	"ieg/memory/kv"
)

// hostTwin is the ledger without cleverness: a list of blocks that each carry
// their whole text, and a list of leases. Everything is searched for, and
// summed up anew.
type hostTwin struct {
	cfg    kv.HostConfig
	rates  kv.Rates
	blocks []*hostBlock // the newest last
	leases []hostLease
}

type hostBlock struct {
	root    ieg.BlockHash
	text    []ieg.Token // from the beginning of the text to its end
	name    ieg.BlockHash
	state   kv.HostState
	bytes   int64
	disk    bool
	kept    int64 // bytes on disk
	dropped bool
	queued  bool // for the NVMe tier, since it came to the arena
	wanted  int
	touched []ieg.Time
}

type hostLease struct {
	id     kv.LeaseID
	kind   kv.LeaseKind
	owner  uint64
	epoch  ieg.Epoch
	expiry ieg.Time
	blocks []*hostBlock
}

func (b *hostBlock) start() int { return (len(b.text) - 1) / ieg.BlockTokens * ieg.BlockTokens }

func (w *hostTwin) get(root ieg.BlockHash, text []ieg.Token) *hostBlock {
	for _, b := range w.blocks {
		if b.root == root && slices.Equal(b.text, text) {
			return b
		}
	}
	return nil
}

func (w *hostTwin) kids(b *hostBlock) (kids []*hostBlock) {
	for _, k := range w.blocks {
		if k.root == b.root && k.start() == len(b.text) && slices.Equal(k.text[:k.start()], b.text) {
			kids = append(kids, k)
		}
	}
	return kids
}

func (w *hostTwin) held(b *hostBlock) (n int) {
	for _, l := range w.leases {
		for _, k := range l.blocks {
			if k == b {
				n++
			}
		}
	}
	return n
}

// used is how often steps and moves hold a block.
func (w *hostTwin) used(b *hostBlock) int {
	var pins hostTwin
	for _, l := range w.leases {
		if l.kind == kv.LeasePin {
			pins.leases = append(pins.leases, l)
		}
	}
	return w.held(b) - pins.held(b)
}

func (w *hostTwin) pages(bytes int64) int {
	return int(math.Ceil(float64(bytes) / float64(w.cfg.PageBytes)))
}

func (w *hostTwin) free() int {
	n := int(w.cfg.Pages)
	for _, b := range w.blocks {
		if b.state != kv.HostAbsent {
			n -= w.pages(b.bytes)
		}
	}
	return n
}

// settle lets go of what was dropped and nobody holds, and forgets what is of
// no use, until nothing changes.
func (w *hostTwin) settle() {
	for again := true; again; {
		again = false
		for i, b := range w.blocks {
			if b.dropped && b.state == kv.HostResident && w.used(b) == 0 {
				b.state, b.dropped, again = kv.HostAbsent, false, true
			}
			if b.state == kv.HostAbsent && b.wanted == 0 && w.held(b) == 0 && len(w.kids(b)) == 0 {
				w.blocks = slices.Delete(w.blocks, i, i+1)
				again = true
				break
			}
		}
	}
}

// enter returns the block at the end of a text, made if the one before it is
// known.
func (w *hostTwin) enter(root ieg.BlockHash, text []ieg.Token) *hostBlock {
	if b := w.get(root, text); b != nil {
		return b
	}
	b := &hostBlock{root: root, text: text, name: lastBlock(root, text).Hash}
	if at := b.start(); at > 0 && w.get(root, text[:at]) == nil {
		return nil
	}
	w.blocks = append(w.blocks, b)
	return b
}

func (b *hostBlock) usable() bool { return !b.dropped && (b.state == kv.HostResident || b.disk) }

// find is the longest known beginning of a text.
func (w *hostTwin) find(root ieg.BlockHash, text []ieg.Token) (path []*hostBlock, n, host int) {
	most := len(text) - 1
	for n+ieg.BlockTokens <= most {
		b := w.get(root, text[:n+ieg.BlockTokens])
		if b == nil || !b.usable() {
			break
		}
		path, n = append(path, b), n+ieg.BlockTokens
	}
	var best *hostBlock
	long := 0
	for _, b := range w.blocks {
		if b.root != root || b.start() != n || !slices.Equal(b.text[:n], text[:n]) || !b.usable() {
			continue
		}
		c := 0
		for c < len(b.text)-n && n+c < most && b.text[n+c] == text[n+c] {
			c++
		}
		switch {
		case c == 0 || c < long:
		case c > long, b.state == kv.HostResident, best.state != kv.HostResident:
			best, long = b, c // a later one is newer
		}
	}
	if best != nil {
		path, n = append(path, best), n+long
	}
	for _, b := range path {
		if b.state != kv.HostResident {
			break
		}
		host = min(len(b.text), n)
	}
	return path, n, host
}

// worth is what is lost with a block, by the sum over its uses.
func (w *hostTwin) worth(b *hostBlock, now ieg.Time) float64 {
	if w.cfg.Policy == kv.LRU {
		return float64(slices.Max(b.touched))
	}
	uses := 0.0
	for _, t := range b.touched {
		uses += math.Pow(0.5, float64(now.Sub(t))/float64(kv.HalfLife))
	}
	seconds := float64(b.kept) * w.rates.Byte
	if !b.disk {
		seconds = 0
		for i := b.start(); i < len(b.text); i++ {
			seconds += w.rates.Token + (float64(i)+0.5)*w.rates.Pair
		}
	}
	return uses * seconds / float64(b.bytes)
}

// mayGo lists what may give way to a block: resident, held by nobody, with
// nothing of the arena after it, and not before the block itself.
func (w *hostTwin) mayGo(keep *hostBlock, press bool) (list []*hostBlock) {
	for _, b := range w.blocks {
		covers := slices.ContainsFunc(w.kids(b), func(k *hostBlock) bool { return k.state != kv.HostAbsent })
		above := b.root == keep.root && len(b.text)%ieg.BlockTokens == 0 && len(b.text) < len(keep.text) && slices.Equal(b.text, keep.text[:len(b.text)])
		if b.state == kv.HostResident && b != keep && w.held(b) == 0 && (b.wanted == 0 && (press || !b.queued) || b.disk) && !covers && !above {
			list = append(list, b)
		}
	}
	return list
}

// giveWay evicts what gone tells gave way in the ledger, one by one, and proves
// that each time it was worth least, within rounding.
func (w *hostTwin) giveWay(n int, keep *hostBlock, gone map[ieg.BlockHash]bool, now ieg.Time, press bool) (ok bool, err error) {
	for w.free() < n {
		list := w.mayGo(keep, press)
		if len(list) == 0 {
			return false, nil
		}
		if spare := slices.DeleteFunc(slices.Clone(list), func(b *hostBlock) bool { return b.wanted > 0 }); len(spare) > 0 {
			list = spare
		}
		least := math.Inf(1)
		for _, b := range list {
			least = min(least, w.worth(b, now))
		}
		i := slices.IndexFunc(list, func(b *hostBlock) bool { return gone[b.name] && w.worth(b, now) <= least*(1+1e-9) })
		if i < 0 {
			return false, fmt.Errorf("of %d blocks that could give way none that did is worth %g, the least", len(list), least)
		}
		list[i].state = kv.HostAbsent
		delete(gone, list[i].name)
	}
	return true, nil
}

// end ends the leases that f tells.
func (w *hostTwin) end(f func(*hostLease) bool) {
	w.leases = slices.DeleteFunc(w.leases, func(l hostLease) bool { return f(&l) })
}

// equal compares all there is with the ledger.
func (w *hostTwin) equal(h *kv.Host) error {
	if err := h.Check(); err != nil {
		return err
	}
	if int(h.Free()) != w.free() {
		return fmt.Errorf("%d pages are free; the twin has %d", h.Free(), w.free())
	}
	known, resident := 0, map[ieg.BlockHash]bool{}
	for _, k := range h.Ledger().Blocks {
		if len(k.Block.Tokens) > 0 {
			known++
		}
	}
	h.Each(func(k *kv.Known) { resident[k.Hash] = true })
	if known != len(w.blocks) {
		return fmt.Errorf("%d blocks are known; the twin knows %d", known, len(w.blocks))
	}
	for _, b := range w.blocks {
		k := h.Get(b.name)
		if k == nil || k.State != b.state || k.Disk != b.disk || k.Dropped != b.dropped || k.Held() != (w.held(b) > 0) || resident[b.name] != (b.state == kv.HostResident) {
			return fmt.Errorf("block %s is %+v; the twin's is %+v", b.name, k, *b)
		}
		if b.state != kv.HostAbsent && len(k.Pages) != w.pages(b.bytes) {
			return fmt.Errorf("block %s has %d pages for %d bytes", b.name, len(k.Pages), b.bytes)
		}
	}
	for kind := kv.LeaseStep; kind <= kv.LeasePin; kind++ {
		n := 0
		for _, l := range w.leases {
			if l.kind == kind {
				n++
			}
		}
		if h.Leases(kind) != n {
			return fmt.Errorf("%d leases for a %s; the twin has %d", h.Leases(kind), kind, n)
		}
	}
	return nil
}

// next is when the next lease ends.
func (w *hostTwin) next() ieg.Time {
	at := ieg.Never
	for _, l := range w.leases {
		at = min(at, l.expiry)
	}
	return at
}

const minute = ieg.Time(time.Minute)
