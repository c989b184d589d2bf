package enginetest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"ieg"
	"ieg/devices/engine"
)

// childEnv makes a test binary a child instead of running its tests.
const childEnv = "IEG_TEST_ENGINE_CHILD=1"

// Main runs the tests, or in a child started with Host the engine. A test
// binary calls it from TestMain with what its children can load.
func Main(m *testing.M, loaders map[string]engine.Loader) {
	if os.Getenv("IEG_TEST_ENGINE_CHILD") == "1" {
		os.Exit(engine.Main(loaders, OpenArena))
	}
	os.Exit(m.Run())
}

// Host fills in how to run this test binary as a child.
func Host(cfg engine.Config) engine.Config {
	cfg.Command = []string{"/proc/self/exe"}
	cfg.Env = append(cfg.Env, childEnv)
	return cfg
}

// Child is an engine in a child process whose notes can be awaited.
type Child struct {
	*engine.Child
	t     testing.TB
	notes chan engine.Note
}

// StartChild starts an engine in a child of this test binary. It is closed at
// the test's end, and must close in time then.
func StartChild(t testing.TB, cfg engine.Config) *Child {
	c := &Child{t: t, notes: make(chan engine.Note, 4096)}
	cfg.Notify = func(n engine.Note) { c.notes <- n }
	c.Child = engine.Start(Host(cfg))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepWait)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// Next returns the next note that is not a Loading.
func (c *Child) Next() engine.Note {
	c.t.Helper()
	deadline := time.After(stepWait)
	for {
		select {
		case n := <-c.notes:
			if _, ok := n.(engine.Loading); !ok {
				return n
			}
		case <-deadline:
			c.t.Fatalf("no note within %v", stepWait)
		}
	}
}

// Await returns the next note, which must be of type N.
func Await[N engine.Note](c *Child) N {
	c.t.Helper()
	n := c.Next()
	want, ok := n.(N)
	if !ok {
		c.t.Fatalf("note %T%+v, want a %T", n, n, want)
	}
	return want
}

// Remote makes a Runner of a child, for Run.
func Remote(c *Child, up engine.Up) engine.Runner { return &remote{c: c, info: up.Info} }

type remote struct {
	c    *Child
	info ieg.EngineInfo
	mu   sync.Mutex
	step ieg.StepID // in flight
}

func (r *remote) Info() ieg.EngineInfo { return r.info }

func (r *remote) Step(b *ieg.Batch, done *ieg.StepDone) {
	b.Engine, b.Epoch = r.info.ID, r.info.Epoch
	r.mu.Lock()
	r.step++
	b.Step = r.step
	r.mu.Unlock()
	if err := r.c.Submit(b); err != nil {
		r.c.t.Fatalf("submit: %v", err)
	}
	d := Await[engine.Done](r.c).Step
	if !d.Last || d.Repeat != 0 || d.Step != b.Step {
		r.c.t.Fatalf("report %+v of step %d", d, b.Step)
	}
	*done = *d // not released, so that the suite may keep it
}

func (r *remote) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Abort(r.info.Epoch, r.step)
}

func (r *remote) Tokenize(text string, special bool) ([]ieg.Token, error) {
	return r.c.Child.Tokenize(context.Background(), []engine.Part{{Text: text, Special: special}})
}

func (r *remote) Detokenize(tokens []ieg.Token) (string, error) {
	return r.c.Child.Detokenize(context.Background(), tokens)
}

func (r *remote) Close() {}
