package pager

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/tier"
)

// health is whether the store can be used; Pager.mu guards it.
type health struct {
	store *handle // nil: down
	up    bool    // all that it holds is known, and it may be written
	why   string  // when not up
	down  bool    // it can't be used and is tried again; else, when not up, it is on its way
	told  string  // what State was told: "", "up" or "down"
	lost  chan struct{}

	full   fullness
	doomed map[ieg.BlockHash]struct{} // to be deleted
}

// handle is an open store and who uses it: it is closed when nobody does.
type handle struct {
	store   tier.Store
	written int64
	gone    int64 // blocks it had lost, as far as they are counted
	users   int
	lost    bool
	idle    chan struct{} // closed when lost and unused
}

// acquire is the store, to be released; nil when it is down.
func (p *Pager) acquire() *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.health.store
	if h != nil {
		h.users++
	}
	return h
}

func (p *Pager) release(h *handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.users--; h.lost && h.users == 0 {
		close(h.idle)
	}
}

func (p *Pager) why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health.says()
}

// says is why, for who asks for a move.
func (s *health) says() string {
	if s.down {
		return "the tier is down: " + s.why
	}
	return s.why
}

// reason is an error without the words that the tier can't be used: that it is
// down says as much.
func reason(err error) string {
	text, unusable := err.Error(), tier.ErrUnusable.Error()+": "
	for strings.HasPrefix(text, unusable) {
		text = strings.TrimPrefix(text, unusable)
	}
	return text
}

// lose ends the use of a store after an error that says that it can't be used;
// other errors are of one call.
func (p *Pager) lose(h *handle, err error) {
	if !errors.Is(err, tier.ErrUnusable) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.lost {
		return
	}
	p.part(h)
	p.down(err)
	select {
	case p.health.lost <- struct{}{}:
	default:
	}
}

// part takes a store away from who would use it next; p.mu is held.
func (p *Pager) part(h *handle) {
	h.lost = true
	p.health.store, p.health.up = nil, false
	if h.users == 0 {
		close(h.idle)
	}
}

// down says that there is no store; p.mu is held.
func (p *Pager) down(err error) {
	p.health.down, p.health.why = true, reason(err)
	p.failQueued(p.health.says())
	p.budget.rouse()
	if p.health.told != "down" {
		p.health.told = "down"
		p.cfg.Log.Warn("the NVMe tier of KV can't be used; it is tried again", "why", p.health.why)
		p.notify(notice{state: true, why: p.health.says()})
	}
}

// keep opens the store, as often as it is lost.
func (p *Pager) keep() {
	pause := retryMin
	for {
		store, err := p.cfg.Open()
		if err != nil {
			p.mu.Lock()
			p.down(err)
			p.mu.Unlock()
		} else {
			began := time.Now()
			p.serve(store)
			if time.Since(began) > retryMax {
				pause = retryMin
			}
		}
		select {
		case <-p.ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, retryMax)
	}
}

// serve lets a store be used until it is lost or the Pager closes.
func (p *Pager) serve(store tier.Store) {
	usage := store.Usage()
	h := &handle{store: store, written: usage.Written, idle: make(chan struct{})}
	p.mu.Lock()
	p.budget.day = usage.Day
	select {
	case <-p.health.lost: // of the one before
	default:
	}
	p.known.reset(p)
	p.health.store, p.health.down, p.health.why = h, false, "the tier is being read"
	p.health.doomed = map[ieg.BlockHash]struct{}{}
	p.health.full = fullness{}
	p.mu.Unlock()
	p.countLost(h)
	if err := p.readAll(h); err != nil {
		p.lose(h, fmt.Errorf("%w: %w", tier.ErrUnusable, err))
	} else {
		p.ready(h)
	}
	p.watch(h)
	p.mu.Lock()
	if !h.lost {
		p.part(h)
		p.health.why = "the tier is closed"
	}
	p.mu.Unlock()
	<-h.idle
	if err := store.Close(); err != nil && p.ctx.Err() == nil {
		p.cfg.Log.Debug("closing a tier that can't be used", "err", err)
	}
}

