package nvme

import (
	"context"
	"slices"

	"github.com/dgraph-io/badger/v4"

	"ieg"
)

// Delete forgets blocks, some in each transaction.
func (s *Store) Delete(ctx context.Context, hs []ieg.BlockHash) error {
	for some := range slices.Chunk(hs, batchBlocks) {
		if err := s.deleteSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteSome(ctx context.Context, hs []ieg.BlockHash) error {
	if err := s.enterCall(ctx); err != nil {
		return err
	}
	defer s.life.leave()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	return s.deleteLocked(hs, nil)
}

// dropAt deletes a block unless it is elsewhere by now, and tells whether it did.
func (s *Store) dropAt(e *entry) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.blocks.Load()
	err := s.deleteLocked([]ieg.BlockHash{e.meta.Hash}, e)
	return s.blocks.Load() < was, err
}

// deleteLocked deletes the blocks of hs that the index has, and that lie where
// at says if it is given.
func (s *Store) deleteLocked(hs []ieg.BlockHash, at *entry) error {
	var gone []*entry
	seen := map[ieg.BlockHash]bool{}
	err := s.index.view(func(txn *badger.Txn) error {
		for _, h := range hs {
			e, known, err := find(txn, h)
			if err != nil {
				return err
			}
			if known && !seen[h] && (at == nil || e.at(at)) {
				gone = append(gone, &e)
			}
			seen[h] = true
		}
		return nil
	})
	if err != nil {
		return s.fail(err)
	}
	if len(gone) == 0 {
		return nil
	}
	if err := s.roomToDelete(); err != nil {
		return err
	}
	return s.unname(gone)
}

// unname takes entries out of the index and out of the counts.
func (s *Store) unname(gone []*entry) error {
	err := s.update(func(c *change) error {
		changed := map[uint64]bool{}
		for _, e := range gone {
			if x := s.files[e.file]; x != nil {
				x.remove(e)
				changed[e.file] = true
			}
			if err := c.drop(e); err != nil {
				return err
			}
		}
		for id := range changed {
			if err := c.set(fileKey(id), s.files[id].encode()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s.fail(err)
	}
	for _, e := range gone {
		s.blocks.Add(-1)
		s.live.Add(-e.meta.Bytes)
	}
	s.wake()
	return nil
}
