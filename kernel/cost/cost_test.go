package cost

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"ieg"

	"github.com/cockroachdb/datadriven"
)

// llama70 is Llama-2-70B: 80 layers, d_model 8192, 8 KV heads of 128, f16.
func llama70() *ieg.ModelInfo {
	return &ieg.ModelInfo{
		Name: "llama-2-70b", Params: 70e9, ActiveParams: 70e9, WeightBytes: 140e9, Layers: 80, DModel: 8192, Heads: 64,
		KV: []ieg.KVGroup{{Layers: 80, KVHeads: 8, HeadDim: 128, ElemBytes: 2}},
	}
}

// deepseek is DeepSeek-V3: 61 layers of MLA (512 + 64), 37 of 671 billion
// parameters active.
func deepseek() *ieg.ModelInfo {
	return &ieg.ModelInfo{
		Name: "deepseek-v3", Params: 671e9, ActiveParams: 37e9, WeightBytes: 671e9, Layers: 61, DModel: 7168,
		KV: []ieg.KVGroup{{Kind: ieg.LatentAttention, Layers: 61, Latent: 576, ElemBytes: 2}},
	}
}

// gemma has 15 sliding layers of window 512 and 3 full ones.
func gemma() *ieg.ModelInfo {
	return &ieg.ModelInfo{
		Name: "gemma-3-270m", Params: 270e6, ActiveParams: 270e6, WeightBytes: 250e6, Layers: 18, DModel: 640,
		KV: []ieg.KVGroup{
			{Kind: ieg.SlidingWindow, Layers: 15, KVHeads: 1, HeadDim: 256, Window: 512, ElemBytes: 2},
			{Layers: 3, KVHeads: 1, HeadDim: 256, ElemBytes: 2},
		},
	}
}

func smol() *ieg.ModelInfo {
	return &ieg.ModelInfo{
		Name: "smollm2-135m", Params: 135e6, ActiveParams: 135e6, WeightBytes: 98e6, Layers: 30, DModel: 576,
		KV: []ieg.KVGroup{{Layers: 30, KVHeads: 3, HeadDim: 64, ElemBytes: 2}},
	}
}

func a100() *ieg.ResourceSpec {
	r := &ieg.ResourceSpec{ID: "gpu-node-03", Type: "GPU", Vendor: "NVIDIA", Model: "A100-80GB"}
	r.Compute.FP16, r.Compute.INT8, r.Compute.Precisions = 312e12, 624e12, []string{"fp16", "bf16", "int8"}
	r.Memory.VRAM, r.Memory.Bandwidth = 80e9, 2e12
	r.IO.Net = 50e9
	return r
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s = %g, want %g within %g %%", what, got, want, share*100)
	}
}

// TestReferenceFigures checks the figures of the specification.
func TestReferenceFigures(t *testing.T) {
	prefill := Demand(llama70(), Work{Stage: ieg.StagePrefill, Tokens: 4096})
	near(t, "70B prefill of 4096", prefill.FLOPs, 5.734e14, 1e-3)
	e := CapacityOf(a100(), "fp16", Peak).Time(prefill)
	near(t, "its time at 312 TFLOPS", e.Seconds, 1.838, 1e-3)
	if e.Bottleneck != Compute {
		t.Errorf("a long prefill is bound by %v", e.Bottleneck)
	}
	near(t, "70B KV at 4096", float64(KVBytes(llama70(), 4096)), 1.342e9, 1e-3)
	if prefill.KV != KVBytes(llama70(), 4096) || prefill.Memory != 140e9+prefill.KV {
		t.Errorf("prefill holds %d of KV, %d in all", prefill.KV, prefill.Memory)
	}
	mha := llama70()
	mha.KV[0].KVHeads = 64
	near(t, "what attention heads would give", float64(KVBytes(mha, 4096)), 10.74e9, 1e-3)
	if got := KVBytesPerToken(deepseek()); got != 70272 {
		t.Errorf("DeepSeek-V3: %d B a token, want 70272", got)
	}
	if got := KVBytesPerToken(smol()); got != 23040 {
		t.Errorf("SmolLM2-135M: %d B a token, want 23040", got)
	}
	near(t, "prefill with batch 4", Demand(llama70(), Work{Stage: ieg.StagePrefill, Tokens: 512, Batch: 4}).FLOPs, 4*2*70e9*512, 1e-9)
}

