package enginetest

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"ieg/devices/engine"
	"ieg/devices/engine/synth"
)

// OpenArena maps a file as an arena without codecs; children of this package
// use it.
func OpenArena(fd uintptr, bytes int64, pageBytes int) (engine.Arena, error) {
	if pageBytes < 1 {
		return nil, fmt.Errorf("pages of %d bytes", pageBytes)
	}
	mem, err := mapFile(int(fd), bytes)
	if err != nil {
		return nil, err
	}
	return synth.OverArena(mem, pageBytes), nil
}

// mapFile maps a file that is surely as long as said: touching what lies
// beyond its end would end the process.
func mapFile(fd int, bytes int64) ([]byte, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	if st.Size < bytes {
		return nil, fmt.Errorf("descriptor %d has %d bytes, not %d", fd, st.Size, bytes)
	}
	mem, err := unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of descriptor %d: %w", bytes, fd, err)
	}
	return mem, nil
}

// Memory is plain memory as an arena, for engines in the test's process.
func Memory() engine.Arena { return synth.NewArena(arenaBytes/arenaPage, arenaPage) }

// share makes a file of memory the arena of cfg's children and of the suite.
func share(t testing.TB, cfg *engine.Config, o *Options) {
	t.Helper()
	fd, err := unix.MemfdCreate("arena", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatalf("memfd: %v", err)
	}
	f := os.NewFile(uintptr(fd), "arena")
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(arenaBytes); err != nil {
		t.Fatal(err)
	}
	mem, err := mapFile(fd, arenaBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mem); err != nil {
			t.Errorf("unmap: %v", err)
		}
	})
	cfg.Arena, cfg.ArenaBytes, cfg.ArenaPage = f, arenaBytes, arenaPage
	o.Arena = synth.OverArena(mem, arenaPage)
}
