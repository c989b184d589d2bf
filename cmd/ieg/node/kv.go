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
		NVMe: admin.KVNVMe{Why: k.cfg.NVMeOff, Folder: k.cfg.Folder, Encrypted: k.cfg.Encrypted},
	}
	if k.cfg.Pager == nil {
		return out
	}
	p, v := k.cfg.Pager.Status(), &out.NVMe
	v.Up, v.Why = p.Up, p.Why
	v.Blocks, v.Tokens, v.Bytes, v.Size, v.Disk, v.Free, v.WrittenToday = p.Blocks, p.Tokens, p.Bytes, p.Size, p.Disk, p.Free, p.WrittenToday
	v.Evicted, v.Refused, v.Corrupt, v.Broken = p.Evicted, p.Refused, p.Corrupt, p.Broken
	v.ReadRate, v.WriteRate, v.InFlight = p.ReadRate, p.WriteRate, p.InFlight
	return out
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

// FlushKV waits until nothing waits to be saved.
func (k *KV) FlushKV(ctx context.Context, f admin.KVFlush) (out admin.KVFlushed, err error) {
	if err := k.there(); err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, f.Within)
	defer cancel()
	began := time.Now()
	var first, last ieg.KVCounts
	done := false
	look := func(m *kernel.Machine) { done, last = m.Flushed(), m.Status().KV.Counts }
	tick := time.NewTicker(FlushPollEvery)
	defer tick.Stop()
	for n := 0; !done; n++ {
		if err := k.inspect(ctx, look); err != nil && ctx.Err() == nil {
			return out, err
		}
		if n == 0 {
			first = last
		}
		select {
		case <-ctx.Done():
			return out, fmt.Errorf("%w: KV is still being saved after %v", ieg.ErrDeadline, time.Since(began).Round(time.Millisecond))
		case <-tick.C:
		}
	}
	out.Saved, out.Stored, out.Took = last.SavedBytes-first.SavedBytes, last.StoredBytes-first.StoredBytes, time.Since(began)
	if nv := k.KVTiers().NVMe; !nv.Up {
		out.Note = "in host memory only: " + nv.Why
	}
	return out, nil
}
