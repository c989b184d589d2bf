package synth

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// shelf is an engine with a small arena and the blocks that were saved there.
type shelf struct {
	*testing.T
	r    *Runner
	next ieg.Page
}

const testPage = 3000 // no multiple of a token's bytes

func openShelf(t *testing.T, layout string, edit func(*engine.LoadSpec)) *shelf {
	r := open(t, layout, func(s *engine.LoadSpec) {
		s.Context, s.Arena = 600, NewArena(100, testPage)
		if edit != nil {
			edit(s)
		}
	})
	return &shelf{T: t, r: r}
}

// row computes n tokens of sequence seq in a slot; its first token is own.
func (s *shelf) row(seq ieg.SeqID, slot ieg.Slot, n int, own ieg.Token) {
	s.Helper()
	q := start(seq, slot, n)
	q.Tokens[0] += own
	step(s.T, s.r, ieg.Batch{New: []ieg.SeqStart{q}, Work: []ieg.Work{{Seq: seq, Slot: slot, N: int32(n)}}}, "")
}

// save saves the first n tokens of a slot, block by block.
func (s *shelf) save(slot ieg.Slot, n int32) (list []ieg.Extent) {
	s.Helper()
	for at := int32(0); at < n; at += ieg.BlockTokens {
		e := ieg.Extent{Start: at, N: min(n-at, ieg.BlockTokens)}
		e.Bytes = int64(e.N) * KVToken
		for range (e.Bytes + testPage - 1) / testPage {
			e.Pages = append(e.Pages, s.next)
			s.next++
		}
		op := ieg.KVOp{Kind: ieg.KVSave, From: slot, Start: at, N: e.N, Extents: []ieg.Extent{e}}
		e.Digest = step(s.T, s.r, ieg.Batch{Ops: []ieg.KVOp{op}}, "").Copies[0].Digest
		list = append(list, e)
	}
	return list
}

func (s *shelf) load(slot ieg.Slot, start, n int32, list []ieg.Extent, refusal string) *ieg.StepDone {
	s.Helper()
	op := ieg.KVOp{Kind: ieg.KVLoad, To: slot, Start: start, N: n, Extents: list}
	return step(s.T, s.r, ieg.Batch{Ops: []ieg.KVOp{op}}, refusal)
}

// empty checks that a slot is empty and says so.
func (s *shelf) empty(slot ieg.Slot) {
	s.Helper()
	if n := len(s.r.kv.slots[slot]); n != 0 {
		s.Errorf("slot %d holds %d tokens, want none", slot, n)
	}
}

// TestLoadSeesMixUps: blocks whose digests are right and which are not the
// ones that belong there.
func TestLoadSeesMixUps(t *testing.T) {
	s := openShelf(t, "unified", nil)
	s.row(1, 0, 520, 0)
	s.row(2, 1, 520, 9)
	one, two := s.save(0, 520), s.save(1, 520)
	if one[1].Digest == two[1].Digest {
		t.Fatal("the second block does not tell what came before it")
	}
	mixed := slices.Clone(one)
	mixed[1] = two[1]
	s.load(2, 0, 520, mixed, "extent 1: token 256: it follows the prefix")
	s.empty(2)
	s.load(0, 256, 256, two[1:2], "extent 0: token 256: it follows the prefix")
	s.empty(0)
	mixed = slices.Clone(one)
	mixed[0], mixed[1] = one[1], one[0]
	mixed[0].Start, mixed[1].Start = 0, 256
	s.load(2, 0, 520, mixed, "extent 0: token 0: it follows the prefix")

	// The right blocks of another text are refused when they are used.
	s.load(0, 0, 300, two[:2], "")
	q := start(1, 0, 520)
	step(t, s.r, ieg.Batch{New: []ieg.SeqStart{q}, Work: []ieg.Work{{Seq: 1, Start: 300, N: 1}}}, "slot 0 holds 300 tokens of another text")
	s.load(0, 0, 300, one[:2], "")
	step(t, s.r, ieg.Batch{Work: []ieg.Work{{Seq: 1, Start: 300, N: 1}}}, "")
}

// TestLoadSeesChangedBytes changes a byte of each word of a token, and its
// digest with it.
func TestLoadSeesChangedBytes(t *testing.T) {
	s := openShelf(t, "streams", nil)
	s.row(1, 0, 70, 0)
	list := s.save(0, 70)
	place := engine.Place{Arena: s.r.arena, Pages: list[0].Pages}
	for word := range int64(words) {
		var b [1]byte
		at := 69*KVToken + 8*word + word%8
		place.Read(at, b[:])
		b[0] ^= 4
		place.Write(at, b[:])
		bad := slices.Clone(list)
		bad[0].Digest = place.Digest(0, 0, bad[0].Bytes)
		s.load(1, 0, 70, bad, "extent 0: token 69: ")
		s.empty(1)
		s.load(1, 0, 69, bad, "") // that token is not loaded
		b[0] ^= 4
		place.Write(at, b[:])
	}
	s.load(1, 0, 70, list, "")
}

