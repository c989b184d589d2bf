package nvme

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// errVanished: the name of the file that is written leads to it no more. What
// goes there is gone once the file is closed, though the disk takes it.
var errVanished = errors.New("an extent file was removed or replaced while it was written")

// hold keeps fd as the file's.
func (e *extent) hold(fd int) error {
	var st unix.Stat_t
	if err := again(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return err
	}
	e.fd, e.dev, e.ino = fd, uint64(st.Dev), st.Ino
	return nil
}

// named tells whether a file's name leads to it. Of a file that isn't open
// nothing but the name is known: any file there passes for it, and who reads
// the blocks finds out whether they are whole.
func (s *Store) named(x *extent) (bool, error) {
	var st unix.Stat_t
	path := s.dir.extent(x.id)
	// No link is followed: the next opening would move it aside.
	err := again(func() error { return unix.Lstat(path, &st) })
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	if x.fd >= 0 {
		return uint64(st.Dev) == x.dev && st.Ino == x.ino, nil
	}
	return st.Mode&unix.S_IFMT == unix.S_IFREG, nil
}

// unlink removes a file if its name leads to it. What else has the name stays
// until the next opening, which finds no record of it.
func (s *Store) unlink(x *extent) error {
	there, err := s.named(x)
	if err != nil || !there {
		return err
	}
	if err := os.Remove(s.dir.extent(x.id)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// strike takes a file out of the index and the table.
func (s *Store) strike(x *extent) error {
	if err := s.update(func(c *change) error { return c.delete(fileKey(x.id)) }); err != nil {
		return s.fail(err)
	}
	if x == s.head {
		s.head = nil
	}
	delete(s.files, x.id)
	s.taking.Add(-x.counted)
	return nil
}

// lose forgets a file that vanished, with its blocks, and returns how many
// these were. The reclaimer looks for the others.
func (s *Store) lose(x *extent) (lost int64, err error) {
	if err := s.indexThere(); err != nil {
		return 0, s.fail(err)
	}
	spots, err := s.index.spots(x.id)
	if err != nil {
		return 0, s.fail(err)
	}
	for some := range slices.Chunk(spots, batchBlocks) {
		gone, err := s.still(x, some)
		if err == nil && len(gone) > 0 {
			err = s.unname(gone)
		}
		if err != nil {
			return lost, err
		}
		lost += int64(len(gone))
	}
	if err := s.strike(x); err != nil {
		return lost, err
	}
	s.goneAstray()
	if err := x.close(); err != nil {
		return lost, s.fail(err)
	}
	return lost, nil
}

// goneAstray has the reclaimer look whether all files are there: who removed
// one may have removed more.
func (s *Store) goneAstray() {
	s.astray.Store(true)
	s.wake()
}

// search forgets the files that are gone, if there is reason to look for them.
// It says so once: there may be thousands. Writers wait for one at a time.
func (s *Store) search(ctx context.Context) error {
	if !s.astray.Swap(false) {
		return nil
	}
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.files))
	s.mu.Unlock()
	var blocks int64
	var files []string
	defer func() { s.mourn(blocks, files) }()
	for _, id := range ids {
		lost, err := s.loseIfGone(id)
		if blocks += lost; lost > 0 {
			files = append(files, s.dir.extent(id))
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loseIfGone(id uint64) (lost int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(); err != nil {
		return 0, err
	}
	x := s.files[id]
	if x == nil {
		return 0, nil // reclaimed meanwhile
	}
	there, err := s.named(x)
	if err != nil {
		return 0, s.fail(err)
	}
	if there {
		return 0, nil
	}
	return s.lose(x)
}

// remakeFolder makes the folder of extent files that somebody removed.
func (s *Store) remakeFolder() error {
	if err := s.indexThere(); err != nil {
		return err
	}
	if err := os.Mkdir(s.dir.path("extents"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.goneAstray()
	return syncDir(s.dir.dir)
}

// indexThere looks whether the index vanished, too. Nothing can be stored then:
// it would be named in files that are gone.
func (s *Store) indexThere() error {
	if _, err := os.Lstat(s.dir.path("index", "MANIFEST")); err != nil {
		return fmt.Errorf("the index was removed: %w", err)
	}
	return nil
}
