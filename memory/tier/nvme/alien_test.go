package nvme

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// What has the name of an extent file and is none costs its blocks, nothing
// else: nobody waits for it, and the store is used on.
func TestAliens(t *testing.T) {
	for what, put := range map[string]func(string) error{
		"a pipe":   func(p string) error { return unix.Mkfifo(p, 0o600) },
		"a folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"a link":   func(p string) error { return os.Symlink("/dev/zero", p) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s, err := Open(Config{Dir: dir, FileBytes: 64 << 10})
			if err != nil {
				t.Fatal(err)
			}
			putAll(t, s, 1, 2, 3, 4)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(dir, "extents", "*.kv"))
			if err != nil || len(files) < 2 {
				t.Fatal(files, err)
			}
			if err := errors.Join(os.Remove(files[0]), put(files[0])); err != nil {
				t.Fatal(err)
			}
			again := mustOpen(t, Config{Dir: dir, FileBytes: 64 << 10})
			gone, there := 0, 0
			for n := range uint64(4) {
				it := tiertest.Make(n+1, 30_000)
				switch err := tiertest.Holds(t.Context(), again, &it); {
				case err == nil:
					there++
				case errors.Is(err, tier.ErrMissing):
					gone++
				default:
					t.Error(err)
				}
			}
			if gone == 0 || there == 0 {
				t.Errorf("%d blocks are gone, %d there", gone, there)
			}
			putAll(t, again, 5)
		})
	}
}
