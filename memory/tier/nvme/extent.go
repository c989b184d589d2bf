package nvme

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// extent is an extent file. Guarded by Store.mu.
type extent struct {
	id uint64
	record
	tail int64 // end of what was written, committed or not
	fd   int   // of the head, -1 otherwise
	// dev and ino are those of fd.
	dev, ino uint64
	// counted is the part of it that Usage counts.
	counted int64
	// stuck tells that the index knows fewer blocks in it than its record.
	stuck bool
}

// dead tells whether nothing in the file is live.
func (e *extent) dead() bool { return e.blocks == 0 }

func (e *extent) add(b *entry) {
	e.blocks++
	e.live += align(b.size())
	e.bytes += b.meta.Bytes
	e.end = max(e.end, b.off+b.size())
}

func (e *extent) remove(b *entry) {
	e.blocks--
	e.live -= align(b.size())
	e.bytes -= b.meta.Bytes
}

func (e *extent) close() error {
	if e.fd < 0 {
		return nil
	}
	fd := e.fd
	e.fd = -1
	return unix.Close(fd)
}

// recover reads the table of extent files and makes files and index agree.
func (s *Store) recover() error {
	records, err := s.index.records()
	if err != nil {
		return err
	}
	lengths, err := s.lengths()
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(lengths)) {
		s.next = max(s.next, id+1)
		if _, known := records[id]; !known {
			if err := os.Remove(s.dir.extent(id)); err != nil {
				return err
			}
		}
	}
	var gone struct {
		blocks int64
		files  []string
	}
	for _, id := range slices.Sorted(maps.Keys(records)) {
		s.next = max(s.next, id+1)
		e := &extent{id: id, record: records[id], fd: -1}
		n, there := lengths[id]
		lost, err := s.mend(e, n, there)
		if err != nil {
			return err
		}
		if gone.blocks += lost; lost > 0 {
			gone.files = append(gone.files, s.dir.extent(id))
		}
		if there {
			s.enter(e)
		}
	}
	s.mourn(gone.blocks, gone.files)
	return s.reopenHead()
}

// mourn counts the blocks that were lost with their files, and says so once:
// there may be thousands of files.
func (s *Store) mourn(blocks int64, files []string) {
	if blocks == 0 {
		return
	}
	s.gone.Add(blocks)
	s.cfg.Log.Warn("stored KV blocks are lost: their extent files are gone, or lost their ends; what they held is computed again",
		"blocks", blocks, "files", len(files), "first", files[0])
}

// enter adds a file to the table.
func (s *Store) enter(e *extent) {
	s.files[e.id] = e
	s.blocks.Add(e.blocks)
	s.live.Add(e.bytes)
	s.taking.Add(e.end)
	e.counted = e.end
}

// lengths are those of the extent files in the folder; other files are let be.
// What has the name of one and is none, a folder or a pipe, is moved out of the
// way: to open it may fail or wait for ever.
func (s *Store) lengths() (map[uint64]int64, error) {
	list, err := os.ReadDir(s.dir.path("extents"))
	if err != nil {
		return nil, err
	}
	out := map[uint64]int64{}
	for _, f := range list {
		if !extentName.MatchString(f.Name()) {
			continue
		}
		if !f.Type().IsRegular() {
			name := s.dir.path("extents", f.Name())
			s.cfg.Log.Warn("this is no extent file: it is moved aside", "file", name, "type", f.Type().String())
			if err := os.Rename(name, name+".alien"); err != nil {
				return nil, err
			}
			continue
		}
		id, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), ".kv"), 16, 64)
		if err != nil {
			return nil, err
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		out[id] = info.Size()
	}
	return out, nil
}

// mend cuts off what belongs to nobody, and forgets the blocks of a file that
// is gone or shorter than its record. It returns how many these are.
func (s *Store) mend(e *extent, n int64, there bool) (lost int64, err error) {
	e.tail = e.end
	if there && n >= e.end {
		if n == e.end {
			return 0, nil
		}
		return 0, os.Truncate(s.dir.extent(e.id), e.end)
	}
	spots, err := s.index.spots(e.id)
	if err != nil {
		return 0, err
	}
	spots = slices.DeleteFunc(spots, func(p spot) bool { return p.off+p.size <= n })
	had := e.blocks
	e.end, e.tail = n, n
	for some := range slices.Chunk(spots, batchBlocks) {
		if err := s.forget(e, some); err != nil {
			return 0, err
		}
	}
	lost = had - e.blocks
	if there {
		return lost, nil
	}
	return lost, s.index.update(func(c *change) error { return c.delete(fileKey(e.id)) })
}

// forget drops the blocks of an extent file that are where the spots say.
func (s *Store) forget(e *extent, spots []spot) error {
	return s.index.update(func(c *change) error {
		for _, p := range spots {
			b, known, err := find(c.txn, p.hash)
			if err != nil {
				return err
			}
			if !known || b.file != e.id || b.off != p.off {
				if err := c.delete(placeKey(e.id, p.off)); err != nil {
					return err
				}
				continue
			}
			e.remove(&b)
			if err := c.drop(&b); err != nil {
				return err
			}
		}
		return c.set(fileKey(e.id), e.encode())
	})
}

// reopenHead goes on with the last file if there is room in it.
func (s *Store) reopenHead() error {
	if len(s.files) == 0 {
		return nil
	}
	e := s.files[slices.Max(slices.Collect(maps.Keys(s.files)))]
	if e.end >= s.cfg.FileBytes {
		return nil
	}
	fd, err := openFile(s.dir.extent(e.id), unix.O_WRONLY)
	if err != nil {
		return &fs.PathError{Op: "open", Path: s.dir.extent(e.id), Err: err}
	}
	if err := e.hold(fd); err != nil {
		return errors.Join(err, unix.Close(fd))
	}
	s.head = e
	return nil
}

// newHead begins a file. Its name is durable before anything refers to it.
func (s *Store) newHead() (*extent, error) {
	e := &extent{id: s.next, fd: -1}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL
	fd, err := openFile(s.dir.extent(e.id), flags)
	if errors.Is(err, unix.ENOENT) {
		if err = s.remakeFolder(); err == nil {
			fd, err = openFile(s.dir.extent(e.id), flags)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("an extent file: %w", err)
	}
	if err := errors.Join(e.hold(fd), syncDir(s.dir.path("extents"))); err != nil {
		return nil, errors.Join(err, unix.Close(fd), os.Remove(s.dir.extent(e.id)))
	}
	s.next++
	return e, nil
}
