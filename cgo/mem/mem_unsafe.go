//go:build linux

package mem

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// mapShared maps a file for reading and writing through the C library.
func mapShared(fd uintptr, bytes int64) ([]byte, error) {
	mmap, err := purego.Dlsym(purego.RTLD_DEFAULT, "mmap")
	if err != nil {
		return nil, fmt.Errorf("look up mmap: %w", err)
	}
	addr, _, errno := purego.SyscallN(mmap, 0, uintptr(bytes),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, fd, 0)
	if addr == ^uintptr(0) {
		return nil, fmt.Errorf("map %d bytes of shared memory: %w", bytes, syscall.Errno(errno))
	}
	return unsafe.Slice((*byte)(pointer(addr)), bytes), nil
}

// pointer turns an address of C memory into a pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// lockTouched locks what was or will be touched of b.
func lockTouched(b []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MLOCK2, address(b), uintptr(len(b)), unix.MLOCK_ONFAULT)
	return failure(errno)
}

// preferLocal makes the pages of b come from the node of the processor that
// first touches them. The policy is the file's, so it holds in each process.
func preferLocal(b []byte) error {
	const preferred, noNode = 1, 0 // MPOL_PREFERRED without a node
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, address(b), uintptr(len(b)), preferred, noNode, 0, 0)
	return failure(errno)
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// failure is nil without an error number.
func failure(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