func TestLongPromptsPayAttention(t *testing.T) {
	m := llama70()
	d := Demand(m, Work{Stage: ieg.StagePrefill, Tokens: 32768})
	near(t, "32k tokens", d.FLOPs, 2*70e9*32768+2*80*8192*32768.0*32768, 1e-9)
	// In two halves it is the same work.
	a := Demand(m, Work{Stage: ieg.StagePrefill, Tokens: 16384})
	b := Demand(m, Work{Stage: ieg.StagePrefill, Past: 16384, Tokens: 16384})
	near(t, "two halves", a.FLOPs+b.FLOPs, d.FLOPs, 1e-9)
	// A sliding window sees no more than its width.
	near(t, "window", attended(1000, 1000, 512), 512*1000, 1e-9)
	near(t, "window across its edge", attended(0, 1024, 512), 512*512/2+512*512, 1e-9)
}

func TestSlidingWindowKV(t *testing.T) {
	full, slide := int64(3*2*256*2), int64(15*2*256*2)
	for tokens, want := range map[int32]int64{100: 100 * (full + slide), 512: 512 * (full + slide), 2000: 2000*full + 512*slide} {
		if got := KVBytes(gemma(), tokens); got != want {
			t.Errorf("%d tokens hold %d, want %d", tokens, got, want)
		}
	}
	if got := KVBytes(&ieg.ModelInfo{KV: []ieg.KVGroup{{Kind: ieg.NoAttention, Layers: 12}}}, 1000); got != 0 {
		t.Errorf("a model without attention holds %d", got)
	}
}

func TestDecodeIsBoundByBandwidth(t *testing.T) {
	m := llama70()
	one := Demand(m, Work{Stage: ieg.StageDecode, Past: 2000, Tokens: 1})
	near(t, "bytes of a step", one.Bytes, 140e9+float64(KVBytes(m, 2000)), 1e-3)
	if e := CapacityOf(a100(), "fp16", DefaultEfficiency).Time(one); e.Bottleneck != Bandwidth {
		t.Errorf("decode is bound by %v", e.Bottleneck)
	}
	eight := Demand(m, Work{Stage: ieg.StageDecode, Past: 2000, Tokens: 1, Batch: 8})
	if eight.Bytes > 1.05*one.Bytes {
		t.Errorf("8 sequences move %g bytes, 1 moves %g: weights are shared", eight.Bytes, one.Bytes)
	}
	ten := Demand(m, Work{Stage: ieg.StageDecode, Past: 2000, Tokens: 10})
	near(t, "ten steps", ten.Bytes, 10*one.Bytes, 1e-2)
}

func TestMixtureOfExperts(t *testing.T) {
	m := deepseek()
	near(t, "one token", WeightsTouched(m, 1), 37e9, 1e-9)
	many := WeightsTouched(m, 4096)
	near(t, "a long prefill", many, 671e9, 1e-3)
	if a, b := WeightsTouched(m, 8), WeightsTouched(m, 16); !(37e9 < a && a < b && b < 671e9) {
		t.Errorf("8 tokens touch %g, 16 %g", a, b)
	}
	near(t, "FLOPs use active parameters", Demand(m, Work{Stage: ieg.StagePrefill, Tokens: 1000}).FLOPs, 2*37e9*1000, 1e-9)
}

func TestToolsAndRetrieval(t *testing.T) {
	c := CapacityOf(a100(), "fp16", Peak)
	e := c.Time(Demand(nil, Work{Stage: ieg.StageRetrieval, IO: 5e9}))
	if e.Bottleneck != IO || math.Abs(e.Seconds-0.1) > 1e-9 {
		t.Errorf("retrieval %+v", e)
	}
	if e := c.Time(Demand(nil, Work{Stage: ieg.StageTool, FLOPs: 312e12})); e.Bottleneck != Compute {
		t.Errorf("tool %+v", e)
	}
	if e := c.Time(Demand(nil, Work{Stage: ieg.StageJoin})); e.Bottleneck != NoBottleneck || e.Seconds != 0 {
		t.Errorf("join %+v", e)
	}
}

