package host

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Warm pages are there, unchanged; what is no page is left alone.
func TestWarm(t *testing.T) {
	const page = 64 << 10
	a, err := New(Config{Bytes: 16 * page, PageBytes: page})
	if err != nil {
		t.Fatal(err)
	}
	a.Page(1)[7] = 9
	a.Warm(0, 4)
	a.Warm(14, 4) // beyond the end
	var st unix.Stat_t
	if err := unix.Fstat(int(a.File().Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if got := st.Blocks * 512; got != 4*page {
		t.Errorf("%d bytes of the arena are in memory, not %d", got, 4*page)
	}
	if a.Page(1)[7] != 9 {
		t.Error("a page has changed")
	}
}
