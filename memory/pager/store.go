package pager

import (
	"cmp"
	"errors"
	"time"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/tier"
)

// write is the one worker that does the stores.
func (p *Pager) write() {
	giveWay()
	for {
		p.pace()
		jobs := p.next(&p.stores, batchBytes)
		if jobs == nil {
			return
		}
		p.storeBatch(jobs)
		p.mu.Lock()
		p.flush.pass(len(jobs))
		p.mu.Unlock()
	}
}

// pace waits until the rate of writing allows another batch.
func (p *Pager) pace() {
	p.mu.Lock()
	pause := p.budget.pause(p.cfg.Now())
	wake := make(chan struct{})
	p.budget.wake = wake
	p.mu.Unlock()
	if pause == 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	}
}

// batch is what goes into one Put.
type batch struct {
	p     *Pager
	h     *handle
	items []tier.Item
	of    []*ieg.Move     // by item
	prep  []time.Duration // by item
	bytes int64
	twins []*ieg.Move // of blocks that another move of the batch stores
}

func (p *Pager) storeBatch(jobs []ieg.Move) {
	p.writing.take()
	defer p.writing.pass()
	h := p.acquire()
	if h == nil {
		for i := range jobs {
			p.finish(&jobs[i], outcome{err: p.why()})
		}
		return
	}
	defer p.release(h)
	b := &batch{p: p, h: h}
	p.growPacked(jobs)
	for i := range jobs {
		if o, over := b.prepare(&jobs[i]); over {
			p.finish(&jobs[i], o)
		}
	}
	b.fit()
	if len(b.items) > 0 {
		b.put()
	}
	for _, m := range b.twins {
		if o, over := p.admit(&m.Block); over {
			p.finish(m, o)
		} else {
			p.finish(m, outcome{err: "the same block was stored at the same time and failed"})
		}
	}
}

// prepare makes a move an item of the batch; over: it ends without.
func (b *batch) prepare(m *ieg.Move) (o outcome, over bool) {
	for _, other := range b.of {
		if other.Block.Hash == m.Block.Hash {
			b.twins = append(b.twins, m)
			return outcome{}, false
		}
	}
	p := b.p
	if o, over = p.admit(&m.Block); over {
		return o, true
	}
	start := p.cfg.Now()
	item := tier.Item{Block: m.Block, Data: p.cfg.Arena.Parts(m.Pages, m.Block.Bytes)}
	if p.digest(item.Data) != m.Block.Digest {
		p.cfg.Log.Warn("a KV block in host memory is wrong and was not stored", "block", m.Block.Hash)
		p.mu.Lock()
		p.count.broken++
		p.mu.Unlock()
		return outcome{err: "the block's bytes in host memory are wrong", gone: true}, true
	}
	p.pack(&item)
	b.items, b.of = append(b.items, item), append(b.of, m)
	b.prep = append(b.prep, p.cfg.Now().Sub(start))
	b.bytes += item.Block.Bytes
	return outcome{}, false
}

// admit ends a move whose block is stored already or is not to be.
func (p *Pager) admit(blk *ieg.Block) (o outcome, over bool) {
	if n := len(blk.Tokens); n == 0 || n > ieg.BlockTokens || kv.Name(blk.Parent, blk.Tokens) != blk.Hash {
		return outcome{err: "the block's name is not that of its tokens"}, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ref, ok := p.known.index.Get(blk.Hash); ok {
		r := p.known.records.at(ref)
		return kept(r.codec, p.known.index.Entry(ref).Bytes, r.digest, 0), true
	}
	now := p.cfg.Now()
	why := p.health.full.says(now)
	if why == "" {
		why = p.budget.refuses(blk.Bytes, int32(len(blk.Tokens)), p.known.index.Heat(blk.Parent, now))
		p.budget.last = cmp.Or(why, p.budget.last)
	}
	if why == "" && blk.Bytes > p.cfg.Size {
		why = "the block is larger than the tier"
	}
	if why != "" {
		p.count.refused++
	}
	return outcome{err: why}, why != ""
}

// fit makes room for the batch, or ends what does not fit.
func (b *batch) fit() {
	if len(b.items) == 0 {
		return
	}
	p := b.p
	room := b.h.store.Room()
	if room.Left < -ownRoom { // what is deleted would make none
		for _, m := range b.of {
			p.finish(m, outcome{err: errReserve.Error()})
		}
		b.full(errReserve)
		b.items = nil
		return
	}
	over := func() int64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.known.index.Bytes() + b.bytes - p.cfg.Size
	}
	if n := over(); n > 0 {
		p.evict(b.h, n)
	}
	for len(b.items) > 0 && over() > 0 {
		last := len(b.items) - 1
		b.bytes -= b.items[last].Block.Bytes
		p.finish(b.of[last], outcome{err: "the tier has no room: what it holds is pinned or being read"})
		b.items, b.of = b.items[:last], b.of[:last]
	}
	b.trim(room)
}