// TestLoadCells: a load needs cells, beside those that it frees itself.
func TestLoadCells(t *testing.T) {
	s := openShelf(t, "unified", func(l *engine.LoadSpec) { l.Synth.Cells = 700 })
	s.row(1, 0, 300, 0)
	list := s.save(0, 300)
	s.row(2, 1, 200, 5)
	s.load(2, 0, 300, list, "no cells: 300 tokens, 200 of 700 cells free")
	step(t, s.r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVCopy, From: 1, To: 2, N: 100}}}, "")
	s.load(2, 0, 300, list, "no cells: 300 tokens, 200 of 700 cells free") // its cells are shared
	s.load(1, 0, 300, list, "")                                            // 100 of 200 cells were its own
	if s.r.kv.used != 700 {
		t.Errorf("%d cells in use, want 700", s.r.kv.used)
	}
	s.load(1, 256, 44, list[1:], "")
	for slot := range ieg.Slot(3) {
		step(t, s.r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: slot}}}, "")
	}
	if s.r.kv.used != 0 {
		t.Errorf("%d cells in use, want 0", s.r.kv.used)
	}
}

// TestCopyTook: times go by bytes, of a load also those that it only proves.
func TestCopyTook(t *testing.T) {
	s := openShelf(t, "unified", func(l *engine.LoadSpec) { l.Synth.CopyNS, l.Synth.StepNS = 1000, 1e6 })
	s.row(1, 0, 300, 0)
	list := s.save(0, 300)
	d := s.load(1, 0, 257, list, "")
	if want := 300 * KVToken / 1024.0 * 1000; d.Copies[0].Took != time.Duration(want) || d.Took != 0 {
		t.Errorf("the load took %v beside %v, want %v alone", d.Copies[0].Took, d.Took, time.Duration(want))
	}
	op := ieg.KVOp{Kind: ieg.KVSave, From: 1, N: 64, Extents: []ieg.Extent{list[0]}}
	op.Extents[0].Digest = 0
	if d = step(t, s.r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVTrim, To: 3}, op}}, ""); d.Copies[0].Took != 8*time.Microsecond || d.Copies[0].Op != 1 {
		t.Errorf("the save of 64 tokens: %+v, want operation 1, 8 µs", d.Copies[0])
	}
}

func TestKVStaysWithoutArena(t *testing.T) {
	r := open(t, "unified", func(s *engine.LoadSpec) { s.ArenaNote = "none was shared" })
	if i := r.Info(); i.KVToken != 0 || i.KVName != "" || i.KVNote != "none was shared" {
		t.Errorf("KV of %d bytes a token named %q, note %q", i.KVToken, i.KVName, i.KVNote)
	}
	step(t, r, ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVSave, N: 1}}}, "KV can't leave this engine: none was shared")
}

// TestKVName: engines with different prefixes for equal tokens have different
// names.
func TestKVName(t *testing.T) {
	name := func(seed uint64, vocab int32) string {
		s := openShelf(t, "unified", func(l *engine.LoadSpec) { l.Synth.Seed, l.Synth.Vocab = seed, vocab })
		return s.r.Info().KVName
	}
	if a, b, c := name(1, 500), name(2, 500), name(1, 501); a == b || a == c || a != name(1, 500) || !strings.HasPrefix(a, "synth") {
		t.Errorf("names %q, %q, %q", a, b, c)
	}
}

func TestArenaKnowsNoCodec(t *testing.T) {
	a := NewArena(2, 10)
	if a.Pages() != 2 || a.PageBytes() != 10 || len(a.Page(1)) != 10 || cap(a.Page(0)) != 10 {
		t.Errorf("%d pages of %d bytes, the second has %d", a.Pages(), a.PageBytes(), len(a.Page(1)))
	}
	defer func() {
		if recover() == nil {
			t.Error("a block in int8 was taken")
		}
	}()
	a.Encode(ieg.CodecRaw, "f16", a.Page(0), a.Page(1))
	a.Decode(ieg.CodecINT8, "f16", a.Page(0), a.Page(1))
}

// TestAbortInCopies aborts all the time: the copies are done, the work is not.
func TestAbortInCopies(t *testing.T) {
	s := openShelf(t, "streams", func(l *engine.LoadSpec) {
		l.Synth.Sleep, l.Synth.CopyNS = true, 50_000
	})
	s.row(1, 0, 256, 0)
	list := s.save(0, 256)
	s.r.spec.StepNS = int64(time.Minute)
	batch := ieg.Batch{New: []ieg.SeqStart{start(2, 1, 9)}, Work: []ieg.Work{{Seq: 2, Slot: 1, N: 9}}}
	for range 10 {
		batch.Ops = append(batch.Ops, ieg.KVOp{Kind: ieg.KVLoad, To: 2, N: 256, Extents: list})
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Microsecond):
				s.r.Abort()
			}
		}
	}()
	d := &ieg.StepDone{}
	s.r.Step(&batch, d)
	close(ended)
	if d.Outcome != ieg.StepAborted || len(d.Copies) != 10 || len(d.Results) != 0 || len(s.r.kv.slots[2]) != 256 {
		t.Errorf("outcome %d, %d copies, %d results; want an abort after 10", d.Outcome, len(d.Copies), len(d.Results))
	}
}
