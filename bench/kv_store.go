package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/kv"
	"ieg/memory/pager"
	"ieg/memory/tier"
	"ieg/memory/tier/host"
	"ieg/memory/tier/nvme"
)

// kvStore is an arena with the pager and the NVMe tier behind it, as a node
// has them.
type kvStore struct {
	dir   string
	arena *host.Arena
	pager *pager.Pager
	done  chan ieg.MoveDone
	next  ieg.MoveID
	page  ieg.Page // the next one that nobody has
}

func newArena(bytes int64) (*host.Arena, error) {
	return host.New(host.Config{Bytes: bytes, PageBytes: arenaPageBytes})
}

// newKVStore opens a tier in an empty folder.
func newKVStore(ctx context.Context, dir string, arena *host.Arena) (*kvStore, error) {
	s := &kvStore{dir: dir, arena: arena, done: make(chan ieg.MoveDone, 1024)}
	_, err := s.open(ctx, pager.CompressNone)
	return s, err
}

// open starts the pager and returns how long it takes until it may be used.
func (s *kvStore) open(ctx context.Context, c pager.Compression) (time.Duration, error) {
	up := make(chan string, 8)
	var err error
	began := time.Now()
	s.pager, err = pager.New(pager.Config{
		Open: func() (tier.Store, error) {
			return nvme.Open(nvme.Config{Dir: s.dir, Size: 2 * storeBytes})
		},
		Arena: s.arena, Size: storeBytes, Compression: c,
		Done: func(d ieg.MoveDone) { s.done <- d },
		State: func(is bool, why string) {
			if is {
				why = ""
			}
			up <- why
		},
	})
	if err != nil {
		return 0, err
	}
	select {
	case why := <-up:
		if why != "" {
			return 0, fmt.Errorf("the NVMe tier: %s", why)
		}
		return time.Since(began), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// close ends the tier; its files stay.
func (s *kvStore) close() error {
	ctx, stop := context.WithTimeout(context.Background(), ReadyTimeout)
	defer stop()
	return s.pager.Close(ctx)
}

// pages takes pages for so many bytes; they are never given back.
func (s *kvStore) pages(bytes int64) []ieg.Page {
	var out []ieg.Page
	for ; bytes > 0; bytes -= arenaPageBytes {
		out = append(out, s.page)
		s.page++
	}
	return out
}

// move moves blocks, all asked for at once, and returns how long it takes
// until all are done. Of stores it takes in what is told of the copies.
func (s *kvStore) move(ctx context.Context, kind ieg.MoveKind, blocks []ieg.Block, pages [][]ieg.Page) (time.Duration, error) {
	first := s.next
	began := time.Now()
	for i := range blocks {
		s.pager.Move(ieg.Move{ID: s.next, Kind: kind, Block: blocks[i], Pages: pages[i]})
		s.next++
	}
	for range blocks {
		select {
		case d := <-s.done:
			if d.Err != "" {
				return 0, fmt.Errorf("block %d of the NVMe tier: %s", d.ID-first, d.Err)
			}
			b := &blocks[d.ID-first]
			b.Codec, b.Bytes, b.Digest = d.Codec, d.Bytes, d.Digest
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return time.Since(began), nil
}

// uncache writes the files of the store to the disk and drops them from the
// page cache.
func (s *kvStore) uncache() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "extents", "*"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no extent files in %s", s.dir)
	}
	for _, f := range files {
		if err == nil {
			err = uncache(f)
		}
	}
	return err
}

// uncache drops a file from the page cache.
func uncache(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// chain makes the full blocks of a seeded text, each so many bytes.
func chain(seed uint64, n int, bytes int64) []ieg.Block {
	root := kv.Root("bench", "")
	parent, out := root, make([]ieg.Block, n)
	for i := range out {
		tokens := make([]ieg.Token, ieg.BlockTokens)
		for k := range tokens {
			tokens[k] = ieg.Token(mix(seed<<32+uint64(i*len(tokens)+k)) >> 33)
		}
		out[i] = ieg.Block{Hash: kv.Name(parent, tokens), Parent: parent, Root: root, Start: int32(i) * ieg.BlockTokens, Tokens: tokens, Bytes: bytes}
		parent = out[i].Hash
	}
	return out
}

// mix spreads the bits of a number.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// randomHalves fills b with f16 elements of about the size of KV.
func randomHalves(b []byte, seed uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		x := mix(seed<<40+uint64(i)) &^ 0x4000_4000_4000_4000 // below 2
		binary.LittleEndian.PutUint64(b[i:], x)
	}
}
