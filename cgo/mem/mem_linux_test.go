package mem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// role is the variable that makes the test binary play another process.
const role = "IEG_MEM_ROLE"

func TestMain(m *testing.M) {
	play, ok := map[string]func() error{"": nil, "child": child, "locker": locker}[os.Getenv(role)]
	if !ok || play == nil {
		os.Exit(m.Run())
	}
	if err := play(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// as runs this binary in a role and returns what it printed.
func as(t *testing.T, name string, files ...*os.File) string {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+name)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, out)
	}
	return string(out)
}

const size = 1 << 20

// child answers each byte of the shared memory by its complement.
func child() error {
	m, err := Open(3, size)
	if err != nil {
		return err
	}
	for i, b := range m.Bytes() {
		if b != byte(i*7) {
			return fmt.Errorf("byte %d is %d", i, b)
		}
		m.Bytes()[i] = ^b
	}
	if err := unix.Ftruncate(3, size/2); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("the memory could be cut: %v", err)
	}
	flags, err := unix.FcntlInt(3, unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		return fmt.Errorf("the descriptor would be handed on: %#x, %v", flags, err)
	}
	return nil
}

func create(t *testing.T, o Options) *Map {
	t.Helper()
	m, err := Create("test", size, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Bytes()) != size {
		t.Fatalf("%d bytes are mapped, want %d", len(m.Bytes()), size)
	}
	return m
}

func TestTwoProcessesShareBytes(t *testing.T) {
	m := create(t, Options{})
	for i := range m.Bytes() {
		m.Bytes()[i] = byte(i * 7)
	}
	as(t, "child", m.File())
	for i, b := range m.Bytes() {
		if b != ^byte(i*7) {
			t.Fatalf("byte %d is %d after the child, want %d", i, b, ^byte(i*7))
		}
	}
}

func TestSize(t *testing.T) {
	m := create(t, Options{})
	fd := int(m.File().Fd())
	for _, n := range []int64{0, size - 4096, size + 4096} {
		if err := unix.Ftruncate(fd, n); !errors.Is(err, unix.EPERM) {
			t.Errorf("resized to %d: %v", n, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err == nil {
		t.Error("further seals can be added")
	}
	for _, n := range []int64{-4096, 0, 100, maxBytes + 4096} {
		if _, err := Create("test", n, Options{}); err == nil {
			t.Errorf("made a map of %d bytes", n)
		}
	}
	if _, err := Create(strings.Repeat("n", maxNameBytes+1), size, Options{}); err == nil {
		t.Error("took a name that is too long")
	}
}

func TestOpenRefuses(t *testing.T) {
	sealed := create(t, Options{}).File()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, err := memfd("unsealed", 0)
	if err != nil {
		t.Fatal(err)
	}
	loose := os.NewFile(uintptr(fd), "unsealed")
	defer loose.Close()
	if err := loose.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		fd    uintptr
		bytes int64
		want  string
	}{
		{"another size", sealed.Fd(), size / 2, "has 1048576 bytes, not 524288"},
		{"no page", sealed.Fd(), 100, "multiple of"},
		{"a plain file", file.Fd(), size, "sealed"},
		{"a pipe", r.Fd(), size, "is no shared memory"},
		{"an unsealed one", loose.Fd(), size, "sealed"},
		{"nothing", 1 << 20, size, "bad file descriptor"},
	} {
		if _, err := Open(c.fd, c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// What nobody touches costs nothing.
func TestLazy(t *testing.T) {
	const much = 64 << 30
	m, err := Create("much", much, Options{Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Bytes()[0], m.Bytes()[much-1] = 1, 2
	var st unix.Stat_t
	if err := unix.Fstat(int(m.File().Fd()), &st); err != nil {
		t.Fatal(err)
	}
	if taken := st.Blocks * 512; taken == 0 || taken > 4<<20 {
		t.Errorf("two touched bytes take %d bytes", taken)
	}
}

// Huge pages are used or their lack is told; the memory is there either way.
func TestHuge(t *testing.T) {
	m, err := Create("huge", 4<<20, Options{Huge: true})
	if err != nil {
		t.Fatal(err)
	}
	copy(m.Bytes(), "bytes")
	if !bytes.HasPrefix(m.Bytes(), []byte("bytes")) {
		t.Error("the memory does not keep bytes")
	}
	reserved := count(filepath.Join(hugePages, "free_hugepages")) >= 2
	mode := chosen(thpShared)
	if off := mode == "never" || mode == "deny"; off && !reserved && !strings.Contains(strings.Join(m.Notes(), ";"), "huge") {
		t.Errorf("huge pages are off, the notes are %q", m.Notes())
	}
}

// locker runs as a process that may lock 64 KiB.
func locker() error {
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	caps[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	if err := unix.Capset(&header, &caps[0]); err != nil {
		return err
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: 64 << 10}); err != nil {
		return err
	}
	for range 2 { // the second finds the limit used up
		m, err := Create("locked", size, Options{Lock: true})
		if err != nil {
			return err
		}
		m.Bytes()[size-1] = 1
		fmt.Println(strings.Join(m.Notes(), "; "))
	}
	return nil
}

func TestLockBeyondTheLimit(t *testing.T) {
	want := "64 KiB of memory are locked (RLIMIT_MEMLOCK), 1 MiB were asked for: raise LimitMEMLOCK in the unit\n" +
		"memory is not locked (cannot allocate memory): 64 KiB may be locked (RLIMIT_MEMLOCK), 1 MiB were asked for: raise LimitMEMLOCK in the unit\n"
	if got := as(t, "locker"); got != want {
		t.Errorf("the notes are\n%swant\n%s", got, want)
	}
}

func TestPreferNear(t *testing.T) {
	m := create(t, Options{})
	m.preferNear(2) // as on a host with two nodes
	for _, n := range m.Notes() {
		if !strings.Contains(n, "NUMA") {
			t.Errorf("note %q", n)
		}
	}
	m.notes, m.bytes = nil, m.bytes[1:] // an address that the kernel refuses
	m.preferNear(1)
	if len(m.Notes()) != 0 {
		t.Errorf("one node: %q", m.Notes())
	}
	m.preferNear(2)
	if len(m.Notes()) != 1 {
		t.Errorf("a refusal is told by %q", m.Notes())
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]int{"0\n": 1, "0-1\n": 2, "0-3,8,10-11\n": 7, "": 1, "x-y": 1, "3-1": 1} {
		file := filepath.Join(t.TempDir(), "online")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := nodes(file); got != want {
			t.Errorf("%q are %d nodes, want %d", text, got, want)
		}
	}
	if got := nodes(filepath.Join(t.TempDir(), "none")); got != 1 {
		t.Errorf("no list is %d nodes, want 1", got)
	}
	for n, want := range map[int64]string{100: "100 bytes", 8 << 10: "8 KiB", 1536 << 10: "1.5 MiB", 4 << 30: "4 GiB", 3 << 40: "3 TiB"} {
		if got := human(n); got != want {
			t.Errorf("%d bytes are %q, want %q", n, got, want)
		}
	}
}
