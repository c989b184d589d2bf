package record

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"ieg"
	"ieg/kernel"
)

// rig is a machine with an engine, under a recorder.
type rig struct {
	tb   testing.TB
	m    *kernel.Machine
	rec  *Recorder
	now  ieg.Time
	next ieg.RequestID
	b    ieg.Batch
}

func newRig(tb testing.TB, cfg Config) *rig {
	m, err := kernel.New(kernel.DefaultConfig())
	if err != nil {
		tb.Fatal(err)
	}
	rec, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	g := &rig{tb: tb, m: m, rec: rec}
	g.apply(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu", Type: "CPU"}, Free: 1 << 30})
	g.apply(kernel.LoadEngine{Engine: 1, Model: "m", Device: "cpu", Need: 1})
	g.apply(kernel.EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: 1, Device: "cpu", Layout: ieg.Unified, Slots: 4, SlotTokens: 256, Cells: 600, StepTokens: 64, UBatch: 64, Prefixes: true}})
	return g
}

func (g *rig) apply(ev kernel.Event) {
	g.now += ieg.Time(time.Millisecond)
	g.rec.Before(g.now, ev, g.m)
	g.m.Apply(g.now, ev)
	r := g.m.Ready()
	for _, b := range r.Batches {
		g.b = *b
		g.b.Work = append([]ieg.Work(nil), b.Work...)
	}
	g.rec.Observe(g.now, ev, r)
}

// step reports the batch in flight, one token for who samples.
func (g *rig) step() {
	d := &ieg.StepDone{Engine: 1, Epoch: 1, Step: g.b.Step, Last: true, Took: time.Millisecond}
	for _, w := range g.b.Work {
		d.Results = append(d.Results, ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample, Token: ieg.Token(g.now % 97), Text: []byte("secret")})
	}
	g.apply(kernel.StepDone{Done: d})
}

func (g *rig) chat() {
	g.next++
	prompt := make([]ieg.Token, 30+g.next%5)
	for i := range prompt {
		prompt[i] = 1000 + ieg.Token(i)
	}
	g.apply(kernel.Arrived{Request: &ieg.Request{ID: g.next, Name: "chatcmpl", Model: "m", N: 1, Prompt: prompt, MaxTokens: 9, Tenant: "acme",
		Tools: []string{"search_web"}, Deadline: ieg.Never, Sampling: ieg.Sampling{Stop: []string{"secret"}}}})
}

// work records a few chats.
func (g *rig) work(chats int) {
	for range chats {
		g.chat()
		for range 5 {
			g.step()
		}
	}
}

func (g *rig) bytes(redact bool) [][]byte {
	segs, err := g.rec.Segments()
	if err != nil {
		g.tb.Fatal(err)
	}
	var out [][]byte
	for _, s := range segs {
		in, err := g.rec.Open(s.Name, redact)
		if err != nil {
			g.tb.Fatal(err)
		}
		b, err := io.ReadAll(in)
		if err != nil {
			g.tb.Fatal(err)
		}
		in.Close()
		out = append(out, b)
	}
	return out
}

func recording(tb testing.TB) []byte {
	g := newRig(tb, Config{Build: "test"})
	g.work(6)
	if err := g.rec.Close(); err != nil {
		tb.Fatal(err)
	}
	return g.bytes(false)[0]
}

func TestReplay(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		g := newRig(t, Config{Dir: dir, Build: "test", SegmentAge: 40 * time.Millisecond, Segments: 5})
		for range 40 {
			g.work(1)
			for len(g.rec.queue) > 100 { // the writer is behind
				runtime.Gosched()
			}
		}
		if err := g.rec.Close(); err != nil {
			t.Fatal(err)
		}
		if n := g.rec.Lost(); n != 0 {
			t.Errorf("%d events lost", n)
		}
		for _, redact := range []bool{false, true} {
			segs := g.bytes(redact)
			if len(segs) != 5 {
				t.Fatalf("%d segments kept, not 5", len(segs))
			}
			for i, b := range segs {
				rep, err := Replay(bytes.NewReader(b))
				if err != nil || !rep.Complete || rep.Judged < 3 || rep.Events > 60 || rep.Header.Redacted != redact || rep.Header.Build != "test" {
					t.Fatalf("segment %d: %v: %+v", i, err, rep)
				}
			}
		}
	}
}

