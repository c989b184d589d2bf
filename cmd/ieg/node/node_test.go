package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/api/openai"
	"ieg/devices/engine"
	"ieg/devices/engine/synth"
	"ieg/kernel"
)

// The test binary is the child too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		os.Exit(engine.Main(map[string]engine.Loader{"synth": synth.Load, "bad": func(context.Context, engine.LoadSpec, func(float64)) (engine.Runner, error) {
			return nil, fmt.Errorf("%w: a broken file", ieg.ErrUnsupported)
		}}, nil))
	}
	os.Exit(m.Run())
}

func begin(t *testing.T) *Node {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := Device{Free: 100 << 20}
	d.Spec.ID, d.Spec.Type = "cpu", "CPU"
	n, err := New(Config{
		Kernel: kernel.DefaultConfig(), Command: []string{self, "child"}, Devices: []Device{d},
		Prepare: func(s *engine.LoadSpec, _ Device) (int64, error) {
			s.Backend = s.Path
			s.Synth = &engine.SynthSpec{Seed: 1, StepNS: 1e6, Sleep: true, StopEvery: 0}
			if strings.HasPrefix(s.Name, "slow") {
				s.Synth.LoadNS = int64(time.Minute)
			}
			return 30 << 20, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.Probed()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return n
}

// until waits for a state of the table.
func until(t *testing.T, n *Node, what string, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		change := n.Changed()
		if ok() {
			return
		}
		select {
		case <-change:
		case <-limit:
			t.Fatalf("%s: not reached: %+v", what, n.Models())
		}
	}
}

func state(n *Node, name string) string {
	for _, m := range n.Models() {
		if m.Name == name {
			return m.State
		}
	}
	return "none"
}

func load(t *testing.T, n *Node, spec engine.LoadSpec) ieg.EngineID {
	t.Helper()
	id, err := n.Load(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestModelsComeAndGo(t *testing.T) {
	n, ctx := begin(t), context.Background()
	load(t, n, engine.LoadSpec{Path: "synth", Name: "a", Aliases: []string{"x"}})
	until(t, n, "a is up", func() bool { return state(n, "a") == "ready" })

	for _, name := range []string{"a", "x"} {
		if _, err := n.Load(ctx, engine.LoadSpec{Path: "synth", Name: name}); !errors.Is(err, admin.ErrInvalid) {
			t.Errorf("%s was loaded twice: %v", name, err)
		}
	}
	if _, err := n.Load(ctx, engine.LoadSpec{Path: "synth", Name: "g", Device: "gpu"}); !errors.Is(err, admin.ErrInvalid) {
		t.Errorf("an unknown device: %v", err)
	}
	toks, err := n.OpenAI().Tokenize(ctx, "x", []openai.Part{{Text: "hello"}})
	if err != nil || len(toks) == 0 {
		t.Errorf("tokenize by alias: %v, %v", toks, err)
	}
	if text, err := n.OpenAI().Detokenize(ctx, "a", toks); err != nil || text != "hello" {
		t.Errorf("detokenize: %q, %v", text, err)
	}
	if _, err := n.OpenAI().Tokenize(ctx, "nobody", nil); !errors.Is(err, ieg.ErrNoModel) {
		t.Errorf("tokenize of no model: %v", err)
	}
	if d := n.Devices(); len(d) != 1 || len(d[0].Engines) != 1 || d[0].FreeBytes >= 100<<20 {
		t.Errorf("devices: %+v", d)
	}
	if err := n.Unload(ctx, "x", false); err != nil || state(n, "a") != "none" {
		t.Errorf("unload: %v, %s", err, state(n, "a"))
	}
	if err := n.Unload(ctx, "a", false); !errors.Is(err, ieg.ErrNoModel) {
		t.Errorf("unload twice: %v", err)
	}
	if len(n.Deaths()) != 0 {
		t.Errorf("an unloaded engine counts as dead: %+v", n.Deaths())
	}
}

func TestMemoryIsAdmittedBeforeLoading(t *testing.T) {
	n, ctx := begin(t), context.Background()
	// What loads is charged with its estimate: three of 30 MB fit 100 MB.
	for _, name := range []string{"slow1", "slow2", "slow3"} {
		load(t, n, engine.LoadSpec{Path: "synth", Name: name})
	}
	if _, err := n.Load(ctx, engine.LoadSpec{Path: "synth", Name: "slow4"}); !errors.Is(err, ieg.ErrOutOfMemory) || state(n, "slow4") != "none" {
		t.Errorf("a fourth model: %v, %s", err, state(n, "slow4"))
	}
	// A load can be given up, and gives its room back.
	if err := n.Unload(ctx, "slow2", false); err != nil {
		t.Errorf("unload while loading: %v", err)
	}
	load(t, n, engine.LoadSpec{Path: "synth", Name: "a"})
	until(t, n, "a is up", func() bool { return state(n, "a") == "ready" })
}

func TestABrokenModelTellsWhyAndMakesWay(t *testing.T) {
	n := begin(t)
	id := load(t, n, engine.LoadSpec{Path: "bad", Name: "m"})
	until(t, n, "given up", func() bool { return n.GivenUp(id) })
	ms := n.OpenAI().Models()
	if len(ms) != 1 || ms[0].Ready || ms[0].Error == "" || state(n, "m") != "down" {
		t.Errorf("models: %+v", ms)
	}
	if d := n.Deaths(); len(d) != 1 || d[0].Model != "m" || d[0].Reason == "" {
		t.Errorf("deaths: %+v", d)
	}
	load(t, n, engine.LoadSpec{Path: "synth", Name: "m"})
	until(t, n, "m is up", func() bool { return state(n, "m") == "ready" })
	if len(n.Models()) != 1 {
		t.Errorf("the broken row is still there: %+v", n.Models())
	}
}

// sink collects one request's output.
type sink struct {
	tokens int
	finish chan ieg.Finish
	some   chan struct{}
}

func (s *sink) Parse(int32, *ieg.SeqResult) bool { return false }
func (s *sink) Emit(_ int32, r *ieg.SeqResult) int {
	if s.tokens++; s.tokens == 10 {
		close(s.some)
	}
	return 0
}
func (s *sink) Finish(f ieg.Finish) {
	if f.Choice == ieg.AllChoices {
		s.finish <- f
	}
}

func TestAKilledChildComesBackAndItsRequestGoesOn(t *testing.T) {
	n := begin(t)
	load(t, n, engine.LoadSpec{Path: "synth", Name: "m"})
	until(t, n, "m is up", func() bool { return state(n, "m") == "ready" })
	s := &sink{finish: make(chan ieg.Finish, 1), some: make(chan struct{})}
	door := n.OpenAI()
	h, err := door.Submit(&ieg.Request{Name: "req", Model: "m", N: 1, Prompt: []ieg.Token{1, 300, 301}, MaxTokens: 200,
		Sampling: ieg.Sampling{IgnoreEOS: true, Logprobs: -1}, Deadline: ieg.Never, Received: door.Now()}, s)
	if err != nil {
		t.Fatal(err)
	}
	<-s.some
	pid := n.Models()[0].PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f := <-s.finish
	if f.Reason != ieg.StopLength || s.tokens != 200 {
		t.Errorf("finish: %v after %d tokens, %v", f.Reason, s.tokens, f.Err)
	}
	if d := n.Deaths(); len(d) != 1 || n.Models()[0].PID == pid {
		t.Errorf("deaths: %+v, pid %d", d, pid)
	}
	if ex, err := n.Explain("req"); err != nil || ex.ID != h.ID() {
		t.Errorf("explain: %+v, %v", ex.ID, err)
	}
	if _, err := n.Explain("r99"); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("explain of nothing: %v", err)
	}
}
