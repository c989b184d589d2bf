package nvme

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/dgraph-io/badger/v4"
	"golang.org/x/sys/unix"

	"ieg/memory/tier"
)

// wake tells the reclaimer that there may be something to do.
func (s *Store) wake() {
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// reclaimer gives back space until ctx ends.
func (s *Store) reclaimer(ctx context.Context) {
	if err := s.dir.removeOld(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("what another schema left can't be removed", "dir", s.cfg.Dir, "err", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = s.reclaim(ctx); err != nil {
				s.regret(ctx, err)
				break
			}
		}
		s.makeBallast()
	}
}

// regret logs why space was not reclaimed. That the disk is full, or the store
// broken, its callers learn.
func (s *Store) regret(ctx context.Context, err error) {
	if ctx.Err() == nil && !errors.Is(err, tier.ErrFull) && !errors.Is(err, tier.ErrUnusable) {
		s.cfg.Log.Warn("space can't be reclaimed", "dir", s.cfg.Dir, "err", err)
	}
}

// reclaim frees one file that is worth it and tells whether there was one.
func (s *Store) reclaim(ctx context.Context) (bool, error) {
	if err := s.search(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	err := s.usable()
	if err == nil {
		err = s.removeDead()
	}
	x := s.victim()
	if x == nil {
		s.pressed.Store(false)
	}
	s.mu.Unlock()
	if err != nil || x == nil {
		return false, err
	}
	if err = s.empty(ctx, x); errors.Is(err, errVanished) {
		err = nil // nothing was moved: it is worth it still
	}
	return true, err
}

// removeDead removes the files without live blocks.
func (s *Store) removeDead() error {
	for _, id := range slices.Sorted(maps.Keys(s.files)) {
		x := s.files[id]
		if !x.dead() || x == s.head && x.end == 0 {
			continue
		}
		// First the record: a file without one is removed by the next opening.
		if err := s.strike(x); err != nil {
			return err
		}
		if err := errors.Join(s.unlink(x), x.close()); err != nil {
			return s.fail(err)
		}
	}
	return nil
}

// victim is the file with the least live bytes among those worth emptying: less
// than half live, or, while there is a hurry, more than hurriedShare dead.
func (s *Store) victim() *extent {
	var best *extent
	for _, id := range slices.Sorted(maps.Keys(s.files)) {
		x := s.files[id]
		worth := x.live*2 < x.end || s.pressed.Load() && (x.end-x.live)*hurriedShare > x.end
		if x == s.head || x.stuck || !worth {
			continue
		}
		if best == nil || x.live < best.live {
			best = x
		}
	}
	return best
}

// empty copies the live blocks of a file to the head.
func (s *Store) empty(ctx context.Context, x *extent) error {
	spots, err := s.index.spots(x.id)
	if err != nil {
		return s.fail(err)
	}
	for len(spots) > 0 {
		n, bytes := moveLen(spots)
		began := s.now()
		if err := s.move(x, spots[:n]); err != nil {
			return err
		}
		spots = spots[n:]
		if !s.pressed.Load() {
			pause(ctx, time.Duration(bytes)*time.Second/moveRate-s.now().Sub(began))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !x.dead() {
		x.stuck = true
		s.cfg.Log.Warn("an extent file can't be emptied", "file", s.dir.extent(x.id), "blocks", x.blocks)
	}
	return s.removeDead()
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(min(d, waitMost))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// moveLen is how many blocks are copied at once, and their bytes.
func moveLen(spots []spot) (n int, bytes int64) {
	for n < len(spots) && n < batchBlocks && (n == 0 || bytes+spots[n].size <= moveBytes) {
		bytes += spots[n].size
		n++
	}
	return n, bytes
}

// move copies blocks of x to the head, as they are stored.
func (s *Store) move(x *extent, spots []spot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return err
	}
	from, err := s.still(x, spots)
	if err != nil || len(from) == 0 {
		return err
	}
	var need int64
	for _, e := range from {
		need += align(e.size())
	}
	// The copy may take of the reserve: it is what makes room.
	if _, free, err := s.dir.disk(); err != nil || free-need < MinReserve/2 {
		return errors.Join(tier.ErrFull, err)
	}
	fd, err := openFile(s.dir.extent(x.id), unix.O_RDONLY)
	if errors.Is(err, unix.ENOENT) {
		s.mourn(int64(len(from)), []string{s.dir.extent(x.id)})
		return s.unname(from)
	}
	if err != nil {
		return s.fail(err)
	}
	defer unix.Close(fd)
	return s.copyAll(fd, from)
}

// still are the entries of the blocks that are where the spots say.
func (s *Store) still(x *extent, spots []spot) (out []*entry, err error) {
	err = s.index.view(func(txn *badger.Txn) error {
		for _, p := range spots {
			e, known, err := find(txn, p.hash)
			if err != nil {
				return err
			}
			if known && e.file == x.id && e.off == p.off {
				out = append(out, &e)
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.fail(err)
	}
	return out, nil
}

// copyAll copies blocks from a file to the head and names them there. Blocks
// that the file is too short for are dropped.
func (s *Store) copyAll(fd int, from []*entry) error {
	b := s.begin()
	var lost []*entry
	for _, e := range from {
		to := *e
		x, err := b.place(&to)
		if err == nil {
			err = s.copyBlock(x, fd, e, &to)
		}
		if errors.Is(err, errShort) {
			lost = append(lost, e)
			continue
		}
		if err != nil {
			return b.undo(err)
		}
		x.tail = to.off + to.size()
		b.added = append(b.added, added{entry: to, home: x})
		b.moved = append(b.moved, e)
	}
	if err := b.commit(); err != nil {
		return err
	}
	if len(lost) > 0 {
		s.mourn(int64(len(lost)), []string{s.dir.extent(lost[0].file)})
		return s.unname(lost)
	}
	return nil
}

func (s *Store) copyBlock(x *extent, fd int, from, to *entry) error {
	if cap(s.buffer) < copyBytes {
		s.buffer = make([]byte, 0, copyBytes)
	}
	for done := int64(0); done < from.size(); {
		buf := s.buffer[:min(copyBytes, from.size()-done)]
		if err := readAt(fd, [][]byte{buf}, from.off+done); err != nil {
			return err
		}
		if err := s.write(x, [][]byte{buf}, to.off+done); err != nil {
			return err
		}
		done += int64(len(buf))
	}
	return unix.Fadvise(fd, from.off, from.size(), unix.FADV_DONTNEED)
}
