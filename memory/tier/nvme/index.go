package nvme

import (
	"context"
	"encoding/binary"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"ieg"
	"ieg/memory/tier"
)

// index is the Badger database. Its reads may be called from any goroutine,
// its updates by one at a time.
type index struct {
	db    *badger.DB
	wrote atomic.Int64 // bytes of entries, as they go to the write-ahead log
	base  int64        // what Badger had counted when this index was opened
}

func openIndex(dir string, key []byte, log *slog.Logger) (*index, error) {
	o := badger.DefaultOptions(dir).
		WithLogger(quiet{log}).
		WithSyncWrites(true).
		WithDetectConflicts(false). // updates come one at a time
		WithCompression(options.None).
		WithMemTableSize(memTableBytes).
		WithNumMemtables(memTables).
		WithBaseTableSize(tableBytes).
		WithValueLogFileSize(valueLogBytes).
		WithValueThreshold(memTableBytes / 8). // all values stay in the tree
		WithNumCompactors(2).
		WithBlockCacheSize(0).
		WithIndexCacheSize(indexCacheBytes)
	o.TableSizeMultiplier = 1 // a compaction holds many tables in memory
	if len(key) > 0 {
		o = o.WithEncryptionKey(key).WithBlockCacheSize(blockCacheBytes)
	}
	x := &index{base: counted()}
	err := guard(func() (err error) {
		x.db, err = badger.Open(o)
		return err
	})
	if err != nil {
		return nil, err
	}
	return x, nil
}

// guard turns a fault in the index's mappings (a file cut, a sector that can't
// be read) and any panic of it into an error. It reaches this goroutine only:
// the index's own are out of reach.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the index broke down: %v", p)
		}
	}()
	return f()
}

func (x *index) view(f func(*badger.Txn) error) error {
	return guard(func() error { return x.db.View(f) })
}

// update makes the changes of f durable, all or none.
func (x *index) update(f func(*change) error) error {
	return guard(func() error {
		return x.db.Update(func(txn *badger.Txn) error { return f(&change{txn, x}) })
	})
}

func (x *index) close() error { return guard(x.db.Close) }

// written is what went to the disk, in bytes. Badger's own counters are those
// of the process.
func (x *index) written() int64 { return x.wrote.Load() + counted() - x.base }

func (x *index) disk() int64 {
	lsm, vlog := x.db.Size()
	return lsm + vlog
}

// counted sums what the process's Badger databases wrote into tables.
func counted() (n int64) {
	if v, ok := expvar.Get("badger_write_bytes_l0").(*expvar.Int); ok {
		n += v.Value()
	}
	if m, ok := expvar.Get("badger_write_bytes_compaction").(*expvar.Map); ok {
		m.Do(func(kv expvar.KeyValue) {
			if v, ok := kv.Value.(*expvar.Int); ok {
				n += v.Value()
			}
		})
	}
	return n
}

// change is a transaction that writes.
type change struct {
	txn *badger.Txn
	x   *index
}

func (c *change) set(key, value []byte) error {
	c.x.wrote.Add(int64(len(key) + len(value)))
	return c.txn.Set(key, value)
}

func (c *change) delete(key []byte) error {
	c.x.wrote.Add(int64(len(key)))
	return c.txn.Delete(key)
}

// put names a block. Without tokens those that are there stay.
func (c *change) put(e *entry, tokens []byte) error {
	err := errors.Join(
		c.set(hashKey(keyBlock, e.meta.Hash), e.encode()),
		c.set(placeKey(e.file, e.off), encodeSpot(e.meta.Hash, e.size())))
	if tokens != nil {
		err = errors.Join(err, c.set(hashKey(keyTokens, e.meta.Hash), tokens))
	}
	return err
}

func (c *change) drop(e *entry) error {
	return errors.Join(
		c.delete(hashKey(keyBlock, e.meta.Hash)),
		c.delete(hashKey(keyTokens, e.meta.Hash)),
		c.delete(placeKey(e.file, e.off)))
}

// find is a block's entry. One that can't be decoded is not known.
func find(txn *badger.Txn, h ieg.BlockHash) (e entry, known bool, err error) {
	item, err := txn.Get(hashKey(keyBlock, h))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return e, false, nil
	}
	if err == nil {
		err = item.Value(func(b []byte) (err error) {
			e, err = decodeEntry(h, b)
			return err
		})
	}
	if errors.Is(err, errEncoding) {
		return e, false, nil
	}
	return e, err == nil, err
}

