package llama

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"ieg"
	"ieg/cgo/llamax"
)

// cpuTime is the processor time of this process: it leaves out what other
// processes take.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOverhead interleaves decode steps of the engine with the same steps
// of the raw loop, over the same tokens, in two contexts over the same weights,
// and reports the least processor time of both.
func BenchmarkOverhead(b *testing.B) {
	for _, c := range []struct {
		name  string
		batch int
		par   ieg.Sampling
	}{
		{"greedy-1", 1, greedy()}, {"greedy-8", 8, greedy()}, {"greedy-16", 16, greedy()},
		{"drawn-16", 16, ieg.Sampling{Temperature: 1, TopP: 0.95, Logprobs: -1}},
		{"grammar-8", 8, ieg.Sampling{Grammar: `root ::= "{" ([^{}\x00-\x1f] | "{" [0-9]* "}"){1900} "}"`, Logprobs: -1}},
	} {
		b.Run(c.name, func(b *testing.B) { overhead(b, c.batch, c.par) })
	}
}

func overhead(b *testing.B, batch int, par ieg.Sampling) {
	spec := tinySpec(b)
	spec.Path, spec.Slots, spec.Context, spec.Layout = realModel(b), int32(batch), 512, "streams"
	r := start(b, spec)
	l := &loading{lib: r.lib, model: r.model, spec: &spec, threads: 1, size: sizing{slots: spec.Slots, slotTokens: 512}, abort: llamax.NewFlag()}
	l.kvType = kvTypes[""]
	raw, err := newContext(r.lib, r.model, l.shapeFor(ieg.Streams, true), l.abort)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.close()
	d := &driver{t: b, r: r}
	par.IgnoreEOS = true
	prompt := tokenize(b, r, "Once upon a time, in a land far away, there was a")
	var seqs []*seq
	var work ieg.Batch
	last := make([]ieg.Token, batch)
	for i := range batch {
		par.Seed = uint64(i)
		s, begin := d.newSeq(ieg.Slot(i), prompt, par, 480)
		s.took(d.ok(ieg.Batch{New: []ieg.SeqStart{begin}, Work: []ieg.Work{s.work(512)}}).Results[0])
		seqs = append(seqs, s)
		raw.batch.n = 0
		for k, t := range prompt {
			raw.batch.add(t, int32(k), int32(i), k == len(prompt)-1)
		}
		raw.decode()
		last[i] = largest(raw.logits(1, r.vocab.n))
	}
	ours, theirs := time.Hour, time.Hour
	var done ieg.StepDone
	b.ResetTimer()
	for n := range b.N {
		if n >= 400 {
			break
		}
		work.Work = work.Work[:0]
		for _, s := range seqs {
			if s.stop != ieg.NotStopped {
				b.Fatalf("a sequence stopped by %v after %d tokens", s.stop, len(s.tokens))
			}
			work.Work = append(work.Work, s.work(1))
		}
		t0 := cpuTime()
		r.Step(&work, &done)
		t1 := cpuTime()
		if done.Outcome != ieg.StepOK {
			b.Fatal(done.Err)
		}
		for i, res := range done.Results {
			seqs[i].took(res)
		}
		t2 := cpuTime()
		raw.batch.n = 0
		for i := range last {
			raw.batch.add(seqs[i].tokens[len(prompt)+n], int32(len(prompt)+n), int32(i), true)
		}
		raw.decode()
		rows := raw.logits(batch, r.vocab.n)
		for i := range last {
			last[i] = largest(rows[i*r.vocab.n : (i+1)*r.vocab.n])
		}
		ours, theirs = min(ours, t1-t0), min(theirs, cpuTime()-t2)
	}
	runtime.KeepAlive(raw)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Microseconds())/1000, "ms/step")
	b.ReportMetric(float64(theirs.Microseconds())/1000, "ms/raw")
	b.ReportMetric(100*(float64(ours)/float64(theirs)-1), "%over")
}

// BenchmarkProbe shows what the measurement at the first load costs and finds.
func BenchmarkProbe(b *testing.B) {
	spec := tinySpec(b)
	spec.Path, spec.Slots, spec.Context, spec.Layout, spec.FlashAttn = realModel(b), 8, 2048, "auto", "auto"
	for range b.N {
		started := time.Now()
		r := start(b, spec)
		b.Logf("loaded in %v, fill gap %d", time.Since(started), r.fillGap)
		for _, p := range r.info.Probe {
			b.Logf("%v", fmt.Sprintf("%+v", p))
		}
	}
}
