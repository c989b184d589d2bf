package mem

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Options ask for what makes memory better. All of it is optional for the
// host: see Notes.
type Options struct {
	// Huge asks for huge pages: those reserved on the host if they suffice,
	// else transparent ones.
	Huge bool
	// Lock keeps the memory from being swapped out once it was touched, as far
	// as RLIMIT_MEMLOCK allows. It holds for the pages that this process has
	// touched.
	Lock bool
}

// Map is shared memory of a fixed size.
type Map struct {
	file  *os.File
	bytes []byte
	notes []string
}

// Bytes is the memory. It is valid until the process ends.
func (m *Map) Bytes() []byte { return m.bytes }

// File is the memory file, to be handed to children. It is the map's: don't
// close it.
func (m *Map) File() *os.File { return m.file }

// Notes say in plain words what was asked for and is not there, and what to
// do about it.
func (m *Map) Notes() []string { return m.notes }

func (m *Map) note(format string, a ...any) { m.notes = append(m.notes, fmt.Sprintf(format, a...)) }

// Create makes a memory file and maps it. The length is a multiple of the
// host's page size; the name shows in /proc only.
func Create(name string, bytes int64, o Options) (*Map, error) {
	if err := checkSize(bytes); err != nil {
		return nil, err
	}
	if len(name) > maxNameBytes {
		return nil, fmt.Errorf("the name of shared memory has %d bytes; at most %d", len(name), maxNameBytes)
	}
	m := &Map{}
	if o.Huge {
		m.createHuge(name, bytes)
	}
	if m.bytes == nil {
		if err := m.create(name, bytes, 0); err != nil {
			return nil, err
		}
		if o.Huge {
			m.adviseHuge()
		}
	}
	m.preferNear(nodes(onlineNodes))
	if o.Lock {
		m.lock()
	}
	return m, nil
}

// Open maps the memory file that a parent handed down, bytes long. The
// descriptor is the map's from then on; after an error it is the caller's. A
// file of another length, or one whose size could change, is an error.
func Open(fd uintptr, bytes int64) (*Map, error) {
	if err := checkSize(bytes); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(fd), &st); err != nil {
		return nil, fmt.Errorf("shared memory, descriptor %d: %w", fd, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("descriptor %d is no shared memory", fd)
	}
	if st.Size != bytes {
		return nil, fmt.Errorf("shared memory has %d bytes, not %d", st.Size, bytes)
	}
	have, err := unix.FcntlInt(fd, unix.F_GET_SEALS, 0)
	if err != nil || have&seals != seals {
		return nil, fmt.Errorf("descriptor %d is no shared memory whose size is sealed", fd)
	}
	unix.CloseOnExec(int(fd))
	b, err := mapShared(fd, bytes)
	if err != nil {
		return nil, err
	}
	return &Map{file: os.NewFile(fd, "shared memory"), bytes: b}, nil
}

// seals keep the size, and themselves.
const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

func checkSize(bytes int64) error {
	page := int64(os.Getpagesize())
	if bytes <= 0 || bytes > maxBytes || bytes%page != 0 {
		return fmt.Errorf("shared memory of %d bytes: want a multiple of %d, at most %d", bytes, page, int64(maxBytes))
	}
	return nil
}

// create makes, sizes, seals and maps the file, with flags of memfd_create.
func (m *Map) create(name string, bytes int64, flags int) error {
	fd, err := memfd(name, flags)
	if err != nil {
		return fmt.Errorf("make shared memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err = unix.Ftruncate(fd, bytes); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("shared memory of %d bytes: %w", bytes, err)
	}
	b, err := mapShared(uintptr(fd), bytes)
	if err != nil {
		file.Close()
		return err
	}
	m.file, m.bytes = file, b
	return nil
}

// memfd makes a memory file that can't be executed. Kernels before 6.3 don't
// know that flag.
func memfd(name string, flags int) (int, error) {
	flags |= unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		return unix.MemfdCreate(name, flags)
	}
	return fd, err
}
