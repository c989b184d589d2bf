package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/memory/kv"
)

// deep is a rig with an arena and an NVMe tier, in which conversations take
// turns on an engine with two rows.
type deep struct {
	*rig
	flying bool
	moves  []ieg.Move
	shelf  []ieg.Block
	talks  [][]ieg.Token
	loads  int
	pinned ieg.BlockHash
	counts ieg.KVCounts
}

const tenants = 3

func newDeep(tb testing.TB, cfg Config) *deep {
	m, err := kernel.New(kernel.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	rec, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	g := &deep{rig: &rig{tb: tb, m: m, rec: rec}}
	g.apply(kernel.HostUp{Pages: 40, PageBytes: 8192})
	g.apply(kernel.NVMeUp{})
	g.apply(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu", Type: "CPU"}, Free: 1 << 30})
	g.apply(kernel.LoadEngine{Engine: 1, Model: "m", Device: "cpu", Need: 1})
	g.apply(kernel.EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: 1, Device: "cpu", Slots: 2, SlotTokens: 2048, Cells: 4096,
		StepTokens: 512, UBatch: 512, Prefixes: true, KVToken: 128, KVName: "kv"}})
	for i := range 5 {
		g.talks = append(g.talks, words(i, 300+100*i))
	}
	return g
}

// words is the start of a conversation: a beginning that all share, then its
// own text. Tokens are small, so that a replaced one is known by its size.
func words(seed, n int) []ieg.Token {
	t := make([]ieg.Token, n)
	for i := range t {
		t[i] = ieg.Token(1 + (i*7+i/3)%100)
		if i >= 280 {
			t[i] = ieg.Token(1 + (i*seed+i)%100)
		}
	}
	return t
}

func (g *deep) apply(ev kernel.Event) {
	g.rig.apply(ev)
	r := g.m.Ready()
	g.flying = g.flying || len(r.Batches) > 0
	g.moves = append(g.moves, r.Moves...)
	for len(g.rec.queue) > 100 { // the writer is behind
		runtime.Gosched()
	}
}

func tenant(talk int) string { return fmt.Sprintf("acme-%d", talk%tenants) }

// say sends the next turn of a conversation.
func (g *deep) say(talk int) {
	g.next++
	g.talks[talk] = append(g.talks[talk], words(talk+int(g.next), 330)[290:]...)
	prompt := append([]ieg.Token(nil), g.talks[talk]...)
	r := &ieg.Request{ID: g.next, Model: "m", N: 1, Prompt: prompt, MaxTokens: 4, Tenant: tenant(talk), Deadline: ieg.Never}
	r.Stored = g.find(kv.Root("kv", r.Tenant), prompt)
	g.apply(kernel.Arrived{Request: r})
}

// find is what the shelf has of a prompt: full blocks, then a tail.
func (g *deep) find(root ieg.BlockHash, prompt []ieg.Token) (s ieg.Stored) {
	for parent := root; ; {
		at, best, long := len(s.Blocks)*ieg.BlockTokens, -1, 0
		for i, b := range g.shelf {
			n := 0
			for b.Parent == parent && n < len(b.Tokens) && at+n < len(prompt)-1 && b.Tokens[n] == prompt[at+n] {
				n++
			}
			if n > long {
				best, long = i, n
			}
		}
		if best < 0 {
			return s
		}
		s.Blocks, s.Tokens, parent = append(s.Blocks, g.shelf[best]), s.Tokens+int32(long), g.shelf[best].Hash
		if long < ieg.BlockTokens {
			return s
		}
	}
}

