package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ieg"
	"ieg/bench/report"
	"ieg/devices/engine"
	"ieg/devices/engine/llama"
	"ieg/memory/tier/host"
)

// bringTokens is the length of what is brought back.
const bringTokens = 2000

// kvBring: what it takes to have a text's KV again, beside the library's
// import of the same.
func kvBring(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "kv-bring-host", Unit: "×", Bound: 1.2, Better: report.Lower, Against: "the library's import alone, 2,000 tokens"},
		{Name: "kv-bring-nvme", Unit: "×", Bound: 1.3, Better: report.Lower, Against: "reading a file and the import; nothing in the page cache"},
	}
	b, err := newBring(ctx, e)
	if err != nil {
		return rows, err
	}
	defer b.close()
	rounds := 6*e.Rounds + 7
	if e.Tiny {
		rounds = 3
	}
	var warm, cold []float64
	var fetches, reads []float64  // milliseconds
	var ours, theirs [2][]float64 // milliseconds
	for range rounds {
		load, imp, err := b.fromHost()
		if err != nil {
			return rows, err
		}
		warm = append(warm, load.Seconds()/imp.Seconds())
		ours[0], theirs[0] = append(ours[0], load.Seconds()*1e3), append(theirs[0], imp.Seconds()*1e3)
	}
	for range rounds {
		fetch, load, err := b.fromDisk(ctx)
		if err != nil {
			return rows, err
		}
		read, imp, err := b.fromFile()
		if err != nil {
			return rows, err
		}
		cold = append(cold, (fetch+load).Seconds()/(read+imp).Seconds())
		ours[1], theirs[1] = append(ours[1], (fetch+load).Seconds()*1e3), append(theirs[1], (read+imp).Seconds()*1e3)
		fetches, reads = append(fetches, fetch.Seconds()*1e3), append(reads, read.Seconds()*1e3)
	}
	rows[0].Measure(warm)
	rows[1].Measure(cold)
	for i := range rows {
		rows[i].Detail = fmt.Sprintf("medians %.2f against %.2f ms", report.Median(ours[i]), report.Median(theirs[i]))
	}
	rows[1].Detail += fmt.Sprintf("; %.2f of ours to fetch, %.2f of theirs to read", report.Median(fetches), report.Median(reads))
	return rows, nil
}

// bring is an engine that holds a text, and the text's KV in all other forms.
type bring struct {
	raw    *llama.RawKV
	store  *kvStore
	host   []ieg.Extent // in the arena
	blocks []ieg.Block  // in the store
	back   []ieg.Extent // where they are brought to
	pages  [][]ieg.Page
	state  []byte // the library's export
	file   string // of the same
	buf    []byte
}

// The slots: what is computed, brought back and imported.
const (
	bringFrom ieg.Slot = iota
	bringTo
	bringImport
	bringSlots
)

// openRaw opens the engine with an arena.
func (e *Env) openRaw(arena *host.Arena, slots, context int) (*llama.RawKV, error) {
	return llama.OpenRawKV(engine.LoadSpec{
		Backend: "llama", Name: "bench", Path: e.Model, LibDir: e.LibDir, Threads: e.Threads,
		Slots: int32(slots), Context: int32(context), Layout: "streams", Arena: arena,
	})
}

func newBring(ctx context.Context, e *Env) (b *bring, err error) {
	arena, err := newArena(3 * (bringTokens + ieg.BlockTokens) * kvTokenBytes)
	if err != nil {
		return nil, err
	}
	b = &bring{file: filepath.Join(e.dir, "kv-bring-state")}
	if b.raw, err = e.openRaw(arena, int(bringSlots), bringTokens+304); err != nil {
		return nil, err
	}
	b.store, err = newKVStore(ctx, filepath.Join(e.dir, "kv-bring"), arena)
	if err == nil {
		err = b.fill(ctx)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bring) close() {
	b.raw.Close()
	if b.store != nil {
		_ = errors.Join(b.store.close(), os.RemoveAll(b.store.dir), os.Remove(b.file))
	}
}

// fill computes the text and puts its KV everywhere.
func (b *bring) fill(ctx context.Context) error {
	text := make([]ieg.Token, bringTokens)
	for i := range text {
		text[i] = ieg.Token(1000 + mix(uint64(i+7))%20000)
	}
	if err := b.raw.Fill(bringFrom, text); err != nil {
		return err
	}
	var err error
	if b.host, err = saveSlot(b.raw, b.store, bringFrom, bringTokens, ieg.CodecRaw); err != nil {
		return err
	}
	b.blocks = chain(1, len(b.host), 0)
	for i := range b.blocks {
		x := &b.host[i]
		blk := &b.blocks[i]
		if x.N < ieg.BlockTokens { // the end of the text
			*blk = shorter(*blk, x.N)
		}
		blk.Bytes, blk.Digest = x.Bytes, x.Digest
		back := *x
		back.Pages = b.store.pages(x.Bytes)
		b.back, b.pages = append(b.back, back), append(b.pages, x.Pages)
	}
	if _, err := b.store.move(ctx, ieg.MoveStore, b.blocks, b.pages); err != nil {
		return err
	}
	for i := range b.back {
		b.pages[i] = b.back[i].Pages
	}
	if b.state, err = b.raw.Export(bringFrom); err != nil {
		return err
	}
	b.buf = make([]byte, len(b.state))
	return os.WriteFile(b.file, b.state, 0o600)
}

// fromHost brings the text back from the arena, and imports it.
func (b *bring) fromHost() (load, imp time.Duration, err error) {
	if load, err = loadSlot(b.raw, bringTo, b.host, bringTokens); err != nil {
		return 0, 0, err
	}
	imp, err = b.raw.Import(bringImport, b.state, bringTokens)
	return load, imp, err
}

// fromDisk brings it back from the NVMe tier.
func (b *bring) fromDisk(ctx context.Context) (fetch, load time.Duration, err error) {
	if err := b.store.uncache(); err != nil {
		return 0, 0, err
	}
	if fetch, err = b.store.move(ctx, ieg.MoveFetch, b.blocks, b.pages); err != nil {
		return 0, 0, err
	}
	load, err = loadSlot(b.raw, bringTo, b.back, bringTokens)
	return fetch, load, err
}

// fromFile reads the library's state from a file and imports it.
func (b *bring) fromFile() (read, imp time.Duration, err error) {
	if err := uncache(b.file); err != nil {
		return 0, 0, err
	}
	f, err := os.Open(b.file)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	began := time.Now()
	if _, err := f.ReadAt(b.buf, 0); err != nil {
		return 0, 0, err
	}
	read = time.Since(began)
	imp, err = b.raw.Import(bringImport, b.buf, bringTokens)
	return read, imp, err
}
