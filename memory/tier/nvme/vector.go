package nvme

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// errShort: the file ends before the bytes do.
var errShort = fmt.Errorf("the file is cut: %w", io.ErrUnexpectedEOF)

// cut are the first n bytes of the parts, nil if they have fewer.
func cut(parts [][]byte, n int64) [][]byte {
	out := make([][]byte, 0, len(parts))
	for _, p := range parts {
		if n == 0 {
			break
		}
		k := min(n, int64(len(p)))
		if k > 0 {
			out = append(out, p[:k:k])
		}
		n -= k
	}
	if n > 0 {
		return nil
	}
	return out
}

// length is that of all parts together.
func length(parts [][]byte) (n int64) {
	for _, p := range parts {
		n += int64(len(p))
	}
	return n
}

// transfer calls op, preadv or pwritev, until so many bytes of the parts went, or
// more. It changes the slice of parts.
func transfer(op func(int, [][]byte, int64) (int, error), fd int, parts [][]byte, off, bytes int64) error {
	for bytes > 0 {
		n, err := op(fd, parts[:min(len(parts), vectors)], off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		if n == 0 {
			return errShort
		}
		off, bytes = off+int64(n), bytes-int64(n)
		for n > 0 {
			k := min(n, len(parts[0]))
			n -= k
			if parts[0] = parts[0][k:]; len(parts[0]) == 0 {
				parts = parts[1:]
			}
		}
	}
	return nil
}

func readAt(fd int, parts [][]byte, off int64) error {
	return transfer(unix.Preadv, fd, parts, off, length(parts))
}

func writeAt(fd int, parts [][]byte, off int64) error {
	return transfer(unix.Pwritev, fd, parts, off, length(parts))
}

// again repeats a call that a signal broke off.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func openFile(path string, flags int) (int, error) {
	for {
		// What is no regular file must not make anybody wait.
		fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