// evict deletes what is worth least until so many bytes are free; the caller has the turn to
// write.
func (p *Pager) evict(h *handle, bytes int64) {
	for bytes > 0 {
		var out []ieg.BlockHash
		p.mu.Lock()
		x := p.known.index
		for bytes > 0 && len(out) < evictBatch {
			ref := x.Victim(p.cfg.Now(), func(r kv.Ref) bool { return p.fetching[x.Entry(r).Hash] == 0 })
			if ref == kv.NoRef {
				bytes = 0
				break
			}
			e := x.Entry(ref)
			out = append(out, e.Hash)
			p.count.evicted++
			bytes -= e.Bytes
			x.Remove(ref)
		}
		p.mu.Unlock()
		p.remove(h, out)
	}
}

// put writes the batch.
func (b *batch) put() {
	p := b.p
	start := p.cfg.Now()
	err := b.h.store.Put(p.ctx, b.items)
	took := p.cfg.Now().Sub(start)
	usage := b.h.store.Usage()
	p.mu.Lock()
	spent := usage.Written - b.h.written
	b.h.written, p.budget.day = usage.Written, usage.Day
	if err == nil {
		spent, p.budget.last = max(spent, b.bytes), ""
		p.count.write.measure(b.bytes, took)
		p.health.full.pause, p.health.full.need, p.health.full.why = 0, 0, ""
	}
	p.budget.spend(max(spent, 0), p.cfg.Now())
	p.mu.Unlock()
	if err != nil {
		b.failed(err)
		return
	}
	b.stored(took)
}

// stored enters the blocks of a batch that was written.
func (b *batch) stored(took time.Duration) {
	p := b.p
	var foreign []ieg.BlockHash
	unix := time.Now().Unix()
	p.mu.Lock()
	for i := range b.items {
		blk := &b.items[i].Block
		share := time.Duration(float64(took) * float64(blk.Bytes) / float64(max(b.bytes, 1)))
		o := kept(blk.Codec, blk.Bytes, blk.Digest, max(b.prep[i]+share, 1))
		delete(p.health.doomed, blk.Hash)
		if !p.known.add(blk, int32(len(blk.Tokens)), unix, 1, p.cfg.Now()) {
			foreign = append(foreign, blk.Hash)
			o = outcome{err: "the block does not follow the one before it"}
		}
		p.end(b.of[i], o)
	}
	p.mu.Unlock()
	p.remove(b.h, foreign)
}

// failed ends the moves of a batch that was not written, or not whole: then
// what was is deleted, so that nothing is stored that is not known.
func (b *batch) failed(err error) {
	p := b.p
	hashes := make([]ieg.BlockHash, len(b.items))
	for i := range b.items {
		hashes[i] = b.items[i].Block.Hash
		p.finish(b.of[i], outcome{err: err.Error()})
	}
	if errors.Is(err, tier.ErrUnusable) {
		p.lose(b.h, err)
		return
	}
	p.remove(b.h, hashes)
	if errors.Is(err, tier.ErrFull) {
		b.giveWay(b.full(err))
	}
}

// remove deletes blocks from the store that the index does not know; what
// can't be deleted now is later.
func (p *Pager) remove(h *handle, hashes []ieg.BlockHash) {
	for len(hashes) > 0 {
		part := hashes[:min(len(hashes), deleteBatch)]
		hashes = hashes[len(part):]
		if err := h.store.Delete(p.ctx, part); err != nil {
			p.mu.Lock()
			for _, d := range part {
				p.health.doomed[d] = struct{}{}
			}
			p.mu.Unlock()
			p.lose(h, err)
		}
	}
}
