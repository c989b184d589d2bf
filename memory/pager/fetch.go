package pager

import (
	"errors"

	"ieg"
	"ieg/memory/tier"
)

// read is one of the workers that do the fetches.
func (p *Pager) read() {
	for {
		jobs := p.next(&p.fetches, 0)
		if jobs == nil {
			return
		}
		for i := range jobs {
			p.finish(&jobs[i], p.fetch(&jobs[i]))
		}
	}
}

// fetch brings a block that Find promised.
func (p *Pager) fetch(m *ieg.Move) outcome {
	if !p.promised(&m.Block) {
		return outcome{err: "the block is not in the tier any more", gone: true}
	}
	h := p.acquire()
	if h == nil {
		return outcome{err: p.why()}
	}
	defer p.release(h)
	start := p.cfg.Now()
	pages := p.cfg.Arena.Parts(m.Pages, int64(len(m.Pages))*int64(p.cfg.Arena.PageBytes()))
	dst := p.cfg.Arena.Parts(m.Pages, m.Block.Bytes)
	got, err := h.store.Get(p.ctx, m.Block.Hash, pages)
	took := p.cfg.Now().Sub(start)
	if err != nil {
		p.countLost(h)
	}
	switch {
	case errors.Is(err, tier.ErrMissing):
		p.forget(h, m.Block.Hash)
		return outcome{err: "the block is not in the tier any more", gone: true}
	case err != nil:
		p.lose(h, err)
		return outcome{err: err.Error()}
	case !same(&got, &m.Block):
		p.corrupt(h, m.Block.Hash, "it is not the block that was stored")
		return outcome{err: "the block is another one than promised", gone: true}
	case p.digest(dst) != m.Block.Digest:
		p.corrupt(h, m.Block.Hash, "its bytes are not what its digest says")
		return outcome{err: "the block's bytes are wrong", gone: true}
	}
	p.mu.Lock()
	p.count.read.measure(m.Block.Bytes, took)
	p.mu.Unlock()
	return kept(m.Block.Codec, m.Block.Bytes, m.Block.Digest, max(p.cfg.Now().Sub(start), 1))
}

// promised tells whether the store should have a block as it is named.
func (p *Pager) promised(b *ieg.Block) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref, ok := p.known.index.Get(b.Hash)
	if !ok {
		return false
	}
	r := p.known.records.at(ref)
	return p.known.index.Entry(ref).Bytes == b.Bytes && r.codec == b.Codec && r.digest == b.Digest
}

func same(a, b *ieg.Block) bool {
	return a.Hash == b.Hash && a.Codec == b.Codec && a.Bytes == b.Bytes && a.Digest == b.Digest
}

func (p *Pager) digest(parts [][]byte) (sum uint64) {
	for _, b := range parts {
		sum = p.cfg.Arena.Digest(sum, b)
	}
	return sum
}

// corrupt gives up a block of the store that is wrong.
func (p *Pager) corrupt(h *handle, hash ieg.BlockHash, what string) {
	p.cfg.Log.Warn("a stored KV block is wrong and was dropped", "block", hash, "what", what)
	p.mu.Lock()
	p.count.corrupt++
	p.mu.Unlock()
	p.forget(h, hash)
}

// forget drops a block from store and index. It does not wait for the writer:
// the worst is a block that is known and missing, which is then gone.
func (p *Pager) forget(h *handle, hash ieg.BlockHash) {
	p.remove(h, []ieg.BlockHash{hash})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.drop(hash)
}

func (k *known) drop(hash ieg.BlockHash) {
	if ref, ok := k.index.Get(hash); ok {
		k.index.Remove(ref)
	}
}
