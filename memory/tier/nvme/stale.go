package nvme

import (
	"sync"

	"golang.org/x/sys/unix"
)

// stale are pages of the page cache that were read and won't be again. To give
// them up takes a fifth of the time that it took to read them, and keeps the
// cores from reading on: so that is done when nobody reads, or they are many.
type stale struct {
	mu      sync.Mutex
	reading int
	list    []wasRead
}

// wasRead is a part of an open file.
type wasRead struct {
	fd        int
	off, size int64
}

func (t *stale) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading++
}

// end takes in what was read, and returns what is to be given up now.
func (t *stale) end(r wasRead) (list []wasRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reading--
	if t.list = append(t.list, r); t.reading > 0 && len(t.list) < staleMax {
		return nil
	}
	list, t.list = t.list, nil
	return list
}

func giveUp(list []wasRead) {
	for _, r := range list {
		_ = unix.Fadvise(r.fd, r.off, r.size, unix.FADV_DONTNEED)
		unix.Close(r.fd)
	}
}
