package nvme

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/tier"
)

// Get reads a block. What is lost or can't be decrypted is missing, and
// dropped.
func (s *Store) Get(ctx context.Context, h ieg.BlockHash, dst [][]byte) (ieg.Block, error) {
	if err := s.enterCall(ctx); err != nil {
		return ieg.Block{}, err
	}
	defer s.life.leave()
	var last entry
	for range lookups {
		e, b, err := s.look(h)
		if err != nil {
			return ieg.Block{}, err
		}
		parts := cut(dst, b.Bytes)
		if parts != nil && s.readDirect(&e, dst) {
			return b, nil
		}
		if parts == nil {
			return ieg.Block{}, fmt.Errorf("block %v has %d bytes, there is room for %d", h, b.Bytes, length(dst))
		}
		err = s.read(ctx, &e, parts)
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return ieg.Block{}, ctx.Err()
		}
		// A file that is gone was reclaimed, and the block is elsewhere; where
		// it is still said to be there, it is lost.
		if errors.Is(err, unix.ENOENT) && !e.at(&last) {
			last = e
			continue
		}
		return ieg.Block{}, s.lost(&e, err)
	}
	return ieg.Block{}, fmt.Errorf("%w: %v moves too often", tier.ErrMissing, h)
}

// Block is a block without its bytes.
func (s *Store) Block(ctx context.Context, h ieg.BlockHash) (ieg.Block, error) {
	if err := s.enterCall(ctx); err != nil {
		return ieg.Block{}, err
	}
	defer s.life.leave()
	_, b, err := s.look(h)
	return b, err
}

// look asks the index.
func (s *Store) look(h ieg.BlockHash) (entry, ieg.Block, error) {
	e, tokens, known, err := s.index.block(h)
	if err != nil {
		return e, ieg.Block{}, s.fail(err)
	}
	if !known {
		return e, ieg.Block{}, fmt.Errorf("%w: %v", tier.ErrMissing, h)
	}
	m := &e.meta
	return e, ieg.Block{
		Hash: m.Hash, Parent: m.Parent, Root: m.Root, Start: m.Start, Tokens: tokens,
		Codec: m.Codec, Bytes: m.Bytes, Digest: m.Digest,
	}, nil
}

// Each calls f for every block. f may call the store.
func (s *Store) Each(ctx context.Context, f func(tier.Meta) error) error {
	if err := s.enterCall(ctx); err != nil {
		return err
	}
	defer s.life.leave()
	err := s.index.each(ctx, func(some []entry) error {
		for i := range some {
			if err := f(some[i].meta); err != nil {
				return err
			}
		}
		return nil
	})
	var own *stopped
	switch {
	case err == nil || ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	case errors.As(err, &own):
		return own.error
	}
	return s.fail(err)
}

// errSealed: the bytes are not what was encrypted.
var errSealed = errors.New("the bytes can't be decrypted")

func (s *Store) read(ctx context.Context, e *entry, parts [][]byte) error {
	if e.sealed != (s.sealer != nil) {
		return errSealed
	}
	if !e.sealed {
		return s.readFile(e, parts)
	}
	var buf []byte
	select {
	case buf = <-s.reads:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { s.reads <- buf }()
	if int64(cap(buf)) < e.size() {
		buf = make([]byte, e.size())
	}
	buf = buf[:e.size()]
	if err := s.readFile(e, [][]byte{buf}); err != nil {
		return err
	}
	plain, err := s.sealer.open(e.meta.Hash, e.nonce, buf)
	if err != nil {
		return errSealed
	}
	for _, p := range parts {
		plain = plain[copy(p, plain):]
	}
	return nil
}

// readFile reads a block's bytes as they are stored, by way of the page cache: what
// is encrypted, and where readDirect can't. They don't stay in the page
// cache: they are in the arena, and would push out the weights that the engines
// map.
func (s *Store) readFile(e *entry, parts [][]byte) error {
	fd, err := openFile(s.dir.extent(e.file), unix.O_RDONLY)
	if err != nil {
		return err
	}
	// The disk begins with all of it at once.
	err = unix.Fadvise(fd, e.off, e.size(), unix.FADV_WILLNEED)
	if err == nil {
		err = readAt(fd, parts, e.off)
	}
	off, size := e.off, e.size()
	go func() { // nobody waits for the pages to be given up
		_ = unix.Fadvise(fd, off, size, unix.FADV_DONTNEED)
		unix.Close(fd)
	}()
	return err
}

// lost drops a block whose bytes can't be had, and says what that means.
func (s *Store) lost(e *entry, why error) error {
	missing := errors.Is(why, unix.ENOENT) || errors.Is(why, errShort) || errors.Is(why, errSealed)
	s.cfg.Log.Warn("a block is lost", "block", e.meta.Hash, "file", s.dir.extent(e.file), "err", why)
	counts := true
	if missing || errors.Is(why, unix.EIO) {
		dropped, err := s.dropAt(e)
		if errors.Is(err, tier.ErrUnusable) {
			return err
		}
		counts = dropped || err != nil
	}
	if counts { // who dropped it before us counted it
		s.gone.Add(1)
	}
	if errors.Is(why, unix.ENOENT) {
		s.goneAstray()
	}
	if missing {
		return fmt.Errorf("%w: %v: %w", tier.ErrMissing, e.meta.Hash, why)
	}
	return s.fail(why)
}
