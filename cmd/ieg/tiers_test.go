package main

import (
	"os"
	"path/filepath"
	"testing"

	"ieg/cmd/ieg/config"
)

// The disk of a folder is known before the folder is there.
func TestDiskBytes(t *testing.T) {
	dir := t.TempDir()
	if got, want := diskBytes(filepath.Join(dir, "not", "yet")), diskBytes(dir); got != want || want <= 0 {
		t.Errorf("%d bytes, its parent's disk has %d", got, want)
	}
}

// The least budget is left on a full disk, so that what is there is read; what
// the tier has already counts as its own.
func TestNVMeBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kv")
	if got := nvmeBytes(5<<30, dir); got != 5<<30 {
		t.Errorf("%d bytes, as set are %d", got, 5<<30)
	}
	if got := nvmeBytes(config.AutoSize, "/proc/self/kv"); got != config.NVMeMin {
		t.Errorf("%d bytes where no disk has room, not %d", got, config.NVMeMin)
	}
	empty := nvmeBytes(config.AutoSize, dir)
	if empty < config.NVMeMin || empty > NVMeMost {
		t.Errorf("%d bytes", empty)
	}
	if err := os.MkdirAll(filepath.Join(dir, "extents"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "extents", "0000000000000001.kv"))
	if err == nil {
		err = f.Truncate(64 << 30) // sparse: it takes no room
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := nvmeBytes(config.AutoSize, dir); got < min(empty+10<<30, NVMeMost) {
		t.Errorf("%d bytes with 64 GiB of its own, %d without", got, empty)
	}
}
