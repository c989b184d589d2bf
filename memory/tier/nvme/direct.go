package nvme

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readDirect reads a block past the page cache, straight to where it is wanted:
// nothing is copied, and no pages are to be given up afterwards. False: it can't,
// or something is wrong; who reads through the cache then finds out what.
func (s *Store) readDirect(e *entry, dst [][]byte) bool {
	if e.sealed || s.sealer != nil || s.noDirect.Load() || e.off%alignBytes != 0 {
		return false
	}
	parts := pieces(dst, e.size())
	if parts == nil {
		return false
	}
	fd, err := openFile(s.dir.extent(e.file), unix.O_RDONLY|unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) {
		s.noDirect.Store(true) // the file system has no such reads
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return transfer(unix.Preadv, fd, parts, e.off, e.size()) == nil
}

// pieces are parts of dst for n bytes in whole pieces of alignBytes; nil: dst is
// cut otherwise, or has no room for all of the last one.
func pieces(dst [][]byte, n int64) (parts [][]byte) {
	for _, p := range dst {
		if n <= 0 {
			break
		}
		k := (min(n, int64(len(p))) + alignBytes - 1) / alignBytes * alignBytes
		if k > int64(len(p)) {
			return nil
		}
		parts = append(parts, p[:k:k])
		n -= k
	}
	if n > 0 {
		return nil
	}
	return parts
}