func TestGroupsAndSync(t *testing.T) {
	c := Capacity{100, 10, 1}
	slow := Capacity{50, 20, 1}
	if g := Group([]Capacity{c, slow, c, c}, TensorParallel); g != (Capacity{200, 40, 1}) {
		t.Errorf("tensor parallel %+v", g)
	}
	if g := Group([]Capacity{c, slow}, Pipeline); g != (Capacity{50, 10, 1}) {
		t.Errorf("pipeline %+v", g)
	}
	m := llama70()
	s := SyncOf(m, Work{Stage: ieg.StagePrefill, Tokens: 100, Degree: 4}, TensorParallel)
	near(t, "all-reduce bytes", s.Bytes, 2*80*2*0.75*100*8192*2, 1e-9)
	if s := SyncOf(m, Work{Stage: ieg.StagePrefill, Tokens: 100}, TensorParallel); s != (Sync{}) {
		t.Errorf("one device syncs %+v", s)
	}
	if p := SyncOf(m, Work{Stage: ieg.StageDecode, Tokens: 10, Degree: 4}, Pipeline); p.Hops != 30 {
		t.Errorf("pipeline of 4 hands over %g times in 10 steps", p.Hops)
	}
}

func TestSupports(t *testing.T) {
	r := a100()
	for p, want := range map[string]bool{"fp16": true, "INT8": true, "fp8": false, "": true, "Q4_1": true, "iq2_xs": true} {
		if Supports(r, p) != want {
			t.Errorf("A100 supports %q: %v", p, !want)
		}
	}
	if Supports(&ieg.ResourceSpec{}, "fp8") || !Supports(&ieg.ResourceSpec{}, "bf16") {
		t.Error("a device that lists nothing is taken at 16 bits")
	}
}

func TestEfficiencyIsFitted(t *testing.T) {
	e := DefaultEfficiency
	peak := CapacityOf(a100(), "fp16", Peak)
	d := Demand(llama70(), Work{Stage: ieg.StagePrefill, Tokens: 4096})
	for range 200 {
		e.Fit(peak, d, 1.838/0.52, correctionRate) // really 52 %
	}
	near(t, "fitted compute efficiency", e.Compute, 0.52, 1e-2)
	if e.Bandwidth != DefaultEfficiency.Bandwidth {
		t.Error("the bandwidth was fitted by a compute-bound observation")
	}
}

// TestProfileLearns fits a profile to an engine whose law is linear with
// noise, in mixed steps, and asks for predictions.
func TestProfileLearns(t *testing.T) {
	law := Speed{Base: 0.004, Seq: 0.002, KVToken: 3e-7, Prefill: 0.001, Attended: 2e-7}
	r := rand.New(rand.NewPCG(1, 2))
	var p Profile
	for range 2000 {
		x := Step{Seqs: r.Int32N(16), KVTokens: r.Int64N(20000)}
		if r.IntN(3) == 0 {
			x.Prefill = 1 + r.Int32N(512)
			x.Attended = Attended(r.Int32N(3000), x.Prefill)
		}
		p.Observe(x, law.Step(x)*(0.97+0.06*r.Float64()))
	}
	for _, x := range []Step{{Seqs: 1, KVTokens: 500}, {Seqs: 12, KVTokens: 12000}, {Prefill: 512, Attended: Attended(0, 512)},
		{Seqs: 4, KVTokens: 4000, Prefill: 128, Attended: Attended(2000, 128)}} {
		near(t, fmt.Sprintf("step %+v", x), p.Speed().Step(x), law.Step(x), 0.05)
	}
	if p.Reprofile() || p.Error > 0.05 {
		t.Errorf("a good fit wants a new profile (error %g)", p.Error)
	}
	near(t, "prefill speed", p.Speed().PrefillTPS(), 1000, 0.1)
}

