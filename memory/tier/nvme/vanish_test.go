package nvme

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// vanishings are ways to lose the file that is being written.
var vanishings = map[string]func(extents, head string) error{
	"the file is removed":          func(_, head string) error { return os.Remove(head) },
	"the folder is removed":        func(extents, _ string) error { return os.RemoveAll(extents) },
	"the folder is moved away":     func(extents, _ string) error { return os.Rename(extents, extents+".away") },
	"the name leads to a file":     func(_, head string) error { return supplant(head, make([]byte, 1<<20)) },
	"the name leads to a short":    func(_, head string) error { return supplant(head, []byte("short")) },
	"the name leads to a full dir": func(_, head string) error { return errors.Join(os.Remove(head), os.MkdirAll(head+"/x", 0o700)) },
	"the name leads by a link": func(_, head string) error {
		return errors.Join(os.Rename(head, head+".away"), os.Symlink(head+".away", head))
	},
}

// supplant puts another file in the place of one, as a restored copy would.
func supplant(name string, text []byte) error {
	return errors.Join(os.WriteFile(name+".new", text, 0o600), os.Rename(name+".new", name))
}

// only fails unless the store has these blocks, whole, and no others.
func only(t *testing.T, s *Store, ns ...uint64) {
	t.Helper()
	for _, n := range ns {
		it := tiertest.Make(n, 30_000)
		if err := tiertest.Holds(t.Context(), s, &it); err != nil {
			t.Errorf("block %d: %v", n, err)
		}
	}
	each := int64(0)
	err := s.Each(t.Context(), func(tier.Meta) error { each++; return nil })
	if u := s.Usage(); err != nil || each != int64(len(ns)) || u.Blocks != each || u.Live != each*30_000 {
		t.Errorf("%d blocks are named, %+v; want %d; %v", each, u, len(ns), err)
	}
}

func headOf(t *testing.T, s *Store) string {
	t.Helper()
	if s.head == nil {
		t.Fatal("nothing is being written")
	}
	return s.dir.extent(s.head.id)
}

// What Put says is stored is there after the store is opened again, whatever
// happened to the file that was written before; what was in that is lost and
// counted, not wrong.
func TestVanishedFile(t *testing.T) {
	for _, key := range [][]byte{nil, []byte("0123456789abcdef")} {
		for what, vanish := range vanishings {
			name := what
			if key != nil {
				name += ", sealed"
			}
			t.Run(name, func(t *testing.T) {
				cfg := Config{Dir: t.TempDir(), FileBytes: 1 << 20, Key: key}
				s, err := open(cfg)
				if err != nil {
					t.Fatal(err)
				}
				putAll(t, s, 1, 2, 3)
				if err := vanish(s.dir.path("extents"), headOf(t, s)); err != nil {
					t.Fatal(err)
				}
				// What vanished can be stored with what is new.
				putAll(t, s, 3, 4, 5)
				putAll(t, s, 6)
				if n := s.Usage().Lost; n != 3 {
					t.Errorf("%d blocks are lost, want 3", n)
				}
				only(t, s, 3, 4, 5, 6)
				if info, err := os.Stat(s.dir.path("extents")); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("the folder: %v, %v", info.Mode(), err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				again := mustOpen(t, cfg)
				only(t, again, 3, 4, 5, 6)
				if n := again.Usage().Lost; n != 0 {
					t.Errorf("%d blocks are lost since", n)
				}
				putAll(t, again, 7)
				only(t, again, 3, 4, 5, 6, 7)
			})
		}
	}
}

// All files are removed, not only the one that is written: the others are found
// out by the reclaimer, and one batch that fills several files is whole.
func TestVanishedFiles(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), FileBytes: 64 << 10}
	s, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(5) {
		putAll(t, s, n+1)
	}
	files, err := filepath.Glob(s.dir.path("extents", "*.kv"))
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			t.Fatal(err)
		}
	}
	// The first block finds room in the file that is gone; the batch ends in
	// another.
	putAll(t, s, 6, 7, 8, 9)
	if n := s.Usage().Lost; n != 1 {
		t.Errorf("%d blocks are lost, want that of the file that was written", n)
	}
	for more := true; more; {
		if more, err = s.reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Usage().Lost; n != 5 {
		t.Errorf("%d blocks are lost, want 5", n)
	}
	only(t, s, 6, 7, 8, 9)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, cfg)
	only(t, again, 6, 7, 8, 9)
	if n := again.Usage().Lost; n != 0 {
		t.Errorf("%d blocks are lost since", n)
	}
}

// Who reads or deletes what vanished finds nothing, and the store is used on.
func TestVanishedFileIsRead(t *testing.T) {
	s, err := open(Config{Dir: t.TempDir(), FileBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	putAll(t, s, 1, 2, 3)
	if err := os.Remove(headOf(t, s)); err != nil {
		t.Fatal(err)
	}
	it := tiertest.Make(1, 30_000)
	for range 2 {
		if err := tiertest.Holds(t.Context(), s, &it); !errors.Is(err, tier.ErrMissing) {
			t.Fatal(err)
		}
	}
	gone := tiertest.Make(2, 30_000)
	if err := s.Delete(t.Context(), []ieg.BlockHash{gone.Block.Hash}); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = s.reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Usage().Lost; n != 2 {
		t.Errorf("%d blocks are lost, want that which was read and that which was left", n)
	}
	putAll(t, s, 4)
	only(t, s, 4)
}

// The file that live blocks are copied to vanishes: they stay where they were.
func TestVanishedCopy(t *testing.T) {
	s, err := open(Config{Dir: t.TempDir(), FileBytes: 128 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	putAll(t, s, 1, 2, 3, 4)
	putAll(t, s, 5)
	var hs []ieg.BlockHash
	for _, n := range []uint64{1, 2, 3} {
		hs = append(hs, tiertest.Make(n, 30_000).Block.Hash)
	}
	if err := errors.Join(s.Delete(t.Context(), hs), os.Remove(headOf(t, s))); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		if more, err = s.reclaim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	only(t, s, 4)
	if n := s.Usage().Lost; n != 1 || len(s.files) != 1 {
		t.Errorf("%d blocks are lost, %d files left", n, len(s.files))
	}
}
