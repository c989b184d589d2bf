package nvme

import (
	"testing"

	"ieg"
	"ieg/memory/tier/tiertest"
)

// Room ends at the reserve and at the budget, whichever comes first; what is
// deleted can be had back.
func TestRoom(t *testing.T) {
	_, free, err := (&folder{dir: t.TempDir()}).disk()
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, Config{Reserve: free + 1<<40})
	if r := s.Room(); r.Left > -1<<39 {
		t.Errorf("%+v with a disk that has less free than is kept", r)
	}
	s = mustOpen(t, Config{Size: 64 << 20, Reserve: MinReserve})
	before := s.Room()
	if before.Left <= 0 || before.Left > 64<<20 || before.Dead != 0 {
		t.Errorf("%+v of 64 MiB", before)
	}
	putAll(t, s, 1, 2, 3)
	after := s.Room()
	if took := before.Left - after.Left; took < 90_000 {
		t.Errorf("three blocks took %d bytes", took)
	}
	if err := s.Delete(t.Context(), []ieg.BlockHash{tiertest.Make(2, 30_000).Block.Hash}); err != nil {
		t.Fatal(err)
	}
	if r := s.Room(); r.Dead < 30_000 {
		t.Errorf("%+v after a delete", r)
	}
}