// TestProfileAdapts: the engine becomes twice as slow, and again nothing but
// decode steps are seen; what was known of prefill is kept.
func TestProfileAdapts(t *testing.T) {
	law := Speed{Base: 0.004, Seq: 0.002, Prefill: 0.001}
	var p Profile
	for i := range 400 {
		x := Step{Seqs: int32(1 + i%8)}
		if i%4 == 0 {
			x = Step{Prefill: int32(64 + i%5*32)}
		}
		p.Observe(x, law.Step(x))
	}
	worst := 0
	for i := range 3000 {
		x := Step{Seqs: int32(1 + i%8)}
		p.Observe(x, 2*law.Step(x))
		worst = max(worst, p.Off)
	}
	near(t, "decode after the change", p.Speed().Step(Step{Seqs: 5}), 2*law.Step(Step{Seqs: 5}), 0.05)
	if worst < ReprofileAfter {
		t.Errorf("the change was flagged for %d steps only", worst)
	}
	if p.Reprofile() {
		t.Error("still flagged after it was learnt")
	}
	if tps := p.Speed().PrefillTPS(); tps < 400 || tps > 2500 {
		t.Errorf("prefill speed drifted to %g tokens/s", tps)
	}
}

func TestProfilePrior(t *testing.T) {
	var p Profile
	if _, ok := p.Speed().Estimate(Work{Stage: ieg.StagePrefill, Tokens: 10}, 0); ok {
		t.Error("an empty profile predicts")
	}
	p.Prior(Speed{Base: 0.02, Prefill: 0.005})
	e, ok := p.Speed().Estimate(Work{Stage: ieg.StagePrefill, Tokens: 1000}, 256)
	if !ok || math.Abs(e.Seconds-(4*0.02+5)) > 1e-9 || e.Source != FromProfile {
		t.Errorf("estimate %+v, %v", e, ok)
	}
	d, _ := p.Speed().Estimate(Work{Stage: ieg.StageDecode, Tokens: 10}, 0)
	near(t, "ten decode steps", d.Seconds, 0.2, 1e-9)
}

