package nvme

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"ieg/memory/tier"
)

// disk is the size of the disk and what is free on it for us, in bytes.
func (d *folder) disk() (size, free int64, err error) {
	var st unix.Statfs_t
	err = again(func() error { return unix.Statfs(d.dir, &st) })
	return int64(st.Blocks) * st.Bsize, int64(st.Bavail) * st.Bsize, err
}

// human is a number of bytes as people are told it, with a decimal unit.
func human(n int64) string {
	x, unit := float64(n), 0
	for ; x >= 999.5 && unit < len(units)-1; unit++ {
		x /= 1000
	}
	return fmt.Sprintf("%.4g %s", math.Round(x*10)/10, units[unit])
}

var units = [...]string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}

// defaultReserve is the free disk that is kept of a disk of that size.
func defaultReserve(size int64) int64 {
	return max(MinReserve, min(ReserveBytes, size/reserveShare))
}

// full tells an error that more room would have prevented.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}

// room refuses what would leave less than keep free, or exceed the budget.
func (s *Store) room(need, keep int64) error {
	_, free, err := s.dir.disk()
	if err != nil {
		return s.fail(err)
	}
	if free-need < keep {
		return fmt.Errorf("%w: %s of the disk are free, %s are wanted and %s kept", tier.ErrFull, human(free), human(need), human(keep))
	}
	if size := s.cfg.Size; size > 0 && s.taken()+need > size {
		return fmt.Errorf("%w: %s of %s are taken, %s are wanted", tier.ErrFull, human(s.taken()), human(size), human(need))
	}
	return nil
}

// hurriedShare is the part of a file, 1 of 8, that must be dead before it is
// emptied in a hurry; see victim.
const hurriedShare = 8

// Room is what may still be taken: up to the reserve, and of the budget.
func (s *Store) Room() tier.Room {
	taking := s.taking.Load()
	r := tier.Room{Dead: max(taking-s.live.Load(), 0), Lag: taking / hurriedShare}
	if !s.life.enter() {
		return r
	}
	defer s.life.leave()
	if _, free, err := s.dir.disk(); err == nil {
		r.Left = free - s.cfg.Reserve
	}
	if size := s.cfg.Size; size > 0 {
		r.Left = min(r.Left, size-s.taken())
	}
	return r
}

// roomToPut is room after dead files went, if that is what it takes.
func (s *Store) roomToPut(need int64) error {
	err := s.room(need, s.cfg.Reserve)
	if !errors.Is(err, tier.ErrFull) {
		return err
	}
	s.pressed.Store(true)
	s.wake()
	if err := s.removeDead(); err != nil {
		return err
	}
	return s.room(need, s.cfg.Reserve)
}

// roomToDelete gives up the ballast when the index could not be written.
func (s *Store) roomToDelete() error {
	_, free, err := s.dir.disk()
	if err != nil {
		return s.fail(err)
	}
	if free >= deleteRoom {
		return nil
	}
	if err := s.dropBallast(); err != nil {
		return s.fail(err)
	}
	if _, free, err = s.dir.disk(); err != nil {
		return s.fail(err)
	}
	if free < deleteRoom {
		return fmt.Errorf("%w: %s of the disk are free, to delete takes %s", tier.ErrFull, human(free), human(deleteRoom))
	}
	return nil
}

func (s *Store) dropBallast() error {
	s.ballast.Store(0)
	if err := os.Remove(s.dir.path("ballast")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// makeBallast takes the ballast if there is plenty; without it the store does
// as well until the disk is full.
func (s *Store) makeBallast() {
	_, free, err := s.dir.disk()
	if err != nil || s.ballast.Load() > 0 || free < s.cfg.Reserve+ballastBytes {
		return
	}
	f, err := os.OpenFile(s.dir.path("ballast"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	if again(func() error { return unix.Fallocate(int(f.Fd()), 0, 0, ballastBytes) }) == nil {
		s.ballast.Store(ballastBytes)
	}
}
