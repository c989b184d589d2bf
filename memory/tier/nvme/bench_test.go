package nvme

import (
	"encoding/binary"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/tiertest"
)

// A block of a small model: 256 tokens of 22.5 KiB, in pieces of 64 tokens as
// an arena has them. Eleven of them are a batch of about 64 MB.
const (
	benchBytes  = 256 * 23040
	benchPiece  = benchBytes / 4
	benchBlocks = 11
	// benchFiles is how many batches are written before the next replace them.
	benchFiles = 8
)

// pages is memory on page borders, as an arena's is.
func pages(b *testing.B, n int) []byte {
	b.Helper()
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { unix.Munmap(m) })
	return m
}

func benchItems(b *testing.B) []tier.Item {
	mem := pages(b, benchBlocks*benchBytes)
	copy(mem, tiertest.Bytes(ieg.BlockHash{}, int64(len(mem))))
	items := make([]tier.Item, benchBlocks)
	for i := range items {
		it := &items[i]
		it.Block = tiertest.Make(uint64(i), 1).Block
		it.Block.Tokens, it.Block.Bytes = make([]ieg.Token, ieg.BlockTokens), benchBytes
		for p := range 4 {
			at := i*benchBytes + p*benchPiece
			it.Data = append(it.Data, mem[at:at+benchPiece])
		}
	}
	return items
}

// rename gives the items of a batch names of their own.
func rename(items []tier.Item, batch int) (hs []ieg.BlockHash) {
	for i := range items {
		binary.BigEndian.PutUint64(items[i].Block.Hash[:], uint64(batch%benchFiles))
		items[i].Block.Hash[15] = byte(i)
		hs = append(hs, items[i].Block.Hash)
	}
	return hs
}

func benchStore(b *testing.B, key []byte) *Store {
	return mustOpen(b, Config{Key: key, FileBytes: 1 << 28})
}

// BenchmarkPut writes batches of 64 MB, durable one by one.
func BenchmarkPut(b *testing.B) {
	for _, c := range []struct {
		name string
		key  []byte
	}{{"plain", nil}, {"sealed", make([]byte, 16)}} {
		b.Run(c.name, func(b *testing.B) {
			s, items := benchStore(b, c.key), benchItems(b)
			b.SetBytes(benchBlocks * benchBytes)
			for i := 0; b.Loop(); i++ {
				hs := rename(items, i)
				if i >= benchFiles {
					b.StopTimer()
					if err := s.Delete(b.Context(), hs); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				if err := s.Put(b.Context(), items); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlainWrite writes the same with nothing around it.
func BenchmarkPlainWrite(b *testing.B) {
	items, dir := benchItems(b), b.TempDir()
	b.SetBytes(benchBlocks * benchBytes)
	for i := 0; b.Loop(); i++ {
		plainBatch(b, dir, i, items)
	}
}

func plainName(dir string, i int) string {
	return filepath.Join(dir, string(rune('a'+i%benchFiles)))
}

func plainBatch(b *testing.B, dir string, i int, items []tier.Item) {
	b.Helper()
	if i >= benchFiles {
		b.StopTimer()
		os.Remove(plainName(dir, i))
		b.StartTimer()
	}
	f, err := os.OpenFile(plainName(dir, i), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, it := range items {
		for _, p := range it.Data {
			if _, err := f.Write(p); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkGet reads blocks that are not in the page cache, one by one.
func BenchmarkGet(b *testing.B) {
	for _, c := range []struct {
		name string
		key  []byte
	}{{"plain", nil}, {"sealed", make([]byte, 16)}} {
		b.Run(c.name, func(b *testing.B) {
			s, items := benchStore(b, c.key), benchItems(b)
			var hs []ieg.BlockHash
			for i := range benchFiles {
				hs = append(hs, rename(items, i)...)
				if err := s.Put(b.Context(), items); err != nil {
					b.Fatal(err)
				}
			}
			dst := pages(b, benchBytes)
			parts := [][]byte{dst[:benchPiece], dst[benchPiece:]}
			b.SetBytes(benchBytes)
			for i := 0; b.Loop(); i++ {
				if _, err := s.Get(b.Context(), hs[i%len(hs)], parts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlainRead reads the same from plain files, one after the other.
func BenchmarkPlainRead(b *testing.B) {
	items, dir := benchItems(b), b.TempDir()
	for i := range benchFiles {
		plainBatch(b, dir, i, items)
	}
	dst := pages(b, benchBytes)
	b.SetBytes(benchBytes)
	var f *os.File
	for i := 0; b.Loop(); i++ {
		at := i % benchBlocks
		if at == 0 {
			if f != nil {
				b.StopTimer()
				unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
				f.Close()
				b.StartTimer()
			}
			var err error
			if f, err = os.Open(plainName(dir, i/benchBlocks)); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := f.ReadAt(dst, int64(at)*benchBytes); err != nil {
			b.Fatal(err)
		}
	}
	f.Close()
}

// fillIndex names n blocks of which there are no bytes.
func fillIndex(b *testing.B, s *Store, n int) {
	b.Helper()
	x := &extent{id: 1, fd: -1}
	tokens := encodeTokens(make([]ieg.Token, ieg.BlockTokens))
	wb := s.index.db.NewWriteBatch()
	defer wb.Cancel()
	set := func(k, v []byte) {
		if err := wb.Set(k, v); err != nil {
			b.Fatal(err)
		}
	}
	for i := range n {
		it := tiertest.Make(uint64(i), 1)
		m := metaOf(&it.Block)
		binary.BigEndian.PutUint64(m.Hash[:], uint64(i)*0x9E3779B97F4A7C15)
		e := entry{meta: m, file: 1, off: int64(i) * alignBytes}
		x.add(&e)
		set(hashKey(keyBlock, m.Hash), e.encode())
		set(hashKey(keyTokens, m.Hash), tokens)
		set(placeKey(1, e.off), encodeSpot(m.Hash, e.size()))
	}
	set(fileKey(1), x.encode())
	if err := wb.Flush(); err != nil {
		b.Fatal(err)
	}
	f, err := os.Create(s.dir.extent(1))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(x.end); err != nil {
		b.Fatal(err)
	}
}

var startBlocks = flag.Int("start-blocks", 100_000, "blocks of the store that BenchmarkStart opens")

// BenchmarkStart opens a store of many blocks and lists them.
func BenchmarkStart(b *testing.B) {
	blocks := *startBlocks
	cfg := Config{Dir: b.TempDir(), FileBytes: 1 << 40}
	s, err := Open(cfg)
	if err != nil {
		b.Fatal(err)
	}
	fillIndex(b, s, blocks)
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	var opening, listing time.Duration
	var heap uint64
	for b.Loop() {
		began := time.Now()
		if s, err = Open(cfg); err != nil {
			b.Fatal(err)
		}
		opened := time.Now()
		n := 0
		if err := s.Each(b.Context(), func(tier.Meta) error { n++; return nil }); err != nil || n != blocks {
			b.Fatal(n, err)
		}
		opening, listing = opening+opened.Sub(began), listing+time.Since(opened)
		b.StopTimer()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapAlloc)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(heap)/(1<<20), "MiB/heap")
	b.ReportMetric(opening.Seconds()/float64(b.N), "s/open")
	b.ReportMetric(listing.Seconds()/float64(b.N), "s/each")
}
