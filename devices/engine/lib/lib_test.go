package lib

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ieg"
)

// pack makes an archive and its manifest: two libraries and a link.
func pack(t *testing.T, content string) (archive, manifest []byte) {
	t.Helper()
	var out, list bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	put := func(h *tar.Header, body string) {
		h.Size, h.Mode = int64(len(body)), 0o644
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	put(&tar.Header{Name: "./", Typeflag: tar.TypeDir}, "")
	for _, name := range []string{"libggml-base.so", "libllama." + Version + ".so"} {
		body := name + content
		put(&tar.Header{Name: "./" + name, Typeflag: tar.TypeReg}, body)
		fmt.Fprintf(&list, "%x %d %s\n", sha256.Sum256([]byte(body)), len(body), name)
	}
	put(&tar.Header{Name: "./libllama.so", Typeflag: tar.TypeSymlink, Linkname: "libllama." + Version + ".so"}, "")
	fmt.Fprintf(&list, "link libllama.%s.so libllama.so\n", Version)
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), list.Bytes()
}

func TestUnpackOnce(t *testing.T) {
	cache := t.TempDir()
	archive, manifest := pack(t, "one")
	first, err := dir(cache, archive, manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := Verify(first); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := dir(cache, archive, manifest)
	if err != nil || again != first {
		t.Fatalf("second start: %q, %v; want %q", again, err, first)
	}
	if after, err := os.Stat(first); err != nil || !os.SameFile(before, after) {
		t.Fatalf("second start replaced the folder (%v)", err)
	}
	// Another build lies beside it.
	archive2, manifest2 := pack(t, "two")
	other, err := dir(cache, archive2, manifest2)
	if err != nil || other == first {
		t.Fatalf("other build: %q, %v", other, err)
	}
	if err := errors.Join(Verify(first), Verify(other)); err != nil {
		t.Fatal(err)
	}
}

func TestManyProcessesAtOnce(t *testing.T) {
	cache := t.TempDir()
	archive, manifest := pack(t, "x")
	// What a killed process left is in the way.
	if err := os.MkdirAll(filepath.Join(cache, "lib", unpackPrefix+"dead", "new"), 0o755); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			d, err := dir(cache, archive, manifest)
			if err != nil {
				t.Error(err)
				return
			}
			if err := Verify(d); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := os.ReadDir(filepath.Join(cache, "lib"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range list {
		names = append(names, d.Name())
	}
	if len(names) != 2 || names[0] != ".lock" {
		t.Fatalf("left behind: %q", names)
	}
}

func TestDamagedFolderIsReplaced(t *testing.T) {
	cache := t.TempDir()
	archive, manifest := pack(t, "x")
	d, err := dir(cache, archive, manifest)
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(d, "libggml-base.so")
	for name, damage := range map[string]func() error{
		"short":   func() error { return os.Truncate(lib, 3) },
		"gone":    func() error { return os.Remove(lib) },
		"no link": func() error { return os.Remove(filepath.Join(d, "libllama.so")) },
		"no list": func() error { return os.Remove(filepath.Join(d, manifestName)) },
	} {
		if err := damage(); err != nil {
			t.Fatal(name, err)
		}
		if check(d, manifest) == nil {
			t.Errorf("%s: not noticed", name)
		}
		if got, err := dir(cache, archive, manifest); err != nil || got != d {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := Verify(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Same size, other bytes: only a full read can tell.
	st, err := os.Stat(lib)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lib, make([]byte, st.Size()), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Verify(d); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("Verify of changed bytes: %v", err)
	}
}

func TestFetchedFolder(t *testing.T) {
	cache := t.TempDir()
	_, err := dir(cache, nil, nil)
	if !errors.Is(err, ieg.ErrUnsupported) || !strings.Contains(err.Error(), "make engine") {
		t.Fatalf("nothing there: %v", err)
	}
	archive, manifest := pack(t, "x")
	fetched := filepath.Join(cache, "lib", folderName)
	if err := os.MkdirAll(filepath.Dir(fetched), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unpack(fetched, archive, manifest); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string][]byte{"fetched only": nil, "same as embedded": archive} {
		if d, err := dir(cache, a, manifest); err != nil || d != fetched {
			t.Errorf("%s: %q, %v", name, d, err)
		}
	}
	archive2, manifest2 := pack(t, "y")
	if d, err := dir(cache, archive2, manifest2); err != nil || d == fetched {
		t.Errorf("other than embedded: %q, %v", d, err)
	}
}

func TestBadArchives(t *testing.T) {
	archive, manifest := pack(t, "x")
	other, _ := pack(t, "y")
	lines := strings.SplitAfter(string(manifest), "\n")
	for name, c := range map[string]struct{ archive, manifest []byte }{
		"cut":           {archive[:len(archive)/2], manifest},
		"no gzip":       {[]byte("hello"), manifest},
		"other bytes":   {other, manifest},
		"file too many": {archive, []byte(strings.Join(lines[1:], ""))},
		"file missing":  {archive, []byte(string(manifest) + "link a b\n")},
		"bad manifest":  {archive, []byte("x\n")},
	} {
		cache := t.TempDir()
		if d, err := dir(cache, c.archive, c.manifest); err == nil {
			t.Errorf("%s: accepted as %s", name, d)
		}
		if left, _ := filepath.Glob(filepath.Join(cache, "lib", "*")); len(left) != 1 || filepath.Base(left[0]) != ".lock" {
			t.Errorf("%s: left %q", name, left)
		}
	}
}

func TestPinnedVersion(t *testing.T) {
	pins, err := os.ReadFile("../../../scripts/pins.sh")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^LIB_VERSION=(\S+)`).FindSubmatch(pins)
	if m == nil || string(m[1]) != Version {
		t.Errorf("scripts/pins.sh has LIB_VERSION %q, this package %q", m, Version)
	}
}

// The price of a start with everything in place: well below 5 ms.
func BenchmarkDir(b *testing.B) {
	cache, err := CacheDir()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := Dir(cache); err != nil {
		b.Skip("no libraries here:", err)
	}
	for b.Loop() {
		if _, err := Dir(cache); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte("link a b\n"))
	f.Add(fmt.Appendf(nil, "%x 12 lib.so\n", sha256.Sum256(nil)))
	f.Add([]byte("00 -1 ../x\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseManifest(text)
		if err != nil {
			if !errors.Is(err, ieg.ErrProtocol) {
				t.Fatalf("error without identity: %v", err)
			}
			return
		}
		for _, e := range list {
			if filepath.Base(e.name) != e.name || e.name == ".." || e.size < 0 || e.size > maxFileBytes {
				t.Fatalf("accepted %+v", e)
			}
		}
	})
}