// countLost counts the blocks that the store has lost since it was asked last.
func (p *Pager) countLost(h *handle) {
	n := h.store.Usage().Lost
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.corrupt += max(n-h.gone, 0)
	h.gone = max(n, h.gone)
}

// readAll learns what the store holds.
func (p *Pager) readAll(h *handle) error {
	var bad []ieg.BlockHash
	unix := time.Now().Unix()
	err := h.store.Each(p.ctx, func(m tier.Meta) error {
		b := ieg.Block{Hash: m.Hash, Parent: m.Parent, Root: m.Root, Start: m.Start, Codec: m.Codec, Bytes: m.Bytes, Digest: m.Digest}
		age := time.Duration(max(unix-m.Stored, 0)) * time.Second
		p.mu.Lock()
		defer p.mu.Unlock()
		if m.Codec >= ieg.NumCodecs || !p.known.add(&b, m.N, m.Stored, 1, p.cfg.Now().Add(-age)) {
			bad = append(bad, m.Hash)
			p.count.corrupt++
		}
		return p.ctx.Err()
	})
	if err != nil {
		return err
	}
	if len(bad) > 0 {
		p.cfg.Log.Warn("stored KV blocks that can't be part of a text were dropped", "blocks", len(bad))
		p.remove(h, bad)
	}
	return nil
}

// ready lets blocks be stored.
func (p *Pager) ready(h *handle) {
	p.writing.take()
	defer p.writing.pass()
	p.mu.Lock()
	over := p.known.index.Bytes() - p.cfg.Size
	p.mu.Unlock()
	p.evict(h, over)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.before = nil
	if h.lost {
		return
	}
	p.health.up, p.health.why, p.health.told = true, "", "up"
	p.notify(notice{state: true, up: true})
}

// watch deletes what is too old, and looks for room when there was none, until
// the store is lost or the Pager closes.
func (p *Pager) watch(h *handle) {
	every := sweepMax
	if p.cfg.TTL > 0 {
		every = min(max(p.cfg.TTL/16, sweepMin), sweepMax)
	}
	tick, probe := time.NewTicker(every), time.NewTicker(probeEvery)
	defer tick.Stop()
	defer probe.Stop()
	if p.current(h) {
		p.sweep(h)
	}
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.health.lost:
			return
		case <-tick.C:
			if p.current(h) {
				p.sweep(h)
			}
		case <-probe.C:
			p.probe()
		}
	}
}

func (p *Pager) current(h *handle) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health.store == h
}

// sweep deletes what is too old, and what could not be deleted before.
func (p *Pager) sweep(h *handle) {
	p.writing.take()
	defer p.writing.pass()
	if p.cfg.TTL > 0 {
		oldest := time.Now().Add(-p.cfg.TTL).Unix()
		p.dropWhere(h, func(_ *kv.Entry, r *record) bool { return int64(r.stored) <= oldest })
	}
	var again []ieg.BlockHash
	p.mu.Lock()
	for d := range p.health.doomed {
		if _, ok := p.known.index.Get(d); !ok {
			again = append(again, d)
		}
	}
	clear(p.health.doomed)
	p.mu.Unlock()
	p.remove(h, again)
}

// dropWhere deletes all blocks that match; it is the caller's turn to write.
func (p *Pager) dropWhere(h *handle, match func(*kv.Entry, *record) bool) (blocks int, bytes int64) {
	for from := kv.Ref(1); ; from += sweepLook {
		var out []ieg.BlockHash
		p.mu.Lock()
		x := p.known.index
		for ref := from; ref < min(from+sweepLook, x.Refs()); ref++ {
			if !x.Has(ref) {
				continue
			}
			if e := x.Entry(ref); match(&e, p.known.records.at(ref)) {
				out = append(out, e.Hash)
				bytes += e.Bytes
				x.Remove(ref)
			}
		}
		last := from+sweepLook >= x.Refs()
		if len(out) > 0 {
			p.health.full.until = 0
		}
		p.mu.Unlock()
		blocks += len(out)
		p.remove(h, out)
		if last {
			return blocks, bytes
		}
	}
}
