package node

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/kernel"
	"ieg/memory/kv"
	"ieg/memory/pager"
)

// KVConfig tells what lies below the devices.
type KVConfig struct {
	// HostOff and NVMeOff say why a tier isn't there; "" where it is.
	HostOff, NVMeOff string
	HostBytes        int64
	HostNotes        []string
	Folder           string
	Encrypted        bool
	Pager            *pager.Pager // nil: no NVMe tier
}

// KV is the node's KV as the admin socket sees it.
type KV struct {
	n     *Node
	cfg   KVConfig
	began time.Time

	mu   sync.Mutex
	pins map[ieg.BlockHash]*time.Timer // ends of pins in the NVMe tier
}

var _ admin.KV = (*KV)(nil)

// KV returns the node's KV as the admin socket sees it.
func (n *Node) KV(cfg KVConfig) *KV {
	return &KV{n: n, cfg: cfg, began: time.Now(), pins: map[ieg.BlockHash]*time.Timer{}}
}

// KVTiers tells how the tiers are doing.
func (k *KV) KVTiers() admin.KVTiers {
	st := k.n.Status()
	out := admin.KVTiers{
		Engines: st.Engines, Kernel: st.KV, Tokens: admin.CountKV(&st),
		Host: admin.KVHost{Off: k.cfg.HostOff, Bytes: k.cfg.HostBytes, Notes: k.cfg.HostNotes},
		NVMe: admin.KVNVMe{State: admin.NVMeOff, Why: k.cfg.NVMeOff, Folder: k.cfg.Folder, Encrypted: k.cfg.Encrypted},
	}
	if k.cfg.Pager == nil {
		return out
	}
	p, v := k.cfg.Pager.Status(), &out.NVMe
	v.Up, v.State, v.Why = p.Up, stateOf(&p), p.Why
	v.Blocks, v.Tokens, v.Bytes, v.Size, v.Disk, v.Free, v.WrittenToday = p.Blocks, p.Tokens, p.Bytes, p.Size, p.Disk, p.Free, p.WrittenToday
	v.Evicted, v.Refused, v.Corrupt, v.Broken = p.Evicted, p.Refused, p.Corrupt, p.Broken
	v.ReadRate, v.WriteRate, v.InFlight = p.ReadRate, p.WriteRate, p.InFlight
	return out
}

func stateOf(p *pager.Status) string {
	switch {
	case p.Up:
		return admin.NVMeUp
	case p.Down:
		return admin.NVMeDown
	}
	return admin.NVMeOpening
}

// there fails where there is nothing below the devices.
func (k *KV) there() error {
	if k.cfg.HostOff != "" {
		return fmt.Errorf("%w: KV stays on the devices: %s", ieg.ErrUnsupported, k.cfg.HostOff)
	}
	return nil
}

// inspect asks the machine something.
func (k *KV) inspect(ctx context.Context, f func(m *kernel.Machine)) error {
	ctx, cancel := context.WithTimeout(ctx, InspectWait)
	defer cancel()
	return k.n.loop.Inspect(ctx, f)
}

// PinKV keeps a block and those before it in the tiers that have them.
func (k *KV) PinKV(ctx context.Context, p admin.KVPin) (admin.KVPinned, error) {
	until := ieg.Never
	if p.For > 0 {
		until = k.n.loop.Now().Add(p.For)
	}
	return k.pin(ctx, p, kernel.KVControl{Kind: kernel.KVPin, Until: until})
}

// UnpinKV ends the pins of a block.
func (k *KV) UnpinKV(ctx context.Context, p admin.KVPin) (admin.KVPinned, error) {
	return k.pin(ctx, p, kernel.KVControl{Kind: kernel.KVUnpin})
}

func (k *KV) pin(ctx context.Context, p admin.KVPin, ev kernel.KVControl) (out admin.KVPinned, err error) {
	hash, host, err := k.named(ctx, p.Hash)
	if err != nil {
		return out, err
	}
	out.Hash, ev.Hash = hash, hash
	if host {
		out.Tiers = append(out.Tiers, ieg.TierHost.String())
		k.n.loop.Post(ev)
	}
	if k.pinDisk(hash, ev.Kind == kernel.KVPin, p.For) {
		out.Tiers = append(out.Tiers, ieg.TierNVMe.String())
	}
	if len(out.Tiers) == 0 {
		return out, noBlock(p.Hash)
	}
	return out, nil
}

// pinDisk pins a block in the NVMe tier for a time, 0 for ever, or no longer;
// false: it is not there.
func (k *KV) pinDisk(hash ieg.BlockHash, on bool, span time.Duration) bool {
	if k.cfg.Pager == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.pins[hash]; t != nil {
		t.Stop()
		delete(k.pins, hash)
	}
	there := k.cfg.Pager.Pin(hash, on)
	if !there || !on || span == 0 {
		return there
	}
	var end *time.Timer
	end = time.AfterFunc(span, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.pins[hash] == end { // else it was pinned anew
			delete(k.pins, hash)
			k.cfg.Pager.Pin(hash, false)
		}
	})
	k.pins[hash] = end
	return true
}

