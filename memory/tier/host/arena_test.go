package host

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ieg"
	"ieg/memory/codec"
)

// shared is what engines need of an arena; devices/engine declares the same.
type shared interface {
	Pages() int
	PageBytes() int
	Page(p ieg.Page) []byte
	Digest(sum uint64, b []byte) uint64
	Size(c ieg.Codec, n int) int
	Encode(c ieg.Codec, kvType string, dst, src []byte)
	Decode(c ieg.Codec, kvType string, dst, src []byte)
}

var _ shared = (*Arena)(nil)

// role is the variable that makes the test binary play an engine's process.
const role = "IEG_HOST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		os.Exit(m.Run())
	}
	if err := child(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

const (
	pageBytes = 64 << 10
	pages     = 5
)

func make5(t *testing.T) *Arena {
	t.Helper()
	a, err := New(Config{Bytes: pages*pageBytes + 100, PageBytes: pageBytes})
	if err != nil {
		t.Fatal(err)
	}
	if a.Pages() != pages || a.PageBytes() != pageBytes || a.Bytes() != pages*pageBytes {
		t.Fatalf("the arena has %d pages of %d, %d bytes", a.Pages(), a.PageBytes(), a.Bytes())
	}
	return a
}

func fill(a *Arena, p ieg.Page) {
	for i := range a.Page(p) {
		a.Page(p)[i] = byte(i>>8) ^ byte(i) + byte(p)
	}
}

// child packs page 4 into page 1, and proves page 2.
func child() error {
	a, err := Open(3, pages*pageBytes, pageBytes)
	if err != nil {
		return err
	}
	n := a.Size(ieg.CodecINT8, pageBytes)
	a.Encode(ieg.CodecINT8, codec.F16, a.Page(1)[:n], a.Page(4))
	fmt.Printf("%x", a.Digest(0, a.Page(2)))
	return nil
}

func TestNodeAndChild(t *testing.T) {
	a := make5(t)
	fill(a, 2)
	fill(a, 4)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"=child")
	cmd.ExtraFiles = []*os.File{a.File()}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if want := fmt.Sprintf("%x", a.Digest(0, a.Page(2))); string(out) != want {
		t.Errorf("the child's digest of page 2 is %s, want %s", out, want)
	}
	n := a.Size(ieg.CodecINT8, pageBytes)
	want := make([]byte, n)
	a.Encode(ieg.CodecINT8, codec.F16, want, a.Page(4))
	if !bytes.Equal(a.Page(1)[:n], want) {
		t.Error("what the child packed is not what the node packs")
	}
}

func TestPagesAreApart(t *testing.T) {
	a := make5(t)
	for p := range ieg.Page(pages) {
		fill(a, p)
	}
	for p := range ieg.Page(pages) {
		b := a.Page(p)
		if len(b) != pageBytes || cap(b) != pageBytes {
			t.Fatalf("page %d is %d of %d bytes", p, len(b), cap(b))
		}
		if b[0] != byte(p) {
			t.Errorf("page %d begins with %d", p, b[0])
		}
	}
}

func TestParts(t *testing.T) {
	a := make5(t)
	for _, c := range []struct {
		n    int64
		want []int
	}{
		{0, nil}, {1, []int{1}}, {pageBytes, []int{pageBytes}},
		{pageBytes + 1, []int{pageBytes, 1}}, {3 * pageBytes, []int{pageBytes, pageBytes, pageBytes}},
	} {
		parts := a.Parts([]ieg.Page{3, 0, 4}, c.n)
		if len(parts) != len(c.want) {
			t.Fatalf("%d bytes are %d parts, want %d", c.n, len(parts), len(c.want))
		}
		for i, p := range parts {
			if len(p) != c.want[i] || &p[0] != &a.Page([]ieg.Page{3, 0, 4}[i])[0] {
				t.Errorf("%d bytes: part %d has %d bytes, or is of another page", c.n, i, len(p))
			}
		}
	}
}

func TestPanics(t *testing.T) {
	a := make5(t)
	for name, f := range map[string]func(){
		"no such page":    func() { a.Page(pages) },
		"the last number": func() { a.Page(^ieg.Page(0)) },
		"too few pages":   func() { a.Parts([]ieg.Page{0}, pageBytes+1) },
		"less than none":  func() { a.Parts(nil, -1) },
		"a foreign page":  func() { a.Parts([]ieg.Page{pages}, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestValidate(t *testing.T) {
	const total = 24 << 30
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Bytes: 4 << 30}, ""},
		{Config{Bytes: total, PageBytes: 4096}, ""},
		{Config{Bytes: 64 << 30}, "the arena of 64 GiB does not fit into 24 GiB of memory: lower kv.host"},
		{Config{Bytes: 100}, "an arena of 100 bytes holds no page of 262144: raise kv.host"},
		{Config{Bytes: -1}, "holds no page"},
		{Config{Bytes: 1 << 30, PageBytes: 5000}, "power of two"},
		{Config{Bytes: 1 << 30, PageBytes: 2048}, "power of two"},
		{Config{Bytes: 1 << 30, PageBytes: 128 << 20}, "power of two"},
		{Config{Bytes: 1 << 30, PageBytes: -4096}, "power of two"},
	} {
		err := c.config.fits(total)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
	if _, err := New(Config{Bytes: 1 << 60}); err == nil || !strings.Contains(err.Error(), "lower kv.host") {
		t.Errorf("an arena beyond the host's memory: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	a := make5(t)
	for _, c := range []struct {
		bytes     int64
		pageBytes int
	}{
		{pages * pageBytes, 0}, {pages * pageBytes, 5000}, {pages * pageBytes, 128 << 10},
		{4 * pageBytes, pageBytes}, {0, pageBytes}, {1 << 62, minPageBytes},
	} {
		if _, err := Open(a.File().Fd(), c.bytes, c.pageBytes); err == nil {
			t.Errorf("opened as %d bytes in pages of %d", c.bytes, c.pageBytes)
		}
	}
}

// An arena that can have neither huge nor locked pages is an arena.
func TestWishes(t *testing.T) {
	a, err := New(Config{Bytes: 1 << 30, Lock: true, Huge: true})
	if err != nil {
		t.Fatal(err)
	}
	if a.PageBytes() != DefaultPageBytes || a.Pages() != 4096 {
		t.Errorf("the arena has %d pages of %d", a.Pages(), a.PageBytes())
	}
	fill(a, 4095)
	for _, n := range a.Notes() {
		if !strings.Contains(n, "huge") && !strings.Contains(n, "locked") {
			t.Errorf("note %q", n)
		}
	}
}
