package nvme

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg/memory/tier"
)

// Two processes on one folder: the second refuses, until the first has ended.
func TestLocked(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "hold", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the first process says %q, %v", line, err)
	}
	_, err = Open(Config{Dir: dir})
	if !errors.Is(err, tier.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second opening: %v, want ErrLocked with the folder", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, Config{Dir: dir})
	if _, err := Open(Config{Dir: dir}); !errors.Is(err, tier.ErrLocked) {
		t.Errorf("opened twice in one process: %v, want ErrLocked", err)
	}
}

func TestUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(Config{Dir: filepath.Join(file, "kv")})
	if !errors.Is(err, tier.ErrUnusable) {
		t.Errorf("a folder below a file: %v, want ErrUnusable", err)
	}
}

// An index that can't be read, or whose opening ends the process again and
// again, is set aside.
func TestDamagedIndex(t *testing.T) {
	for what, harm := range map[string]func(dir string) error{
		"manifest": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "index", "MANIFEST"), []byte("nonsense"), 0o600)
		},
		"died": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "opening"), []byte("..."), 0o600)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, Config{Dir: dir})
			putAll(t, s, 1, 2, 3)
			if err := errors.Join(s.Close(), harm(dir)); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, Config{Dir: dir})
			if u := s.Usage(); u.Blocks != 0 || u.Live != 0 {
				t.Errorf("usage %+v", u)
			}
			putAll(t, s, 4)
			if _, err := os.Stat(filepath.Join(dir, "opening")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the mark of an opening is left: %v", err)
			}
		})
	}
}