func TestTable(t *testing.T) {
	var table Table
	k := Key{"m", "A100", "fp16"}
	// A law that is a power in both: interpolation must be exact inside.
	law := func(b, l int32) float64 { return 1e-5 * float64(b) * math.Pow(float64(l), 1.2) }
	for _, b := range []int32{8, 1, 4} {
		for _, l := range []int32{4096, 512, 1024} {
			if err := table.Set(k, Cell{Batch: b, Length: l, PrefillP50: law(b, l), DecodeP50: 0.01 * float64(b)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	table.Set(k, Cell{Batch: 8, Length: 8192, Absent: "out of memory"})
	table.Set(Key{"m", "A100", "fp8"}, Cell{Batch: 1, Length: 512, Absent: "no fp8 units"})
	for _, q := range [][2]int32{{1, 512}, {2, 700}, {4, 1024}, {6, 3000}, {8, 4096}} {
		got, ok := table.PrefillSeconds(k, q[0], q[1])
		if !ok {
			t.Fatalf("no answer for %v", q)
		}
		near(t, fmt.Sprint("prefill ", q), got, law(q[0], q[1]), 1e-6)
	}
	out, _ := table.PrefillSeconds(k, 1, 8192)
	near(t, "beyond the grid, proportional", out, 2*law(1, 4096), 1e-6)
	d, _ := table.DecodeSeconds(k, 64, 100)
	near(t, "decode beyond the grid, the nearest", d, 0.08, 1e-6)
	if _, ok := table.PrefillSeconds(Key{"m", "A100", "fp8"}, 1, 512); ok {
		t.Error("an absent cell answers")
	}
	if _, ok := table.PrefillSeconds(Key{"x", "A100", "fp16"}, 1, 512); ok {
		t.Error("an unknown key answers")
	}
	if e, ok := table.Estimate(k, Work{Stage: ieg.StagePrefill, Past: 512, Tokens: 512}); !ok || math.Abs(e.Seconds-law(1, 1024)/2) > 1e-9 {
		t.Errorf("half of a prompt cached: %+v", e)
	}
	table.Set(k, Cell{Batch: 1, Length: 512, PrefillP50: 9})
	if got, _ := table.PrefillSeconds(k, 1, 512); got != 9 {
		t.Errorf("a cell set again is %g", got)
	}
}

// TestPredictor walks from the semantic model through telemetry to the table
// and the engine's profile.
func TestPredictor(t *testing.T) {
	var p Predictor
	q := &Query{Model: llama70(), Device: a100(), Precision: "fp16", Work: Work{Stage: ieg.StagePrefill, Tokens: 4096}}
	e := p.Predict(q)
	near(t, "from the model", e.Seconds, 1.838/0.45, 1e-3)
	if e.Source != FromModel {
		t.Errorf("source %v", e.Source)
	}
	for range 60 {
		p.Observe(q, 6)
	}
	if len(p.Reprofile()) != 0 {
		t.Errorf("flagged although corrected: %+v", p.Reprofile())
	}
	near(t, "corrected by telemetry", p.Predict(q).Seconds, 6, 0.02)
	for range ReprofileAfter {
		v := p.Observe(q, 20)
		if v.Error < ReprofileError {
			t.Errorf("error %g", v.Error)
		}
	}
	// The moving correction follows; it was far off several times in a row.
	if got := p.Reprofile(); len(got) != 1 || got[0].Model != "llama-2-70b" {
		t.Errorf("to profile again: %+v", got)
	}
	p = Predictor{}
	p.Table.Set(q.key(), Cell{Batch: 1, Length: 4096, PrefillP50: 5})
	if e := p.Predict(q); e.Source != FromTable || e.Seconds != 5 {
		t.Errorf("from the table: %+v", e)
	}
	q.Speed = Speed{Prefill: 0.001}
	if e := p.Predict(q); e.Source != FromProfile || math.Abs(e.Seconds-4.096) > 1e-9 {
		t.Errorf("from the profile: %+v", e)
	}
	q.Speed = Speed{}
	for range 100 {
		p.FitDevice(q, 1.838/0.6)
	}
	near(t, "fitted efficiency", p.Efficiency(a100()).Compute, 0.6, 0.01)
}

func TestWeights(t *testing.T) {
	highest := func(w Weights) string {
		switch m := max(w.Alpha, w.Beta, w.Gamma); {
		case w.Alpha == m && w.Gamma == m:
			return "αγ"
		case w.Alpha == m:
			return "α"
		case w.Beta == m:
			return "β"
		}
		return "γ"
	}
	for g, want := range map[Goal]string{Chat: "α", Batch: "β", Agent: "αγ", Offline: "γ"} {
		if got := highest(WeightsOf(g)); got != want {
			t.Errorf("%v: highest %s, want %s", g, got, want)
		}
	}
	if GoalOf(ieg.P0) != Chat || GoalOf(ieg.P1) != Agent || GoalOf(ieg.P2) != Batch {
		t.Error("goals of classes")
	}
	if s := SLOOf(ieg.P0); s.TTFT != 200*time.Millisecond || s.ITL != 20*time.Millisecond {
		t.Errorf("P0 %+v", s)
	}
	w := Weights{1, 2, 3, 4}
	if got := w.Node(10, 20, 30); got != 10+40+90 {
		t.Errorf("c = %g", got)
	}
	if got := Price(4, 3); got != 6 {
		t.Errorf("a device at twice the reference price costs %g for 3 s", got)
	}
}

func TestAdaptation(t *testing.T) {
	a := NewAdaptation(2, 10*time.Second)
	base := WeightsOf(Chat)
	if a.Weights(Chat) != base {
		t.Fatalf("unadapted %+v", a.Weights(Chat))
	}
	for range 50 {
		a.Observe(Chat, Window{Attainment: 0.8, Target: 0.95, Spend: 12, Budget: 10})
	}
	w := a.Weights(Chat)
	near(t, "α at its bound", w.Alpha, base.Alpha*adaptMax, 1e-9)
	near(t, "γ at its bound", w.Gamma, base.Gamma*adaptMax, 1e-9)
	if w.Beta != base.Beta || a.Weights(Agent) != WeightsOf(Agent) {
		t.Error("other weights moved")
	}
	for range 500 {
		a.Observe(Chat, Window{Attainment: 0.99, Target: 0.95, Spend: 5, Budget: 10})
	}
	if a.Weights(Chat) != base {
		t.Errorf("they don't come back: %+v", a.Weights(Chat))
	}
	s := ieg.Time(time.Second)
	for i := range ieg.Time(60) {
		a.ObserveQueue(i*s, "gpu0", 5)
		if i < 10 && a.Penalty("gpu0") != 1 {
			t.Fatalf("penalty %g after %d s", a.Penalty("gpu0"), i)
		}
	}
	if p := a.Penalty("gpu0"); p < 2 || p > penaltyMax {
		t.Errorf("penalty %g after a minute", p)
	}
	for i := range ieg.Time(600) {
		a.ObserveQueue((60+i)*s, "gpu0", 0.1)
	}
	if a.Penalty("gpu0") != 1 || a.Penalty("other") != 1 {
		t.Errorf("penalty %g after the queue is gone", a.Penalty("gpu0"))
	}
}

// TestPlainData: what a recorder must keep survives encoding.
func TestPlainData(t *testing.T) {
	var p Predictor
	p.Table.Set(Key{"m", "d", "fp16"}, Cell{Batch: 1, Length: 512, PrefillP50: 1})
	q := &Query{Model: smol(), Device: a100(), Precision: "fp16", Work: Work{Stage: ieg.StageDecode, Tokens: 10}}
	p.Observe(q, 1)
	p.FitDevice(q, 1)
	var prof Profile
	prof.Observe(Step{Seqs: 3}, 0.01)
	a := NewAdaptation(1, time.Second)
	a.ObserveQueue(1, "x", 3)
	type all struct {
		P Predictor
		F Profile
		A Adaptation
	}
	in := all{p, prof, a}
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(in); err != nil {
		t.Fatal(err)
	}
	var out all
	if err := gob.NewDecoder(&buf).Decode(&out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%v\n%+v\n%+v", err, in, out)
	}
}

// TestAnalysis prints bottleneck analyses that can be checked by hand.
func TestAnalysis(t *testing.T) {
	models := map[string]*ieg.ModelInfo{"70b": llama70(), "deepseek": deepseek(), "gemma": gemma(), "smol": smol()}
	stages := map[string]ieg.Stage{"prefill": ieg.StagePrefill, "decode": ieg.StageDecode, "embed": ieg.StageEmbed,
		"tool": ieg.StageTool, "retrieval": ieg.StageRetrieval, "migrate": ieg.StageMigrate}
	datadriven.RunTest(t, "testdata/analysis", func(t *testing.T, d *datadriven.TestData) string {
		var model, eff string
		var w Work
		var tokens, past, batch, degree int
		var io string
		d.ScanArgs(t, "model", &model)
		d.MaybeScanArgs(t, "tokens", &tokens)
		d.MaybeScanArgs(t, "past", &past)
		d.MaybeScanArgs(t, "batch", &batch)
		d.MaybeScanArgs(t, "degree", &degree)
		d.MaybeScanArgs(t, "efficiency", &eff)
		if d.MaybeScanArgs(t, "io", &io) {
			fmt.Sscan(io, &w.IO)
		}
		w.Stage, w.Tokens, w.Past = stages[d.Cmd], int32(tokens), int32(past)
		w.Batch, w.Degree = int32(batch), int32(degree)
		e := DefaultEfficiency
		if eff == "peak" {
			e = Peak
		}
		a := Analysis{Label: strings.TrimSpace(d.Cmd + " of " + model), Demand: Demand(models[model], w), Capacity: CapacityOf(a100(), "fp16", e)}
		if degree > 1 {
			one := a.Capacity
			members := make([]Capacity, degree)
			for i := range members {
				members[i] = one
			}
			a.Capacity = Group(members, TensorParallel)
		}
		a.Estimate = a.Capacity.Time(a.Demand)
		a.Free = 80e9
		var resident int
		if d.MaybeScanArgs(t, "resident", &resident); resident > 0 {
			a.Resident, a.Free = int64(resident)*1e9, 30.4e9
		}
		return a.String()
	})
}

// BenchmarkObserve is the cost of learning from one step.
func BenchmarkObserve(b *testing.B) {
	var p Profile
	for i := range 100 {
		p.Observe(Step{Seqs: int32(i % 7), Prefill: int32(i % 3 * 64)}, 0.01)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Observe(Step{Seqs: 7, KVTokens: 9000}, 0.02)
	}
}
