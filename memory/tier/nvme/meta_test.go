package nvme

import (
	"bytes"
	"errors"
	"testing"

	"ieg"
	"ieg/memory/tier"
)

func sample(sealed bool) entry {
	e := entry{meta: tier.Meta{
		Hash: ieg.BlockHash{1, 2}, Parent: ieg.BlockHash{3}, Root: ieg.BlockHash{4},
		Start: 512, N: 256, Codec: ieg.CodecINT8, Bytes: 5898240, Digest: 1 << 63, Stored: 1700000000,
	}, file: 7, off: 3 * alignBytes, sealed: sealed}
	if sealed {
		e.nonce = [nonceBytes]byte{9, 8, 7}
	}
	return e
}

func TestEntry(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		e := sample(sealed)
		b := e.encode()
		got, err := decodeEntry(e.meta.Hash, b)
		if err != nil || got != e {
			t.Errorf("%+v, %v; want %+v", got, err, e)
		}
		if want := e.meta.Bytes; !sealed && e.size() != want || sealed && e.size() != want+16 {
			t.Errorf("size %d of %d bytes, sealed %v", e.size(), want, sealed)
		}
		for n := range len(b) {
			if _, err := decodeEntry(e.meta.Hash, b[:n]); n != entryBytes && !errors.Is(err, errEncoding) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
	for what, edit := range map[string]func(*entry){
		"start": func(e *entry) { e.meta.Start = -1 }, "no tokens": func(e *entry) { e.meta.N = 0 },
		"tokens": func(e *entry) { e.meta.N = 257 }, "codec": func(e *entry) { e.meta.Codec = 200 },
		"no bytes": func(e *entry) { e.meta.Bytes = 0 }, "bytes": func(e *entry) { e.meta.Bytes = BlockBytes + 1 },
		"offset": func(e *entry) { e.off = -alignBytes }, "border": func(e *entry) { e.off = 5 },
	} {
		e := sample(false)
		edit(&e)
		if _, err := decodeEntry(e.meta.Hash, e.encode()); !errors.Is(err, errEncoding) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a decoder takes, its encoder gives back.
func FuzzDecode(f *testing.F) {
	plain, sealed := sample(false), sample(true)
	f.Add(plain.encode(), placeKey(1, 4096))
	f.Add(sealed.encode(), []byte{})
	f.Add((&record{1, 2, 3, 4}).encode(), []byte("x"))
	f.Add(encodeSpot(plain.meta.Hash, 77), placeKey(1, 0))
	f.Add(encodeTokens([]ieg.Token{1, 2, 3}), []byte{})
	f.Fuzz(func(t *testing.T, b, key []byte) {
		if e, err := decodeEntry(ieg.BlockHash{1}, b); err == nil && !bytes.Equal(e.encode(), b) {
			t.Errorf("entry %+v", e)
		}
		if r, err := decodeRecord(b); err == nil && !bytes.Equal(r.encode(), b) {
			t.Errorf("record %+v", r)
		}
		if s, err := decodeSpot(key, b); err == nil && !bytes.Equal(encodeSpot(s.hash, s.size), b) {
			t.Errorf("spot %+v", s)
		}
		if ts, err := decodeTokens(b, int32(len(b)/4)); (err == nil) != (len(b)%4 == 0) || err == nil && !bytes.Equal(encodeTokens(ts), b) {
			t.Errorf("tokens %v, %v", ts, err)
		}
	})
}

func TestConfig(t *testing.T) {
	for what, c := range map[string]Config{
		"no folder": {}, "size": {Dir: "x", Size: -1}, "reserve": {Dir: "x", Reserve: 1 << 20},
		"key": {Dir: "x", Key: make([]byte, 15)}, "file": {Dir: "x", FileBytes: 1},
	} {
		if _, err := Open(c); err == nil || errors.Is(err, tier.ErrUnusable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for size, want := range map[int64]int64{0: FileBytes, 1 << 40: FileBytes, 1 << 30: 64 << 20, 1: minFileBytes} {
		c := Config{Dir: "x", Size: size}
		if err := c.Validate(); err != nil || c.FileBytes != want || c.Log == nil {
			t.Errorf("size %d: files of %d, want %d (%v)", size, c.FileBytes, want, err)
		}
	}
	for disk, want := range map[int64]int64{1 << 20: MinReserve, 10 << 30: 10 << 30 / 50, 1 << 40: ReserveBytes} {
		if got := defaultReserve(disk); got != want {
			t.Errorf("disk of %d: %d are kept, want %d", disk, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	parts := [][]byte{[]byte("ab"), nil, []byte("cde"), []byte("f")}
	for n, want := range map[int64]string{0: "", 1: "a", 2: "ab", 4: "abcd", 6: "abcdef"} {
		got := cut(parts, n)
		if string(bytes.Join(got, nil)) != want || got == nil {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
		for _, p := range got {
			if len(p) == 0 {
				t.Errorf("%d: an empty part", n)
			}
		}
	}
	if got := cut(parts, 7); got != nil {
		t.Errorf("7 of 6 bytes: %q", got)
	}
}

func TestBatches(t *testing.T) {
	items := func(sizes ...int64) (out []tier.Item) {
		for _, n := range sizes {
			out = append(out, tier.Item{Block: ieg.Block{Bytes: n}})
		}
		return out
	}
	for _, c := range []struct {
		items []tier.Item
		want  int
	}{
		{items(1), 1}, {items(BatchBytes, 1), 1}, {items(BatchBytes/2, BatchBytes/2, 1), 2},
		{items(BatchBytes+1, 1), 1}, {items(make([]int64, 300)...), batchBlocks},
	} {
		if got := batchLen(c.items); got != c.want {
			t.Errorf("%d items: %d go together, want %d", len(c.items), got, c.want)
		}
	}
}
