package nvme

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"

	"ieg/memory/tier"
)

// The other way to keep the bytes: as values of the index, in its value log.

func valueLog(b *testing.B, dir string) *badger.DB {
	b.Helper()
	db, err := badger.Open(badger.DefaultOptions(dir).WithLogger(nil).WithSyncWrites(true).
		WithCompression(options.None).WithValueThreshold(64 << 10))
	if err != nil {
		b.Fatal(err)
	}
	return db
}

func putValues(b *testing.B, db *badger.DB, items []tier.Item) {
	b.Helper()
	err := db.Update(func(txn *badger.Txn) error {
		for i := range items {
			if err := txn.Set(items[i].Block.Hash[:], bytes.Join(items[i].Data, nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkValueLogPut(b *testing.B) {
	db, items := valueLog(b, b.TempDir()), benchItems(b)
	defer db.Close()
	b.SetBytes(benchBlocks * benchBytes)
	for i := 0; b.Loop(); i++ {
		rename(items, i)
		putValues(b, db, items)
	}
}

// cold opens the database anew, without what the page cache has of it.
func cold(b *testing.B, db *badger.DB, dir string) *badger.DB {
	b.Helper()
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range list {
		f, err := os.Open(name)
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close()); err != nil {
			b.Fatal(err)
		}
	}
	return valueLog(b, dir)
}

func BenchmarkValueLogGet(b *testing.B) {
	dir := b.TempDir()
	db, items := valueLog(b, dir), benchItems(b)
	for i := range benchFiles {
		rename(items, i)
		putValues(b, db, items)
	}
	dst := make([]byte, benchBytes)
	b.SetBytes(benchBytes)
	for i := 0; b.Loop(); i++ {
		if i%(benchBlocks*benchFiles) == 0 {
			b.StopTimer()
			db = cold(b, db, dir)
			b.StartTimer()
		}
		rename(items, i/benchBlocks)
		err := db.View(func(txn *badger.Txn) error {
			item, err := txn.Get(items[i%benchBlocks].Block.Hash[:])
			if err != nil {
				return err
			}
			return item.Value(func(v []byte) error { copy(dst, v); return nil })
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	db.Close()
}
