package nvme

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// said opens the store in a folder and returns what it logs while it opens, and
// how many blocks it says are lost.
func said(t *testing.T, dir string) (string, int64) {
	t.Helper()
	var b bytes.Buffer
	s, err := open(Config{Dir: dir, FileBytes: 64 << 10, Log: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	lost := s.Usage().Lost
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), lost
}

// Another schema is moved aside and said so, once.
func TestSchemaIsSaid(t *testing.T) {
	dir := t.TempDir()
	if text, _ := said(t, dir); text != "" {
		t.Errorf("a new folder: %s", text)
	}
	if err := os.WriteFile(filepath.Join(dir, "schema"), []byte("ieg kv blocks 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, lost := said(t, dir)
	for _, want := range []string{`found="ieg kv blocks 0"`, `expected="ieg kv blocks 2"`, "moved_to=" + filepath.Join(dir, "old-0"), "removed in the background"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Count(text, "\n") != 1 || lost != 0 {
		t.Errorf("%d blocks are lost; said: %s", lost, text)
	}
	if text, _ := said(t, dir); text != "" {
		t.Errorf("said again: %s", text)
	}
}

// Blocks whose files are gone, or were cut, are counted, and said so once.
func TestLostBlocksAreCounted(t *testing.T) {
	dir := t.TempDir()
	s, err := open(Config{Dir: dir, FileBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(6) {
		putAll(t, s, n+1)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "extents", "*.kv"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	if err := errors.Join(os.Remove(files[0]), os.Truncate(files[1], 40_000)); err != nil {
		t.Fatal(err)
	}
	text, lost := said(t, dir)
	if lost != 3 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "blocks=3 files=2 first="+files[0]) {
		t.Errorf("%d blocks are lost; said: %s", lost, text)
	}
	if text, lost := said(t, dir); text != "" || lost != 0 {
		t.Errorf("said again: %d, %s", lost, text)
	}
}

func TestHuman(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 33_554_432: "33.6 MB", 1 << 30: "1.1 GB", 999_600: "1 MB", 123_456_789_012: "123.5 GB"} {
		if got := human(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
