package nvme

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"

	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// paged is memory of whole pages, cut into parts of so many.
func paged(t *testing.T, pages, per int) (parts [][]byte) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, pages*alignBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for len(b) > 0 {
		n := min(per*alignBytes, len(b))
		parts, b = append(parts, b[:n:n]), b[n:]
	}
	return parts
}

// Blocks of all lengths are read past the page cache into whole pages, the last
// one of a file included, and by way of it into anything else.
func TestDirectReads(t *testing.T) {
	s, err := open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var items []tier.Item
	for i, n := range []int64{1, 4095, 4096, 4097, 30_000, 3 * 8192, 300_001} {
		items = append(items, tiertest.Make(uint64(i+1), n))
	}
	if err := s.Put(t.Context(), items); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		want := bytes.Join(it.Data, nil)
		e, _, err := s.look(it.Block.Hash)
		if err != nil {
			t.Fatal(err)
		}
		dst := paged(t, 80, 2)
		direct := s.readDirect(&e, dst)
		if s.noDirect.Load() {
			t.Skip("this file system has no direct reads")
		}
		if got := bytes.Join(dst, nil)[:len(want)]; !direct || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: direct %t, right %t", len(want), direct, bytes.Equal(got, want))
		}
		for name, dst := range map[string][][]byte{
			"exact": {make([]byte, len(want))}, "odd": {make([]byte, 1), make([]byte, 1+len(want))}, "pages": paged(t, 80, 3), "shifted": {paged(t, 81, 81)[0][8:]},
		} {
			if _, err := s.Get(t.Context(), it.Block.Hash, dst); err != nil || !bytes.Equal(bytes.Join(dst, nil)[:len(want)], want) {
				t.Errorf("%d bytes, %s: wrong, %v", len(want), name, err)
			}
		}
	}
}

// Where there are no direct reads, they are asked for once.
func TestNoDirectReads(t *testing.T) {
	s, err := open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	it := tiertest.Make(1, 5000)
	if err := s.Put(t.Context(), []tier.Item{it}); err != nil {
		t.Fatal(err)
	}
	s.noDirect.Store(true)
	e, _, err := s.look(it.Block.Hash)
	if err != nil {
		t.Fatal(err)
	}
	dst := paged(t, 2, 2)
	if s.readDirect(&e, dst) {
		t.Error("read past the page cache all the same")
	}
	if _, err := s.Get(t.Context(), it.Block.Hash, dst); err != nil || !bytes.Equal(dst[0][:5000], bytes.Join(it.Data, nil)) {
		t.Errorf("wrong, %v", err)
	}
}
