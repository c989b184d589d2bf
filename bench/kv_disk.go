package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/bench/report"
	"ieg/memory/tier/host"
)

const (
	// diskBlock is a block of the benchmark's model; diskBatch of them are
	// about 64 MB.
	diskBlock = ieg.BlockTokens * kvTokenBytes
	diskBatch = 11
)

// kvDisk: blocks to the NVMe tier and back beside a plain program.
func kvDisk(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "kv-disk-write", Unit: "×", Bound: 0.7, Better: report.Higher, Against: "a program writing the same blocks, fdatasync per 64 MB"},
		{Name: "kv-disk-read", Unit: "×", Bound: 0.8, Better: report.Higher, Against: "the same, reading them; nothing in the page cache"},
	}
	batches := 8
	if e.Tiny {
		batches = 2
	}
	arena, err := newArena(2 * diskBatch * (diskBlock + arenaPageBytes))
	if err != nil {
		return rows, err
	}
	d := &diskRun{arena: arena, batches: batches}
	d.fill()
	var write, read []float64
	for round := range 2*e.Rounds - 1 {
		ours, err := d.ours(ctx, filepath.Join(e.dir, "kv-disk-store"+strconv.Itoa(round)), uint64(round))
		if err != nil {
			return rows, err
		}
		theirs, err := d.plain(filepath.Join(e.dir, "kv-disk-plain"))
		if err != nil {
			return rows, err
		}
		mb := float64(batches*diskBatch*diskBlock) / 1e6
		write = append(write, theirs.write.Seconds()/ours.write.Seconds())
		read = append(read, theirs.read.Seconds()/ours.read.Seconds())
		rows[0].Detail = fmt.Sprintf("%.0f against %.0f MB/s in the last round", mb/ours.write.Seconds(), mb/theirs.write.Seconds())
		rows[1].Detail = fmt.Sprintf("%.0f against %.0f MB/s in the last round", mb/ours.read.Seconds(), mb/theirs.read.Seconds())
		e.logf("      round %d: write %s; read %s", round, rows[0].Detail, rows[1].Detail)
	}
	rows[0].Measure(write)
	rows[1].Measure(read)
	return rows, nil
}

// diskRun has the bytes of a batch in the arena, and room to read one.
type diskRun struct {
	arena    *host.Arena
	batches  int
	from, to [][]ieg.Page // by block of a batch
	digest   []uint64
}

// diskTimes are of one round.
type diskTimes struct{ write, read time.Duration }

func (d *diskRun) fill() {
	s := &kvStore{}
	for i := range diskBatch {
		d.from, d.to = append(d.from, s.pages(diskBlock)), append(d.to, s.pages(diskBlock))
		var sum uint64
		for p, b := range d.arena.Parts(d.from[i], diskBlock) {
			randomHalves(b, uint64(100*i+p))
			sum = d.arena.Digest(sum, b)
		}
		for _, b := range d.arena.Parts(d.to[i], diskBlock) {
			clear(b) // no page of it is missing
		}
		d.digest = append(d.digest, sum)
	}
}

// ours stores and fetches through the pager.
func (d *diskRun) ours(ctx context.Context, dir string, seed uint64) (t diskTimes, err error) {
	s, err := newKVStore(ctx, dir, d.arena)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.close(), os.RemoveAll(dir)) }()
	n := d.batches * diskBatch
	blocks := chain(seed, n, diskBlock)
	from, to := make([][]ieg.Page, n), make([][]ieg.Page, n)
	for i := range blocks {
		blocks[i].Digest = d.digest[i%diskBatch]
		from[i], to[i] = d.from[i%diskBatch], d.to[i%diskBatch]
	}
	if t.write, err = s.move(ctx, ieg.MoveStore, blocks, from); err != nil {
		return t, err
	}
	if err = s.uncache(); err != nil {
		return t, err
	}
	// A batch's pages are used again by the next one.
	for i := 0; i < n; i += diskBatch {
		took, err := s.move(ctx, ieg.MoveFetch, blocks[i:i+diskBatch], to[i:i+diskBatch])
		if err != nil {
			return t, err
		}
		t.read += took
	}
	return t, nil
}

// plain writes and reads one file.
func (d *diskRun) plain(path string) (t diskTimes, err error) {
	f, err := os.Create(path)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	fd, at := int(f.Fd()), int64(0)
	began := time.Now()
	for range d.batches {
		for _, pages := range d.from {
			if at, err = whole(at)(unix.Pwritev(fd, d.arena.Parts(pages, diskBlock), at)); err != nil {
				return t, err
			}
		}
		if err := unix.Fdatasync(fd); err != nil {
			return t, err
		}
	}
	t.write = time.Since(began)
	if err := uncache(path); err != nil {
		return t, err
	}
	began, at = time.Now(), 0
	for range d.batches {
		for _, pages := range d.to {
			if at, err = whole(at)(unix.Preadv(fd, d.arena.Parts(pages, diskBlock), at)); err != nil {
				return t, err
			}
		}
	}
	t.read = time.Since(began)
	return t, nil
}

// whole refuses a block that was moved in part, and tells where the next is.
func whole(at int64) func(int, error) (int64, error) {
	return func(n int, err error) (int64, error) {
		if err == nil && n != diskBlock {
			err = fmt.Errorf("%d of %d bytes of a block", n, diskBlock)
		}
		return at + diskBlock, err
	}
}
