package engine

import (
	"testing"

	"ieg"
)

// decodeStep is a step of 256 sequences that decode, and its report.
func decodeStep() (*ieg.Batch, *ieg.StepDone) {
	b := &ieg.Batch{Engine: 1, Epoch: 1, Step: 1 << 20}
	d := &ieg.StepDone{Engine: 1, Epoch: 1, Step: 1 << 20, Last: true, Took: 22e6}
	for i := range 256 {
		b.Work = append(b.Work, ieg.Work{Seq: ieg.SeqID(100_000 + i), Slot: ieg.Slot(i), Start: 1000 + int32(i), N: 1, Sample: true})
		d.Results = append(d.Results, ieg.SeqResult{Seq: ieg.SeqID(100_000 + i), Computed: 1, Sampled: true, Token: 40_000, Text: []byte(" word")})
	}
	return b, d
}

func TestCodecAllocatesNothing(t *testing.T) {
	b, d := decodeStep()
	var frame []byte
	var b2 ieg.Batch
	var d2 ieg.StepDone
	for name, run := range map[string]func(){
		"append batch":  func() { frame = appendBatch(openFrame(frame[:0], frameBatch), b) },
		"append report": func() { frame = appendDone(openFrame(frame[:0], frameDone), d) },
	} {
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
	batch, done := appendBatch(nil, b), appendDone(nil, d)
	for name, run := range map[string]func(){
		"decode batch":  func() { mustDecode(t, decodeBatch(batch, &b2)) },
		"decode report": func() { mustDecode(t, decodeDone(done, &d2)) },
	} {
		run()
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}

// TestCopiesAllocateNothing: a step that also copies is decoded into what
// earlier ones left.
func TestCopiesAllocateNothing(t *testing.T) {
	b, d := decodeStep()
	for i := range 4 {
		e := ieg.Extent{Start: int32(i) * ieg.BlockTokens, N: ieg.BlockTokens, Bytes: 6 << 20, Digest: 1 << 63, Pages: make([]ieg.Page, 24)}
		b.Ops = append(b.Ops, ieg.KVOp{Kind: ieg.KVSave, N: ieg.BlockTokens, Start: e.Start, Extents: []ieg.Extent{e}})
		d.Copies = append(d.Copies, ieg.CopyDone{Op: int32(i), Digest: 1 << 62, Took: 1e6})
	}
	var b2 ieg.Batch
	var d2 ieg.StepDone
	batch, done := appendBatch(nil, b), appendDone(nil, d)
	both := func() {
		mustDecode(t, decodeBatch(batch, &b2))
		mustDecode(t, decodeDone(done, &d2))
	}
	both()
	if n := testing.AllocsPerRun(100, both); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func mustDecode(t testing.TB, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkCodec is one step of 256 sequences through both codecs, both ways.
func BenchmarkCodec(b *testing.B) {
	batch, done := decodeStep()
	var frame []byte
	var b2 ieg.Batch
	var d2 ieg.StepDone
	b.ReportAllocs()
	for b.Loop() {
		frame = appendBatch(frame[:0], batch)
		mustDecode(b, decodeBatch(frame, &b2))
		frame = appendDone(frame[:0], done)
		mustDecode(b, decodeDone(frame, &d2))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/256, "ns/seq")
}