func TestRedactedHoldsNoContent(t *testing.T) {
	b := recording(t)
	var out bytes.Buffer
	if err := Redact(&out, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"acme", "search_web", "secret"} {
		if bytes.Contains(out.Bytes(), []byte(word)) {
			t.Errorf("the redacted segment holds %q", word)
		}
	}
	if !bytes.Contains(b, []byte("acme")) || bytes.Contains(b, []byte("secrettext")) {
		t.Error("the whole segment lacks the tenant")
	}
	plain, hidden := prompts(t, b), prompts(t, out.Bytes())
	for i, p := range plain {
		for j, tok := range p {
			if hidden[i][j] == tok {
				t.Fatalf("token %d of request %d is not hidden", j, i)
			}
			if i > 0 && j < len(plain[i-1]) && (plain[i-1][j] == tok) != (hidden[i-1][j] == hidden[i][j]) {
				t.Fatalf("token %d of requests %d and %d: equality is not kept", j, i-1, i)
			}
		}
	}
}

func prompts(t *testing.T, b []byte) (out [][]ieg.Token) {
	s, err := newSegment(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for {
		_, ev, err := s.next()
		if err != nil {
			return out
		}
		if a, ok := ev.(kernel.Arrived); ok {
			out = append(out, a.Request.Prompt)
		}
	}
}

func TestDivergenceIsFound(t *testing.T) {
	b := recording(t)
	s, err := newSegment(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	s.snap.Config.Pace.PrefillShare, s.snap.Config.GrantSteps = 0, 1
	enc := newEncoder()
	if err := errors.Join(enc.header(s.header), enc.snapshot(s.snap)); err != nil {
		t.Fatal(err)
	}
	for {
		mk, ev, err := s.next()
		if err != nil {
			break
		}
		if d, ok := ev.(kernel.StepDone); ok {
			enc.report(appendReport(appendMark(nil, mk), d.Done))
		} else if err := enc.event(mk, ev); err != nil {
			t.Fatal(err)
		}
	}
	enc.end()
	if rep, err := Replay(bytes.NewReader(enc.out)); !errors.Is(err, ErrDiverged) || rep.Diverged == "" {
		t.Fatalf("another configuration replays with %v, %+v", err, rep)
	}
}

func TestDamage(t *testing.T) {
	b := recording(t)
	for n := range len(b) {
		rep, err := Replay(bytes.NewReader(b[:n]))
		switch {
		case n < len(magic) && !errors.Is(err, ErrFormat):
			t.Fatalf("the first %d bytes: %v", n, err)
		case err == nil && rep.Complete:
			t.Fatalf("the first %d of %d bytes count as complete", n, len(b))
		case err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrFormat):
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
	for at := len(magic); at < len(b); at += 7 {
		bad := bytes.Clone(b)
		bad[at] ^= 0x40
		if _, err := Replay(bytes.NewReader(bad)); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	}
}

// A full queue ends the segment and never blocks; a new one follows, and both
// replay.
func TestFullQueue(t *testing.T) {
	g := newRig(t, Config{Queue: 16})
	g.rec.mu.Lock() // the writer can't flush
	for range 20 {
		g.work(1)
	}
	if g.rec.Lost() == 0 {
		t.Error("nothing was lost although nothing was written")
	}
	g.rec.mu.Unlock()
	for len(g.rec.queue) > 0 {
		runtime.Gosched()
	}
	g.now += ieg.Time(RetryAfter)
	g.work(1)
	if err := g.rec.Close(); err != nil {
		t.Fatal(err)
	}
	segs := g.bytes(false)
	if len(segs) != 2 {
		t.Fatalf("%d segments, not 2", len(segs))
	}
	for i, b := range segs {
		rep, err := Replay(bytes.NewReader(b))
		if err != nil || !rep.Complete || rep.Events == 0 {
			t.Fatalf("segment %d: %v, %+v", i, err, rep)
		}
		if lost := rep.Header.Lost; (i == 1) != (lost > 0) {
			t.Errorf("segment %d says that %d events were lost before it", i, lost)
		}
	}
}

// The event in which the machine stopped is the last of the recording.
func TestEventOfACrash(t *testing.T) {
	g := newRig(t, Config{})
	g.work(2)
	func() {
		defer func() {
			if recover() == nil {
				t.Fatal("a request without a prompt does not panic")
			}
			if err := g.rec.Close(); err != nil {
				t.Fatal(err)
			}
		}()
		g.apply(kernel.Arrived{Request: &ieg.Request{ID: 99, Model: "m", N: 1}})
	}()
	_, err := Replay(bytes.NewReader(g.bytes(false)[0]))
	if err == nil || !strings.Contains(err.Error(), "panics") {
		t.Fatalf("the replay of a crash: %v", err)
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	g := newRig(t, Config{Dir: dir})
	g.work(1)
	if _, err := g.rec.Open("../passwd"+suffix, false); !errors.Is(err, ErrNotFound) {
		t.Errorf("a path out of the folder: %v", err)
	}
	if _, err := g.rec.Open("none"+suffix, true); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
	if err := g.rec.Close(); err != nil {
		t.Fatal(err)
	}
	segs, err := g.rec.Segments()
	if err != nil || len(segs) != 1 || segs[0].Open || segs[0].Events == 0 || segs[0].Bytes == 0 {
		t.Fatalf("%+v, %v", segs, err)
	}
	info, err := os.Stat(dir + "/" + segs[0].Name)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != segs[0].Bytes {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := New(Config{Dir: dir + "/" + segs[0].Name}); err == nil {
		t.Error("a file was taken for a folder")
	}
}

func FuzzReplay(f *testing.F) {
	b := recording(f)
	f.Add(b)
	segs, _ := deepRecording(f, 40*time.Millisecond, 2)
	f.Add(segs[0])
	f.Add(segs[len(segs)-1])
	f.Add(b[:len(b)/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = Replay(bytes.NewReader(b))
		_ = Redact(io.Discard, bytes.NewReader(b))
	})
}

// FuzzFrames changes contents under checksums that fit.
func FuzzFrames(f *testing.F) {
	segs, _ := deepRecording(f, 40*time.Millisecond, 2)
	segs = append(segs[len(segs)/2:], recording(f))
	f.Add(uint(1), uint(9), byte(1))
	f.Add(uint(5), uint(0), byte(255))
	f.Fuzz(func(t *testing.T, frame, at uint, x byte) {
		b := segs[at%uint(len(segs))]
		fr, err := newFrames(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		out := []byte(magic)
		for i := uint(0); ; i++ {
			kind, body, err := fr.next()
			if err != nil {
				break
			}
			if i == frame%40 && len(body) > 0 {
				body[at%uint(len(body))] ^= x
			}
			out = appendFrame(out, kind, body)
		}
		_, _ = Replay(bytes.NewReader(out))
		_ = Redact(io.Discard, bytes.NewReader(out))
	})
}

// What the loop pays per step of 256 sequences.
func BenchmarkObserve256(b *testing.B) {
	rec, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	m, _ := kernel.New(kernel.DefaultConfig())
	d := &ieg.StepDone{Engine: 1}
	r := &kernel.Ready{Batches: []*ieg.Batch{{}}}
	for i := range 256 {
		d.Results = append(d.Results, ieg.SeqResult{Seq: ieg.SeqID(i), Computed: 1, Sampled: true, Token: 1234})
		r.Batches[0].Work = append(r.Batches[0].Work, ieg.Work{Seq: ieg.SeqID(i), Start: 100, N: 1, Sample: true})
	}
	for i := range d.Results {
		r.Emits = append(r.Emits, kernel.Emit{Request: 1, Result: &d.Results[i]})
	}
	var ev kernel.Event = kernel.StepDone{Done: d}
	for b.Loop() {
		rec.Before(0, ev, m)
		rec.Observe(0, ev, r)
	}
}
