package llama

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
	"ieg/devices/engine/llama/tinygguf"
)

// libDir finds the libraries: IEG_LIB, or where "make engine" puts them.
func libDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("IEG_LIB")
	if dir == "" {
		dir = cached("lib", "linux-x64-cpu-v"+LibraryVersion)
	}
	if _, err := plainNames(dir); err != nil {
		t.Skipf("no llama.cpp libraries: %v (set IEG_LIB)", err)
	}
	return dir
}

func cached(parts ...string) string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{base, "ieg"}, parts...)...)
}

// realModel finds the chat model: IEG_MODEL, or the one in the cache.
func realModel(t testing.TB) string {
	t.Helper()
	path := os.Getenv("IEG_MODEL")
	if path == "" {
		path = cached("models", "SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	return present(t, path)
}

func present(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no model: %v", err)
	}
	return path
}

func TestMain(m *testing.M) {
	enginetest.Main(m, map[string]engine.Loader{"llama": Load})
}

// tinySpec loads a tiny random model, onto the device named by IEG_DEVICE.
func tinySpec(t testing.TB) engine.LoadSpec {
	t.Helper()
	lib := libDir(t)
	path, err := tinygguf.Write(t.TempDir(), tinygguf.Config{Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	return engine.LoadSpec{Backend: "llama", Name: "tiny", Path: path, LibDir: lib, Threads: 1, Slots: 4, Context: 512, Layout: "unified", FlashAttn: "on", Device: os.Getenv("IEG_DEVICE")}
}

// start loads a model for a test.
func start(t testing.TB, spec engine.LoadSpec) *Runner {
	t.Helper()
	r, err := Load(context.Background(), spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r.(*Runner)
}

// layouts runs a test in both layouts.
func layouts(t *testing.T, spec engine.LoadSpec, f func(t *testing.T, r *Runner)) {
	for _, y := range []string{"unified", "streams"} {
		t.Run(y, func(t *testing.T) {
			spec.Layout = y
			f(t, start(t, spec))
		})
	}
}

// driver plays the kernel: it keeps sequences going.
type driver struct {
	t    testing.TB
	r    *Runner
	step ieg.StepID
	next ieg.SeqID
}

// seq is a sequence as the driver knows it.
type seq struct {
	id     ieg.SeqID
	slot   ieg.Slot
	tokens []ieg.Token
	prompt int
	held   int32 // computed
	text   string
	stop   ieg.StopReason
	last   ieg.SeqResult
}

func (d *driver) run(b ieg.Batch) ieg.StepDone {
	d.t.Helper()
	d.step++
	b.Step = d.step
	var done ieg.StepDone
	d.r.Step(&b, &done)
	return done
}

func (d *driver) ok(b ieg.Batch) ieg.StepDone {
	d.t.Helper()
	done := d.run(b)
	if done.Outcome != ieg.StepOK {
		d.t.Fatalf("step %d: outcome %d: %s", d.step, done.Outcome, done.Err)
	}
	return done
}

// newSeq describes a sequence.
func (d *driver) newSeq(slot ieg.Slot, tokens []ieg.Token, par ieg.Sampling, most int32) (*seq, ieg.SeqStart) {
	d.next++
	s := &seq{id: d.next, slot: slot, tokens: append([]ieg.Token(nil), tokens...), prompt: len(tokens)}
	return s, ieg.SeqStart{Seq: s.id, Slot: slot, Tokens: s.tokens, Prompt: int32(len(tokens)), MaxTokens: most, Sampling: par}
}

// work is the sequence's next piece of work, at most n tokens.
func (s *seq) work(n int32) ieg.Work {
	left := int32(len(s.tokens)) - s.held
	k := min(n, left)
	return ieg.Work{Seq: s.id, Slot: s.slot, Start: s.held, N: k, Sample: k == left}
}

func (s *seq) took(res ieg.SeqResult) {
	s.held += res.Computed
	if res.Sampled {
		s.tokens = append(s.tokens, res.Token)
	}
	s.text += string(res.Text)
	s.stop, s.last = res.Stop, res
}

// generate runs one sequence alone to its end, chunk tokens a step.
func (d *driver) generate(slot ieg.Slot, tokens []ieg.Token, par ieg.Sampling, most, chunk int32) *seq {
	d.t.Helper()
	s, begin := d.newSeq(slot, tokens, par, most)
	b := ieg.Batch{New: []ieg.SeqStart{begin}}
	for s.stop == ieg.NotStopped {
		b.Work = []ieg.Work{s.work(chunk)}
		done := d.ok(b)
		s.took(done.Results[0])
		b = ieg.Batch{}
	}
	d.ok(ieg.Batch{Drop: []ieg.SeqID{s.id}})
	return s
}

// tokenize is the test's short form.
func tokenize(t testing.TB, r *Runner, text string) []ieg.Token {
	t.Helper()
	out, err := r.Tokenize(text, true)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// greedy is plain arg max.
func greedy() ieg.Sampling { return ieg.Sampling{Logprobs: -1} }