// DropKV forgets a tenant's KV, or all: on the devices as far as nobody uses
// it, in the arena, and in the NVMe tier.
func (k *KV) DropKV(ctx context.Context, d admin.KVDrop) (out admin.KVDropped, err error) {
	blocks := 0
	if err := k.inspect(ctx, func(m *kernel.Machine) { blocks = m.Status().KV.Blocks }); err != nil {
		return out, err
	}
	roots := k.roots(d)
	if d.All {
		k.n.loop.Post(kernel.KVControl{Kind: kernel.KVDropAll})
	}
	for _, root := range roots {
		k.n.loop.Post(kernel.KVControl{Kind: kernel.KVDrop, Hash: root})
	}
	// Behind the facts above: no store of what is dropped begins any more.
	if err := k.inspect(ctx, func(m *kernel.Machine) { blocks -= m.Status().KV.Blocks }); err != nil {
		return out, err
	}
	out.HostBlocks = max(blocks, 0)
	if k.cfg.Pager == nil {
		return out, nil
	}
	if d.All {
		out.NVMeBlocks, out.NVMeBytes, err = k.cfg.Pager.DropAll()
	}
	for i := 0; i < len(roots) && err == nil; i++ {
		var blocks int
		var bytes int64
		blocks, bytes, err = k.cfg.Pager.Drop(roots[i])
		out.NVMeBlocks, out.NVMeBytes = out.NVMeBlocks+blocks, out.NVMeBytes+bytes
	}
	if err != nil {
		err = fmt.Errorf("dropped in memory, not in %s: %w (%s); try again once it is up, or delete the folder", k.cfg.Folder, err, k.cfg.Pager.Status().Why)
	}
	return out, err
}

// roots are the names that the tenant's texts begin with, one per kind of KV
// that is loaded.
func (k *KV) roots(d admin.KVDrop) (roots []ieg.BlockHash) {
	if d.Tenant == nil {
		return nil
	}
	for _, info := range k.n.kinds() {
		if root := kv.Root(info.KVName, *d.Tenant); !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

// kinds describes the models; KV that can't leave its device has no name.
func (n *Node) kinds() (out []ieg.EngineInfo) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.models {
		out = append(out, m.info)
	}
	return out
}

// FlushKV waits until nothing waits to be saved, what the disk had no room for
// before included.
func (k *KV) FlushKV(ctx context.Context, f admin.KVFlush) (out admin.KVFlushed, err error) {
	if err := k.there(); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.Within)
	defer cancel()
	began := time.Now()
	if k.cfg.Pager != nil {
		k.cfg.Pager.Retry()
		k.n.loop.Post(kernel.KVControl{Kind: kernel.KVStore}) // before the first look
	}
	var first, last ieg.KVCounts
	var nv admin.KVNVMe
	var rest admin.KVFlushed // own: a look may end after this call
	done := false
	// One look: what is computed between two would seem to be left.
	look := func(m *kernel.Machine) {
		st := m.Status().KV
		last, done = st.Counts, m.Flushed()
		if coming := nv.State == admin.NVMeOpening || nv.Up && !st.NVMe; done {
			left(m, &rest)
			done = !coming || rest.Done()
		}
	}
	tick := time.NewTicker(FlushPollEvery)
	defer tick.Stop()
	for n := 0; !done; n++ {
		nv = k.KVTiers().NVMe
		err := k.inspect(ctx, look)
		if err != nil && ctx.Err() == nil {
			return out, err
		}
		if err == nil && n == 0 {
			first = last
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		if ctx.Err() != nil && (err != nil || !done) {
			return out, fmt.Errorf("%w: KV is still being saved after %v", ieg.ErrDeadline, time.Since(began).Round(time.Millisecond))
		}
	}
	out = rest
	out.Saved, out.Stored, out.Took = last.SavedBytes-first.SavedBytes, last.StoredBytes-first.StoredBytes, time.Since(began)
	out.Note = flushNote(&out, &nv)
	return out, nil
}

// left counts what did not get to the disk.
func left(m *kernel.Machine, out *admin.KVFlushed) {
	s := m.Snapshot()
	out.Left, out.LeftBytes, out.HostFull = 0, 0, false
	for i := range s.Engines {
		out.HostFull = out.HostFull || s.Engines[i].SaveBlocked
	}
	if s.KV.Host == nil {
		return
	}
	for i := range s.KV.Host.Blocks {
		if b := &s.KV.Host.Blocks[i]; len(b.Block.Tokens) > 0 && b.State == kv.HostResident && !b.Disk && !b.Dropped {
			out.Left++
			out.LeftBytes += b.Block.Bytes
		}
	}
}

// flushNote says why something is left, or will be.
func flushNote(out *admin.KVFlushed, nv *admin.KVNVMe) string {
	switch {
	case nv.State == admin.NVMeOff:
		return "the tier nvme is off: " + nv.Why
	case nv.State == admin.NVMeDown:
		return "the tier nvme is down and is tried again: " + nv.Why
	case !nv.Up || out.Left > 0 && nv.Why != "":
		return nv.Why
	case out.Left > 0:
		return "the tier nvme refused it: it had no room, or a bound of writing was reached"
	case out.HostFull:
		return "raise kv.host, or end what is running"
	}
	return ""
}
