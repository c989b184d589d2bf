package backend

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ieg"
	"ieg/devices/engine/lib"
)

// archive packs files as the package manager does.
func archive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for name, body := range files {
		if err := tw.WriteHeader(&tar.Header{Name: name, Size: int64(len(body)), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fakeNPM puts a package manager that delivers data before all others.
func fakeNPM(t *testing.T, data []byte) {
	t.Helper()
	dir := t.TempDir()
	tgz := filepath.Join(dir, "data")
	if err := os.WriteFile(tgz, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte("#!/bin/sh\ncp "+tgz+" pack.tgz\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func pinned(data []byte) Backend {
	sum := sha512.Sum512(data)
	return Backend{Name: "test", pkg: "p", inner: "in", suffix: ".x.v1", sum: base64.StdEncoding.EncodeToString(sum[:])}
}

func TestAdd(t *testing.T) {
	data := archive(t, map[string]string{
		"package/LICENSE": "l", "package/bins/in/libllama.x.v1.so": "a", "package/bins/in/libggml.x.v1.so": "b",
		"package/bins/in/libggml-cpu-zen4.so": "c", "package/bins/in/libllama-common.so": "no", "package/../../../evil.so": "no",
		"package/bins/other/libx.so": "no",
	})
	fakeNPM(t, data)
	b, cache := pinned(data), t.TempDir()
	if b.Installed(cache) {
		t.Error("installed before it was added")
	}
	dir, err := b.Add(context.Background(), cache, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := lib.Verify(dir); err != nil || !b.Installed(cache) {
		t.Errorf("verify: %v", err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "libllama.so")); err != nil || target != "libllama.x.v1.so" {
		t.Errorf("link: %q, %v", target, err)
	}
	for _, gone := range []string{"libllama-common.so", "evil.so", "libx.so"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); err == nil {
			t.Errorf("%s was unpacked", gone)
		}
	}
	// A damaged folder is replaced.
	if err := os.WriteFile(filepath.Join(dir, "libggml-cpu-zen4.so"), []byte("z"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Add(context.Background(), cache, func(string) {}); err != nil || lib.Verify(dir) != nil {
		t.Errorf("repair: %v, %v", err, lib.Verify(dir))
	}
	left, _ := filepath.Glob(filepath.Join(cache, "lib", ".add-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAnotherArchiveIsNotUnpacked(t *testing.T) {
	good := archive(t, map[string]string{"package/LICENSE": "l"})
	fakeNPM(t, archive(t, map[string]string{"package/LICENSE": "another"}))
	cache := t.TempDir()
	_, err := pinned(good).Add(context.Background(), cache, func(string) {})
	if !errors.Is(err, ieg.ErrProtocol) || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("another archive: %v", err)
	}
	// The right archive without the libraries is refused too.
	fakeNPM(t, good)
	_, err = pinned(good).Add(context.Background(), cache, func(string) {})
	if !errors.Is(err, ieg.ErrProtocol) || !strings.Contains(err.Error(), "libllama.x.v1.so is not in the archive") {
		t.Errorf("an archive without libraries: %v", err)
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Find("tpu"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "vulkan") {
		t.Errorf("%v", err)
	}
	for _, b := range All() {
		if raw, err := base64.StdEncoding.DecodeString(b.sum); err != nil || len(raw) != sha512.Size {
			t.Errorf("%s: pin %q", b.Name, b.sum)
		}
	}
}

func FuzzLay(f *testing.F) {
	f.Add(archive(f, map[string]string{"package/bins/in/libllama.x.v1.so": "a", "package/bins/in/libggml.x.v1.so": "b"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		tgz := filepath.Join(dir, "a.tgz")
		if err := os.WriteFile(tgz, data, 0o600); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(dir, "out")
		if err := pinned(data).lay(tgz, out); err != nil {
			return
		}
		if err := lib.Verify(out); err != nil {
			t.Fatal(err)
		}
	})
}
