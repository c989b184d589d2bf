package nvme

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
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
		"record": func(dir string) error {
			x, err := openIndex(filepath.Join(dir, "index"), nil, slog.New(slog.DiscardHandler))
			if err != nil {
				return err
			}
			return errors.Join(x.update(func(c *change) error { return c.set(fileKey(1), []byte("nonsense")) }), x.close())
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

// What can't be decoded is missing, and what replaces it is read.
func TestDamagedEntry(t *testing.T) {
	s := mustOpen(t, Config{})
	putAll(t, s, 1, 2, 3)
	one, two := tiertest.Make(1, 30_000), tiertest.Make(2, 30_000)
	err := s.index.update(func(c *change) error {
		return errors.Join(
			c.set(hashKey(keyBlock, one.Block.Hash), []byte("nonsense")),
			c.delete(hashKey(keyTokens, two.Block.Hash)),
			c.set(append(placeKey(1, 0), 'x'), nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range []tier.Item{one, two} {
		if err := tiertest.Holds(t.Context(), s, &it); !errors.Is(err, tier.ErrMissing) {
			t.Errorf("a damaged block: %v, want ErrMissing", err)
		}
	}
	n := 0
	if err := s.Each(t.Context(), func(tier.Meta) error { n++; return nil }); err != nil || n != 2 {
		t.Errorf("Each lists %d blocks, %v", n, err)
	}
	putAll(t, s, 1, 2)
	for _, it := range []tier.Item{one, two} {
		if err := tiertest.Holds(t.Context(), s, &it); err != nil {
			t.Error(err)
		}
	}
}

// A fault in a mapping of the index is an error, and the end of the store.
func TestFault(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Config{Dir: dir})
	putAll(t, s, 1, 2, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "fault", dir)
	cmd.Stderr = nil
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func faultChild(dir string) error {
	s, err := open(Config{Dir: dir})
	if err != nil {
		return err
	}
	tables, err := filepath.Glob(filepath.Join(dir, "index", "*.sst"))
	if err != nil || len(tables) == 0 {
		return fmt.Errorf("no tables: %w", err)
	}
	for _, name := range tables {
		if err := os.Truncate(name, 0); err != nil {
			return err
		}
	}
	ctx, it := context.Background(), tiertest.Make(1, 30_000)
	for what, err := range map[string]error{
		"Get":  tiertest.Holds(ctx, s, &it),
		"Each": s.Each(ctx, func(tier.Meta) error { return nil }),
		"Put":  s.Put(ctx, []tier.Item{it}),
	} {
		if !errors.Is(err, tier.ErrUnusable) {
			return fmt.Errorf("%s says %w, want ErrUnusable", what, err)
		}
	}
	return nil
}
