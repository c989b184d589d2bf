package nvme

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// errNoMount: this machine lets nobody mount a file system.
var errNoMount = errors.New("no tmpfs can be mounted here")

// TestFullDisk runs on a small disk of its own, a tmpfs in a mount namespace.
func TestFullDisk(t *testing.T) {
	cmd := child(t, "tmpfs", t.TempDir())
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err := cmd.Run()
	if err != nil && (strings.Contains(said.String(), errNoMount.Error()) || errors.Is(err, syscall.EPERM)) {
		t.Skipf("%v: %v %s", errNoMount, err, said.String())
	}
	if err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}
}

func tmpfsChild(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=192m"); err != nil {
		return fmt.Errorf("%w: %w", errNoMount, err)
	}
	return errors.Join(fillDisk(dir), readOnly(dir))
}

// filler takes the space of a disk that others use, too.
func filler(dir string, leave int64) (string, error) {
	_, free, err := (&folder{dir: dir}).disk()
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "filler")
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	return name, errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, free-leave), f.Close())
}

const fullBlock = 1 << 20

// put1 puts blocks one by one until that fails; it returns those stored.
func put1(s *Store, from, to uint64) ([]uint64, error) {
	var ns []uint64
	for n := from; n < to; n++ {
		if err := s.Put(context.Background(), []tier.Item{tiertest.Make(n, fullBlock)}); err != nil {
			return ns, err
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// whole checks that all of the blocks can be read.
func whole(s *Store, ns []uint64) error {
	for _, n := range ns {
		it := tiertest.Make(n, fullBlock)
		if err := tiertest.Holds(context.Background(), s, &it); err != nil {
			return fmt.Errorf("block %d: %w", n, err)
		}
	}
	return nil
}

func drop(s *Store, ns []uint64) error {
	var hs []ieg.BlockHash
	for _, n := range ns {
		hs = append(hs, tiertest.Make(n, fullBlock).Block.Hash)
	}
	return s.Delete(context.Background(), hs)
}

// reclaimAll does what the reclaimer would.
func reclaimAll(s *Store) error {
	for {
		if more, err := s.reclaim(context.Background()); err != nil || !more {
			return err
		}
	}
}

func fillDisk(dir string) error {
	s, err := open(Config{Dir: filepath.Join(dir, "kv"), FileBytes: 8 << 20, Reserve: MinReserve})
	if err != nil {
		return err
	}
	defer s.Close()
	s.makeBallast()

	// Up to the reserve, and not into it.
	ns, err := put1(s, 0, 1000)
	if u := s.Usage(); !errors.Is(err, tier.ErrFull) || len(ns) < 40 || u.Free < MinReserve {
		return fmt.Errorf("%d blocks fit, then %w; usage %+v", len(ns), err, u)
	}
	if err := whole(s, ns); err != nil {
		return err
	}

	// Deleting makes room again.
	if err := errors.Join(drop(s, ns[:8]), reclaimAll(s)); err != nil {
		return err
	}
	ns = ns[8:]
	more, err := put1(s, 1000, 1004)
	if err != nil {
		return fmt.Errorf("after a delete: %w", err)
	}
	ns = append(ns, more...)

	// Others take even the reserve: no writes, but reads and deletes.
	name, err := filler(dir, 4<<20)
	if err != nil {
		return err
	}
	if _, err := put1(s, 2000, 2001); !errors.Is(err, tier.ErrFull) {
		return fmt.Errorf("on a full disk Put says %w", err)
	}
	if err := errors.Join(drop(s, ns[:8]), whole(s, ns[8:])); err != nil {
		return fmt.Errorf("on a full disk: %w", err)
	}
	ns = ns[8:]
	if err := errors.Join(reclaimAll(s), os.Remove(name)); err != nil {
		return err
	}

	// The disk is full in the middle of a batch: nothing of it is left.
	if name, err = filler(dir, 20<<20); err != nil {
		return err
	}
	s.cfg.Reserve = -1 << 40
	before := s.Usage()
	var items []tier.Item
	for n := range uint64(40) {
		items = append(items, tiertest.Make(3000+n, fullBlock))
	}
	err = s.Put(context.Background(), items)
	if after := s.Usage(); !errors.Is(err, tier.ErrFull) || after.Blocks != before.Blocks || after.Free < before.Free {
		return fmt.Errorf("a batch that does not fit: %w; usage %+v, before %+v", err, after, before)
	}
	s.cfg.Reserve = MinReserve
	if err := os.Remove(name); err != nil {
		return err
	}
	more, err = put1(s, 4000, 4004)
	return errors.Join(err, whole(s, append(ns, more...)))
}

// readOnly: a folder that can't be written is unusable.
func readOnly(dir string) error {
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return err
	}
	if _, err := Open(Config{Dir: filepath.Join(dir, "kv")}); !errors.Is(err, tier.ErrUnusable) {
		return fmt.Errorf("a read-only folder: %w, want ErrUnusable", err)
	}
	return nil
}

// TestFileLimit meets a bound on the length of files, which a disk without room
// resembles, on any machine.
func TestFileLimit(t *testing.T) {
	cmd := child(t, "limit", t.TempDir())
	cmd.Stderr = nil
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func limitChild(dir string) error {
	signal.Ignore(unix.SIGXFSZ)
	const most = 12<<20 + 1000 // more than any file of the index
	limit := unix.Rlimit{Cur: most, Max: most}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	s, err := open(Config{Dir: dir, FileBytes: 64 << 20})
	if err != nil {
		return err
	}
	defer s.Close()
	ns, err := put1(s, 0, 1000)
	if !errors.Is(err, tier.ErrFull) || len(ns) != 12 {
		return fmt.Errorf("%d blocks fit, then %w", len(ns), err)
	}
	info, err := os.Stat(s.dir.extent(1))
	if err != nil || info.Size() != 12<<20 {
		return fmt.Errorf("the file has %v bytes, %w", info.Size(), err)
	}
	if err := errors.Join(whole(s, ns), drop(s, ns[:10]), whole(s, ns[10:])); err != nil {
		return err
	}
	s.cfg.FileBytes = 4 << 20
	more, err := put1(s, 100, 110)
	return errors.Join(err, reclaimAll(s), whole(s, append(ns[10:], more...)))
}

// TestSize: the budget holds, and what is deleted comes back.
func TestSize(t *testing.T) {
	s, err := open(Config{Dir: t.TempDir(), Size: 24 << 20, FileBytes: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ns, err := put1(s, 0, 100)
	if u := s.Usage(); !errors.Is(err, tier.ErrFull) || len(ns) < 15 || u.Disk > 24<<20 {
		t.Fatalf("%d blocks fit, then %v; usage %+v", len(ns), err, u)
	}
	// Every other block: no file is dead, none less than half live.
	var gone, left []uint64
	for i, n := range ns {
		if i%2 == 0 {
			gone = append(gone, n)
		} else {
			left = append(left, n)
		}
	}
	if err := drop(s, gone); err != nil {
		t.Fatal(err)
	}
	few, err := put1(s, 1000, 1100)
	if !errors.Is(err, tier.ErrFull) || len(few) > 2 {
		t.Errorf("before anything is reclaimed %d blocks fit, then %v", len(few), err)
	}
	left = append(left, few...)
	if err := reclaimAll(s); err != nil { // in a hurry since Put was refused
		t.Fatal(err)
	}
	more, err := put1(s, 2000, 2000+uint64(len(gone)-len(few))-2)
	if err := errors.Join(err, whole(s, append(left, more...))); err != nil {
		t.Errorf("after reclaiming: %v; usage %+v", err, s.Usage())
	}
}
