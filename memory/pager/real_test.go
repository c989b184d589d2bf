package pager

import (
	"bytes"
	"testing"

	"ieg"
	"ieg/memory/tier"
	"ieg/memory/tier/nvme"
)

// With the real store: what was stored before the Pager was closed is found
// and fetched by the next one.
func TestRealStore(t *testing.T) {
	dir := t.TempDir()
	real := func(c *Config) {
		c.Open = func() (tier.Store, error) { return nvme.Open(nvme.Config{Dir: dir}) }
		c.Compression = CompressINT8
	}
	w := newWorld(t, real)
	w.ready(1)
	w.p.Register(testRoot, Root{KVType: "f16", INT8: true})
	text := tokens(1, 3*ieg.BlockTokens+77)
	w.storeText(text)
	if err := w.p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.start(real)
	w.ready(2)
	found := w.p.Find(testRoot, append(text, 1))
	if int(found.Tokens) != len(text) {
		t.Fatalf("%d tokens found", found.Tokens)
	}
	for i, b := range found.Blocks {
		if d, got := w.fetch(b); d.Err != "" || !bytes.Equal(got, int8KV(b.Hash, len(b.Tokens))) {
			t.Errorf("block %d: %+v", i, d)
		}
	}
	if n, _, err := w.p.Drop(testRoot); n != 4 || err != nil {
		t.Errorf("%d blocks dropped: %v", n, err)
	}
	if st := w.p.Status(); st.Blocks != 0 || st.Corrupt != 0 || st.WrittenToday < int64(len(text))*rawToken/2 || st.ReadRate == 0 || st.Free == 0 {
		t.Errorf("status %+v", st)
	}
}