// step reports the batch in flight with its copies; every ninth load brings
// wrong bytes.
func (g *deep) step() {
	d := &ieg.StepDone{Engine: 1, Epoch: 1, Step: g.b.Step, Last: true, Took: time.Millisecond}
	for i, op := range g.b.Ops {
		c := ieg.CopyDone{Op: int32(i), Took: 10 * time.Microsecond, Digest: uint64(g.b.Step)}
		switch op.Kind {
		case ieg.KVLoad:
			if g.loads++; g.loads%9 == 0 {
				c.Bad, d.Outcome, d.Err = 1, ieg.StepFailed, "the secret bytes are wrong"
			}
		case ieg.KVSave:
		default:
			continue
		}
		d.Copies = append(d.Copies, c)
	}
	for _, w := range g.b.Work {
		if d.Outcome == ieg.StepOK {
			d.Results = append(d.Results, ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample, Token: ieg.Token(1 + g.now%97)})
		}
	}
	g.flying = false
	g.apply(kernel.StepDone{Done: d})
}

// moved ends the oldest move; every eleventh fails.
func (g *deep) moved() {
	v := g.moves[0]
	g.moves = g.moves[1:]
	d := ieg.MoveDone{ID: v.ID, Bytes: v.Block.Bytes, Digest: v.Block.Digest, Took: time.Microsecond}
	if v.ID%11 == 0 {
		d.Err = "the folder of alice is full"
	} else if v.Kind == ieg.MoveStore {
		g.shelf = append(g.shelf, v.Block)
		g.pinned = v.Block.Hash
	}
	g.apply(kernel.MoveDone{Done: d})
}

// rest runs until nothing is in flight.
func (g *deep) rest() {
	for g.flying || len(g.moves) > 0 {
		if g.flying {
			g.step()
		}
		if len(g.moves) > 0 && g.now%3 > 0 {
			g.moved()
		} else if !g.flying {
			g.apply(kernel.Tick{})
		}
	}
}

// day is what happens: turns, outages, pins and drops.
func (g *deep) day(rounds int) {
	for i := range rounds {
		for talk := range g.talks {
			g.say(talk)
			if (i+talk)%3 > 0 {
				g.rest()
			}
		}
		g.rest()
		switch i % 5 {
		case 0:
			g.apply(kernel.KVControl{Kind: kernel.KVPin, Hash: g.pinned, Until: g.now + ieg.Time(time.Second)})
		case 1:
			g.apply(kernel.NVMeDown{Reason: "alice pulled the disk"})
		case 2:
			g.apply(kernel.NVMeUp{})
			g.apply(kernel.KVControl{Kind: kernel.KVUnpin, Hash: g.pinned})
			g.apply(kernel.KVControl{Kind: kernel.KVPin, Hash: ieg.BlockHash{1, 2, 3}})
		case 3:
			g.apply(kernel.KVControl{Kind: kernel.KVDrop, Hash: kv.Root("kv", tenant(i))})
		case 4:
			g.apply(kernel.KVControl{Kind: kernel.KVDropAll})
		}
	}
	g.rest()
	g.counts = g.m.Status().KV.Counts
}

// deepRecording is a day in segments.
func deepRecording(tb testing.TB, age time.Duration, rounds int) ([][]byte, *deep) {
	g := newDeep(tb, Config{SegmentAge: age, Segments: 1000})
	g.day(rounds)
	if err := g.rec.Close(); err != nil || g.rec.Lost() > 0 {
		tb.Fatalf("%v, %d lost", err, g.rec.Lost())
	}
	return g.bytes(false), g
}

func TestReplayWithTiers(t *testing.T) {
	segs, g := deepRecording(t, 120*time.Millisecond, 11)
	if c := g.counts; c.Saves == 0 || c.Loads == 0 || c.Stores == 0 || c.Fetches == 0 || c.Corrupt == 0 || c.StoresRefused == 0 || len(segs) < 5 {
		t.Fatalf("%d segments miss something: %+v", len(segs), c)
	}
	for i, b := range segs {
		var out bytes.Buffer
		if err := redact(&out, bytes.NewReader(b), [32]byte{1}); err != nil {
			t.Fatalf("segment %d: %v", i, err)
		}
		plain, err := Replay(bytes.NewReader(b))
		if err != nil || !plain.Complete {
			t.Fatalf("segment %d: %v: %+v", i, err, plain)
		}
		hidden, err := Replay(bytes.NewReader(out.Bytes()))
		if err != nil || hidden.Judged != plain.Judged || !hidden.Header.Redacted {
			t.Fatalf("segment %d, redacted: %v: %+v", i, err, hidden)
		}
		compareContent(t, i, b, out.Bytes())
	}
}

