package host

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Warm pages are there, unchanged; what is no page is left alone.
func TestWarm(t *testing.T) {
	a, err := New(Config{Bytes: 1 << 20, PageBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	a.Page(1)[7] = 9
	a.Warm(0, 4)
	a.Warm(14, 4) // beyond the end
	resident := make([]byte, 1<<20/unix.Getpagesize())
	mem := a.mem.Bytes()
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)), uintptr(unsafe.Pointer(&resident[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for i, r := range resident {
		if got, want := r&1 == 1, i < 4*(64<<10)/unix.Getpagesize(); got != want {
			t.Fatalf("small page %d is in memory: %t", i, got)
		}
	}
	if a.Page(1)[7] != 9 {
		t.Error("a page has changed")
	}
}
