package llama

import (
	"testing"
	"time"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
)

// blockBench is the real model with n tokens in slot 0.
func blockBench(b *testing.B, n int) (*driver, *testArena) {
	spec, _ := blockSpec(b)
	a := newTestArena(80, 1<<20)
	a.fast = true
	spec.Path, spec.Slots, spec.Context, spec.Layout, spec.Arena = realModel(b), 4, 2304, "streams", a
	d := &driver{t: b, r: start(b, spec)}
	if !d.r.slots.blocks.direct {
		b.Fatal("rows can't be read where they lie")
	}
	d.fillSlot(0, someTokens(d.r, n, 1))
	return d, a
}

// BenchmarkLoad2000 brings 2,000 tokens back from the arena; beside it the
// library's import of the same, and a copy of the same bytes.
func BenchmarkLoad2000(b *testing.B) {
	const n = 2000
	d, a := blockBench(b, n)
	e := d.saved(a, 0, 0, n, ieg.CodecRaw, 256)
	c := d.r.gen
	blob, err := c.export(0, nil)
	if err != nil {
		b.Fatal(err)
	}
	same := make([]byte, len(blob))
	batch := ieg.Batch{Ops: []ieg.KVOp{loadOp(1, n, e)}}
	var done ieg.StepDone
	ours, alone, plain := time.Hour, time.Hour, time.Hour
	for b.Loop() {
		d.r.Step(&batch, &done)
		if done.Outcome != ieg.StepOK {
			b.Fatal(done.Err)
		}
		ours = min(ours, done.Copies[0].Took)
		t := time.Now()
		if yz.StateSeqSetData(c.ctx, blob, 2) != uint64(len(blob)) {
			b.Fatal("the import failed")
		}
		alone = min(alone, time.Since(t))
		t = time.Now()
		copy(same, blob)
		plain = min(plain, time.Since(t))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Microseconds())/1000, "ms/load")
	b.ReportMetric(float64(alone.Microseconds())/1000, "ms/import")
	b.ReportMetric(float64(plain.Microseconds())/1000, "ms/copy")
}

// BenchmarkSave256 saves a block at once.
func BenchmarkSave256(b *testing.B) {
	d, a := blockBench(b, 512)
	e := a.extent(256, 256, ieg.CodecRaw, d.r.info.KVToken)
	batch := ieg.Batch{Ops: []ieg.KVOp{{Kind: ieg.KVSave, From: 0, Start: 256, N: 256, Extents: []ieg.Extent{e}}}}
	var done ieg.StepDone
	least := time.Hour
	for b.Loop() {
		d.r.Step(&batch, &done)
		if done.Outcome != ieg.StepOK {
			b.Fatal(done.Err)
		}
		least = min(least, done.Copies[0].Took)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(least.Microseconds())/1000, "ms/save")
	b.ReportMetric(float64(e.Bytes)/least.Seconds()/1e9, "GB/s")
}