// compareContent proves that nothing of a segment's content is in its redacted
// copy: tokens, names of blocks, words.
func compareContent(t *testing.T, segment int, plain, hidden []byte) {
	t.Helper()
	was, is := content(t, plain), content(t, hidden)
	if len(was.tokens) == 0 || len(was.hashes) == 0 || len(is.hashes) < len(was.hashes) || !strings.Contains(was.words.String(), "acme") {
		t.Fatalf("segment %d holds %d tokens and %d names of blocks, redacted %d and %d",
			segment, len(was.tokens), len(was.hashes), len(is.tokens), len(is.hashes))
	}
	for h := range is.hashes {
		if was.hashes[h] {
			t.Errorf("segment %d: block %s keeps its name", segment, h)
		}
	}
	for tok := range is.tokens {
		if was.tokens[tok] {
			t.Errorf("segment %d: token %d is not hidden", segment, tok)
		}
	}
	for _, word := range []string{"acme", "alice", "secret"} {
		if strings.Contains(is.words.String(), word) {
			t.Errorf("segment %d, redacted, holds %q", segment, word)
		}
	}
}

// held is what a segment holds of content, zeros left out.
type held struct {
	tokens map[ieg.Token]bool
	hashes map[ieg.BlockHash]bool
	words  strings.Builder
}

func content(t *testing.T, b []byte) *held {
	t.Helper()
	s, err := newSegment(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	h := &held{tokens: map[ieg.Token]bool{}, hashes: map[ieg.BlockHash]bool{}}
	h.walk(reflect.ValueOf(s.snap))
	for {
		_, ev, err := s.next()
		if err != nil {
			delete(h.tokens, 0)
			delete(h.hashes, ieg.BlockHash{})
			return h
		}
		h.walk(reflect.ValueOf(ev))
	}
}

func (h *held) walk(v reflect.Value) {
	switch x := v.Interface().(type) {
	case ieg.Token:
		h.tokens[x] = true
		return
	case ieg.BlockHash:
		h.hashes[x] = true
		return
	case string:
		h.words.WriteString(x + "\n")
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			h.walk(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				h.walk(v.Field(i))
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			h.walk(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			h.walk(it.Key())
			h.walk(it.Value())
		}
	}
}

// Copies in a report survive; wrong ones are refused.
func TestReportCopies(t *testing.T) {
	d := &ieg.StepDone{Engine: 1, Step: 2, Last: true, Outcome: ieg.StepFailed, Err: "no",
		Copies: []ieg.CopyDone{{Op: 3, Digest: 1<<63 + 5, Took: time.Second}, {Op: 4, Bad: 2}}}
	b := appendReport(nil, d)
	r := reader{b: b}
	got, err := r.report()
	if err != nil || len(r.b) != 0 || !reflect.DeepEqual(got, d) {
		t.Fatalf("%+v became %+v, %v", d, got, err)
	}
	for n := range b {
		r := reader{b: b[:n]}
		if _, err := r.report(); err == nil && !r.bad {
			t.Errorf("the first %d of %d bytes are a report", n, len(b))
		}
	}
	d.Copies[1].Bad = -1
	r = reader{b: appendReport(nil, d)}
	if _, err := r.report(); err == nil {
		t.Error("a load with bad block -1 is taken")
	}
}

// A segment of the version without tiers is refused, not misread.
func TestOldVersion(t *testing.T) {
	b := recording(t)
	copy(b, "IEGREC1\n")
	if _, err := Replay(bytes.NewReader(b)); !errors.Is(err, ErrFormat) {
		t.Errorf("version 1 gives %v", err)
	}
	if err := Redact(io.Discard, bytes.NewReader(b)); !errors.Is(err, ErrFormat) {
		t.Errorf("version 1, redacted, gives %v", err)
	}
}
