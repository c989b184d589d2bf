package nvme

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/tier"
)

// Put stores the items in batches; after an error those of earlier batches are
// there.
func (s *Store) Put(ctx context.Context, items []tier.Item) error {
	for i := range items {
		if err := checkItem(&items[i]); err != nil {
			return err
		}
	}
	for len(items) > 0 {
		n := batchLen(items)
		if err := s.putBatch(ctx, items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

func checkItem(it *tier.Item) error {
	b := &it.Block
	m := metaOf(b)
	if err := checkMeta(&m); err != nil {
		return fmt.Errorf("block %v: %w", b.Hash, err)
	}
	if n := length(it.Data); n != b.Bytes {
		return fmt.Errorf("block %v: it has %d bytes, not the %d it claims", b.Hash, n, b.Bytes)
	}
	return nil
}

func metaOf(b *ieg.Block) tier.Meta {
	return tier.Meta{
		Hash: b.Hash, Parent: b.Parent, Root: b.Root, Start: b.Start, N: int32(len(b.Tokens)),
		Codec: b.Codec, Bytes: b.Bytes, Digest: b.Digest,
	}
}

// batchLen is how many of the items go together.
func batchLen(items []tier.Item) int {
	var bytes int64
	for i := range items {
		bytes += items[i].Block.Bytes
		if i > 0 && (bytes > BatchBytes || i >= batchBlocks) {
			return i
		}
	}
	return len(items)
}

func (s *Store) putBatch(ctx context.Context, items []tier.Item) error {
	if err := s.enterCall(ctx); err != nil {
		return err
	}
	defer s.life.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	for range rewrites {
		err := s.putLocked(items)
		if !errors.Is(err, errVanished) {
			return err
		}
	}
	return s.fail(fmt.Errorf("%d times in a row: %w", rewrites, errVanished))
}

// putLocked stores a batch, or returns errVanished: then it is to be stored
// again, with what vanished of it before.
func (s *Store) putLocked(items []tier.Item) error {
	fresh, stale, need, err := s.unknown(items)
	if err != nil || len(fresh) == 0 {
		return err
	}
	if err := s.roomToPut(need); err != nil {
		return err
	}
	b := s.begin()
	b.moved = stale
	for _, it := range fresh {
		if err := b.append(it); err != nil {
			return b.undo(err)
		}
	}
	return b.commit()
}

// unknown are the items that the index has not, each once, the entries that
// they replace, and what they take.
func (s *Store) unknown(items []tier.Item) (fresh []*tier.Item, stale []*entry, need int64, err error) {
	seen := map[ieg.BlockHash]bool{}
	err = s.index.view(func(txn *badger.Txn) error {
		for i := range items {
			h := items[i].Block.Hash
			if seen[h] {
				continue
			}
			seen[h] = true
			e, known, err := find(txn, h)
			if err != nil {
				return err
			}
			if known {
				_, err := txn.Get(hashKey(keyTokens, h))
				if err == nil {
					continue
				}
				if !errors.Is(err, badger.ErrKeyNotFound) {
					return err
				}
				stale = append(stale, &e)
			}
			fresh = append(fresh, &items[i])
			need += align(items[i].Block.Bytes + sealBytes)
		}
		return nil
	})
	if err != nil {
		return nil, nil, 0, s.fail(err)
	}
	return fresh, stale, need, nil
}

// batch is what one fdatasync and one transaction make durable. Store.mu is
// held from begin to commit or undo.
type batch struct {
	s       *Store
	started map[*extent]bool // files written to; true: they are new
	added   []added
	moved   []*entry // where some of them were before
}

type added struct {
	entry
	tokens []byte // nil: they are there
	home   *extent
}

func (s *Store) begin() *batch { return &batch{s: s, started: map[*extent]bool{}} }

// append writes a block behind the others.
func (b *batch) append(it *tier.Item) error {
	s := b.s
	e := entry{meta: metaOf(&it.Block)}
	e.meta.Stored = s.now().Unix()
	parts := cut(it.Data, e.meta.Bytes)
	if s.sealer != nil {
		e.sealed = true
		if int64(cap(s.buffer)) < e.meta.Bytes+sealBytes {
			s.buffer = make([]byte, 0, e.meta.Bytes+sealBytes)
		}
		var sealed []byte
		sealed, e.nonce = s.sealer.seal(it.Block.Hash, s.buffer, parts)
		parts = [][]byte{sealed}
	}
	x, err := b.place(&e)
	if err != nil {
		return err
	}
	if err := s.write(x, parts, e.off); err != nil {
		return err
	}
	x.tail = e.off + e.size()
	b.added = append(b.added, added{e, encodeTokens(it.Block.Tokens), x})
	return nil
}

// place chooses where a block goes; what is written there counts once the
// caller moves the tail.
func (b *batch) place(e *entry) (*extent, error) {
	s := b.s
	x := s.head
	if x != nil && x.tail > 0 && align(x.tail)+e.size() > s.cfg.FileBytes {
		x = nil
	}
	if x == nil {
		var err error
		if x, err = s.newHead(); err != nil {
			return nil, err
		}
		b.started[x] = true
		if err := b.retire(s.head); err != nil {
			return nil, err
		}
		s.head = x
	} else if _, known := b.started[x]; !known {
		b.started[x] = false
	}
	e.file, e.off = x.id, align(x.tail)
	return x, nil
}

// retire ends writing to a file.
func (b *batch) retire(x *extent) error {
	if x == nil {
		return nil
	}
	if _, dirty := b.started[x]; dirty {
		if err := b.s.sync(x); err != nil {
			return err
		}
	}
	return x.close()
}

// write puts parts at off and lets the disk begin with them, so that the
// fdatasync of the batch has less to do. It changes the slice of parts.
func (s *Store) write(x *extent, parts [][]byte, off int64) error {
	n := length(parts)
	s.wrote.Add(n)
	if err := writeAt(x.fd, parts, off); err != nil {
		return err
	}
	return again(func() error { return unix.SyncFileRange(x.fd, off, n, unix.SYNC_FILE_RANGE_WRITE) })
}

// sync makes the written part of a file durable and drops it from the page
// cache, where it would push out what is used. It returns errVanished if the
// file would not be found again.
func (s *Store) sync(x *extent) error {
	if err := again(func() error { return unix.Fdatasync(x.fd) }); err != nil {
		return err
	}
	if there, err := s.named(x); err != nil || !there {
		return cmp.Or(err, errVanished)
	}
	return unix.Fadvise(x.fd, x.end, 0, unix.FADV_DONTNEED)
}

// commit makes the batch durable: bytes first, then the names.
func (b *batch) commit() error {
	s := b.s
	if x := s.head; x != nil {
		if _, dirty := b.started[x]; dirty {
			if err := s.sync(x); err != nil {
				return b.undo(err)
			}
		}
	}
	changed := map[uint64]*extent{}
	for i := range b.added {
		a := &b.added[i]
		a.home.add(&a.entry)
		changed[a.file] = a.home
	}
	for _, e := range b.moved {
		if x := s.files[e.file]; x != nil {
			x.remove(e)
			changed[e.file] = x
		}
	}
	err := s.update(func(c *change) error { return b.name(c, changed) })
	if err != nil {
		return s.fail(err) // named or not: the next opening finds out
	}
	for i := range b.added {
		s.blocks.Add(1)
		s.live.Add(b.added[i].meta.Bytes)
	}
	for _, e := range b.moved {
		s.blocks.Add(-1)
		s.live.Add(-e.meta.Bytes)
	}
	for x := range b.started {
		s.taking.Add(x.end - x.counted)
		s.files[x.id] = x
		x.counted = x.end
	}
	return nil
}

func (b *batch) name(c *change, changed map[uint64]*extent) error {
	for _, e := range b.moved {
		if err := c.delete(placeKey(e.file, e.off)); err != nil {
			return err
		}
	}
	for i := range b.added {
		if err := c.put(&b.added[i].entry, b.added[i].tokens); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		if err := c.set(fileKey(id), changed[id].encode()); err != nil {
			return err
		}
	}
	return nil
}

// undo takes back what was written, and returns why.
func (b *batch) undo(why error) error {
	s := b.s
	for x, isNew := range b.started {
		if err := s.takeBack(x, isNew); err != nil {
			return s.fail(errors.Join(why, err))
		}
	}
	switch {
	case full(why):
		return fmt.Errorf("%w: %w", tier.ErrFull, why)
	case errors.Is(why, errVanished):
		return why
	}
	return s.fail(why)
}

// takeBack leaves of a file what is committed. What is another's by now is not
// touched.
func (s *Store) takeBack(x *extent, isNew bool) error {
	if isNew {
		if s.head == x {
			s.head = nil
		}
		return errors.Join(s.unlink(x), x.close())
	}
	there, err := s.named(x)
	if err != nil {
		return err
	}
	if !there {
		lost, err := s.lose(x)
		s.mourn(lost, []string{s.dir.extent(x.id)})
		return err
	}
	x.tail = x.end
	return os.Truncate(s.dir.extent(x.id), x.end)
}
