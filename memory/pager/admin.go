package pager

import (
	"context"
	"errors"
	"slices"

	"ieg"
	"ieg/memory/kv"
)

// errDown: the tier can't be used.
var errDown = errors.New("the tier is down")

// Drop deletes all blocks of a root, and ends the stores of such that wait. It
// waits for the batch that is being written.
func (p *Pager) Drop(root ieg.BlockHash) (blocks int, bytes int64, err error) {
	return p.drop(func(r ieg.BlockHash) bool { return r == root })
}

// DropAll deletes all blocks.
func (p *Pager) DropAll() (blocks int, bytes int64, err error) {
	return p.drop(func(ieg.BlockHash) bool { return true })
}

func (p *Pager) drop(which func(root ieg.BlockHash) bool) (blocks int, bytes int64, err error) {
	p.mu.Lock()
	p.stores.jobs = slices.DeleteFunc(p.stores.jobs, func(m ieg.Move) bool {
		if !which(m.Block.Root) {
			return false
		}
		p.flush.pass(1)
		p.end(&m, outcome{err: "what the block belongs to is being dropped"})
		return true
	})
	p.mu.Unlock()
	p.writing.take()
	defer p.writing.pass()
	h := p.acquire()
	if h == nil {
		return 0, 0, errDown
	}
	defer p.release(h)
	blocks, bytes = p.dropWhere(h, func(e *kv.Entry, _ *record) bool { return which(e.Root) })
	return blocks, bytes, nil
}

// Pin keeps a block, and so all that leads to it, from being deleted for want
// of room, or ends that; false: it is not in the tier. Pins end with the
// process.
func (p *Pager) Pin(hash ieg.BlockHash, on bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ref, ok := p.known.index.Get(hash)
	if ok {
		p.known.index.Pin(ref, on)
	}
	return ok
}

// flushes counts the stores that were queued and those that ended, so that
// Flush can wait for them; Pager.mu guards it.
type flushes struct {
	begun, ended int64
	waiting      []flusher
}

type flusher struct {
	until int64
	done  chan struct{}
}

// pass counts stores that ended.
func (f *flushes) pass(n int) {
	f.ended += int64(n)
	f.waiting = slices.DeleteFunc(f.waiting, func(w flusher) bool {
		if f.ended < w.until {
			return false
		}
		close(w.done)
		return true
	})
}

// Flush waits until the stores asked for before are on disk, or ended
// otherwise, or ctx is done.
func (p *Pager) Flush(ctx context.Context) error {
	p.mu.Lock()
	w := flusher{until: p.flush.begun, done: make(chan struct{})}
	p.flush.waiting = append(p.flush.waiting, w)
	p.flush.pass(0)
	p.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flush.waiting = slices.DeleteFunc(p.flush.waiting, func(o flusher) bool { return o.done == w.done })
		return ctx.Err()
	}
}

// TreeRow is a prefix that texts share, or the end of one.
type TreeRow struct {
	Hash, Root ieg.BlockHash
	// Depth is the number of tokens up to the end of the block.
	Depth int32
	// Tokens and Bytes are those of the block and of all that continues it; of
	// the first ones only, if Partial.
	Tokens, Bytes int64
	Partial       bool
	Heat          float64  // recent uses
	Used          ieg.Time // last
	Pinned        bool
}

// Tree lists the n hottest prefixes, a row for each block where texts part or
// end, the hottest first.
func (p *Pager) Tree(n int) []TreeRow {
	t := tree{p: p}
	rows := make([]TreeRow, 0, min(max(n, 0), maxTree))
	t.begin()
	for len(rows) < cap(rows) {
		row, ok := t.next()
		if !ok {
			break
		}
		rows = append(rows, row)
	}
	return rows
}

// tree lets others in between two rows; what they remove is passed over.
type tree struct {
	p     *Pager
	front []treeNode // blocks whose predecessors were listed
}

type treeNode struct {
	hash ieg.BlockHash
	heat float64
}

// push adds the blocks that continue a block or root; Pager.mu is held.
func (t *tree) push(h ieg.BlockHash) {
	x := t.p.known.index
	seen := 0
	for ref := range x.Children(h) {
		hash := x.Entry(ref).Hash
		t.front = append(t.front, treeNode{hash, x.Heat(hash, t.p.cfg.Now())})
		if seen++; seen == treeNodes {
			return
		}
	}
}

func (t *tree) begin() {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	for _, root := range t.p.known.index.Roots(treeNodes) {
		t.push(root)
	}
}

// next takes the hottest of the front and goes on to where texts part.
func (t *tree) next() (row TreeRow, ok bool) {
	p := t.p
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.known.index
	for len(t.front) > 0 {
		best := 0
		for i := range t.front {
			if t.front[i].heat > t.front[best].heat {
				best = i
			}
		}
		hash := t.front[best].hash
		t.front = slices.Delete(t.front, best, best+1)
		ref, known := x.Get(hash)
		if !known {
			continue
		}
		row = t.row(ref)
		t.push(row.Hash)
		return row, true
	}
	return row, false
}

// row makes the row of a block and those after it up to where texts part, and
// sums what lies below.
func (t *tree) row(ref kv.Ref) (row TreeRow) {
	x := t.p.known.index
	left := treeNodes
	for only := ref; only != kv.NoRef && left > 0; left-- {
		ref, only = only, kv.NoRef
		e := x.Entry(ref)
		row.Tokens += int64(e.N)
		row.Bytes += e.Bytes
		kids := 0
		for c := range x.Children(e.Hash) {
			if kids++; kids > 1 {
				only = kv.NoRef
				break
			}
			only = c
		}
	}
	e := x.Entry(ref)
	row.Hash, row.Root, row.Depth = e.Hash, e.Root, e.Start+e.N
	row.Heat, row.Used, row.Pinned = x.Heat(e.Hash, t.p.cfg.Now()), e.Used, e.Pinned
	stack := []ieg.BlockHash{e.Hash}
	for len(stack) > 0 {
		h := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for c := range x.Children(h) {
			if left--; left < 0 {
				row.Partial = true
				return row
			}
			e := x.Entry(c)
			row.Tokens += int64(e.N)
			row.Bytes += e.Bytes
			stack = append(stack, e.Hash)
		}
	}
	return row
}