// block is a block's entry with its tokens. Without these it is not known.
func (x *index) block(h ieg.BlockHash) (e entry, tokens []ieg.Token, known bool, err error) {
	err = x.view(func(txn *badger.Txn) error {
		var err error
		if e, known, err = find(txn, h); err != nil || !known {
			return err
		}
		item, err := txn.Get(hashKey(keyTokens, h))
		if err == nil {
			err = item.Value(func(b []byte) (err error) {
				tokens, err = decodeTokens(b, e.meta.N)
				return err
			})
		}
		if errors.Is(err, badger.ErrKeyNotFound) || errors.Is(err, errEncoding) {
			known, err = false, nil
		}
		return err
	})
	return e, tokens, known, err
}

// day is what was written of late; a record that can't be read says nothing.
func (x *index) day() (d tier.Day, err error) {
	err = x.view(func(txn *badger.Txn) error {
		item, err := txn.Get([]byte{keyDay})
		if err == nil {
			err = item.Value(d.UnmarshalBinary)
		}
		if errors.Is(err, badger.ErrKeyNotFound) || errors.Is(err, tier.ErrDay) {
			return nil
		}
		return err
	})
	return d, err
}

// records are those of all extent files.
func (x *index) records() (map[uint64]record, error) {
	out := map[uint64]record{}
	err := x.scan([]byte{keyFile}, func(key, value []byte) error {
		if len(key) != 1+8 {
			return fmt.Errorf("%w: %d bytes for a file's key", errEncoding, len(key))
		}
		r, err := decodeRecord(value)
		out[binary.BigEndian.Uint64(key[1:])] = r
		return err
	})
	return out, err
}

// spots are the blocks of an extent file in their order, as far as they can be
// decoded.
func (x *index) spots(file uint64) (out []spot, err error) {
	err = x.scan(placeKey(file, 0)[:1+8], func(key, value []byte) error {
		if s, err := decodeSpot(key, value); err == nil {
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// scan calls f for what begins with prefix. What f is given is valid until it
// returns.
func (x *index) scan(prefix []byte, f func(key, value []byte) error) error {
	return x.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(keysOnly(prefix))
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			if err := item.Value(func(b []byte) error { return f(item.Key(), b) }); err != nil {
				return err
			}
		}
		return nil
	})
}

// keysOnly prefetches nothing: values lie beside their keys.
func keysOnly(prefix []byte) badger.IteratorOptions {
	return badger.IteratorOptions{Prefix: prefix}
}

// each hands over all entries that can be decoded, some at a time, from one
// view.
func (x *index) each(ctx context.Context, f func([]entry) error) error {
	var it *badger.Iterator
	txn := x.db.NewTransaction(false)
	defer txn.Discard()
	some := make([]entry, 0, eachBlocks)
	err := guard(func() error {
		it = txn.NewIterator(keysOnly([]byte{keyBlock}))
		it.Rewind()
		return nil
	})
	if err != nil {
		return err
	}
	defer it.Close()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		some = some[:0]
		err := guard(func() (err error) {
			some, more, err = take(it, some)
			return err
		})
		if err != nil {
			return err
		}
		if err := f(some); err != nil {
			return &stopped{err}
		}
	}
	return nil
}

// stopped wraps an error of the caller's own function.
type stopped struct{ error }

// take fills some from the iterator and tells whether there is more.
func take(it *badger.Iterator, some []entry) ([]entry, bool, error) {
	for ; it.Valid() && len(some) < cap(some); it.Next() {
		item := it.Item()
		key := item.Key()
		if len(key) != 1+16 {
			continue
		}
		err := item.Value(func(b []byte) error {
			if e, err := decodeEntry(ieg.BlockHash(key[1:]), b); err == nil {
				some = append(some, e)
			}
			return nil
		})
		if err != nil {
			return some, false, err
		}
	}
	return some, it.Valid(), nil
}

// quiet passes on what Badger complains of.
type quiet struct{ log *slog.Logger }

func (q quiet) say(format string, a []any) {
	q.log.Warn("the index of the NVMe tier", "says", strings.TrimSpace(fmt.Sprintf(format, a...)))
}

func (q quiet) Errorf(format string, a ...any)   { q.say(format, a) }
func (q quiet) Warningf(format string, a ...any) { q.say(format, a) }
func (quiet) Infof(string, ...any)               {}
func (quiet) Debugf(string, ...any)              {}
