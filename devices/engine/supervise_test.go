package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/devices/engine"
	"ieg/devices/engine/enginetest"
)

func backend(name string) engine.Config {
	spec := synthSpec()
	spec.Backend = name
	return engine.Config{ID: 5, Epoch: 10, Spec: spec}
}

func TestPermanentFailure(t *testing.T) {
	for name, identity := range map[string]error{"missing": fs.ErrNotExist, "no such backend": ieg.ErrUnsupported} {
		c := enginetest.StartChild(t, backend(name))
		down := enginetest.Await[engine.Down](c)
		if !down.Final || down.ID != 5 || down.Epoch != 11 || !errors.Is(down.Err, identity) || !strings.HasPrefix(down.Reason, "not loaded: ") {
			t.Errorf("%s: %+v", name, down)
		}
		<-c.Ended()
		if err := c.Submit(&ieg.Batch{Engine: 5, Epoch: 11}); !errors.Is(err, ieg.ErrEngineLost) {
			t.Errorf("%s: submit: %v", name, err)
		}
	}
}

func TestCommandMissing(t *testing.T) {
	for name, command := range map[string][]string{"none": nil, "not there": {"/no/such/program"}} {
		notes := make(chan engine.Note, 1)
		c := engine.Start(engine.Config{ID: 1, Command: command, Notify: func(n engine.Note) { notes <- n }})
		if down, ok := (<-notes).(engine.Down); !ok || !down.Final || down.Err == nil {
			t.Errorf("%s: %+v", name, down)
		}
		<-c.Ended()
	}
}

// TestStranger: a command that is no engine is told by its first frame.
func TestStranger(t *testing.T) {
	notes := make(chan engine.Note, 16)
	c := engine.Start(engine.Config{
		ID: 1, Command: []string{"sh", "-c", "echo something that is no frame >&3; sleep 100"},
		Notify: func(n engine.Note) { notes <- n },
	})
	for {
		if down, ok := (<-notes).(engine.Down); ok {
			if !down.Final || !errors.Is(down.Err, ieg.ErrProtocol) {
				t.Errorf("%+v", down)
			}
			break
		}
	}
	<-c.Ended()
}

func TestSecondTry(t *testing.T) {
	cfg := backend("second try")
	cfg.Spec.Path = filepath.Join(t.TempDir(), "tried")
	c := enginetest.StartChild(t, cfg)
	down := enginetest.Await[engine.Down](c)
	if down.Final || !errors.Is(down.Err, ieg.ErrOutOfMemory) {
		t.Errorf("%+v", down)
	}
	if up := enginetest.Await[engine.Up](c); up.Info.Epoch != 12 || up.Info.ID != 5 {
		t.Errorf("up as engine %d epoch %d", up.Info.ID, up.Info.Epoch)
	}
}

func TestLastWords(t *testing.T) {
	c := enginetest.StartChild(t, backend("panics"))
	down := enginetest.Await[engine.Down](c)
	if down.Final || !strings.Contains(down.Reason, "died while loading: exit status 2") || !strings.Contains(down.Reason, "panic: a failed assertion") {
		t.Errorf("reason %q", down.Reason)
	}
	if !strings.Contains(down.Stderr, "goroutine") {
		t.Errorf("stderr %q", down.Stderr)
	}
}

func TestLoadingNotes(t *testing.T) {
	var fractions []float64
	up := make(chan struct{})
	cfg := enginetest.Host(backend("synth"))
	cfg.Notify = func(n engine.Note) {
		switch n := n.(type) {
		case engine.Loading:
			if n.PID == 0 || n.Epoch != 11 {
				t.Errorf("%+v", n)
			}
			fractions = append(fractions, n.Fraction)
		case engine.Up:
			close(up)
		}
	}
	c := engine.Start(cfg)
	<-up
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if len(fractions) != 11 || fractions[0] != 0 || fractions[10] != 1 {
		t.Errorf("fractions %v", fractions)
	}
}

// TestCloseAnytime closes while a child loads for ever, after it is up, while
// it is stopped, and twice at once.
func TestCloseAnytime(t *testing.T) {
	notes := func(name string, upTo func(engine.Note) bool) (*engine.Child, chan engine.Note) {
		ch := make(chan engine.Note, 64)
		cfg := enginetest.Host(backend(name))
		cfg.Notify = func(n engine.Note) { ch <- n }
		c := engine.Start(cfg)
		for n := range ch {
			if upTo(n) {
				break
			}
		}
		return c, ch
	}
	final := func(what string, ch chan engine.Note) {
		t.Helper()
		for {
			switch n := (<-ch).(type) {
			case engine.Down:
				if !n.Final || n.Reason != "closed" || n.Err != nil {
					t.Errorf("%s: %+v", what, n)
				}
				return
			}
		}
	}
	half := func(n engine.Note) bool { l, ok := n.(engine.Loading); return ok && l.Fraction == 0.5 }
	isUp := func(n engine.Note) bool { _, ok := n.(engine.Up); return ok }

	c, ch := notes("never", half)
	if err := c.Close(context.Background()); err != nil {
		t.Errorf("while loading: %v", err)
	}
	final("while loading", ch)

	c, ch = notes("synth", isUp)
	second := make(chan error)
	go func() { second <- c.Close(context.Background()) }()
	if err := errors.Join(c.Close(context.Background()), <-second); err != nil {
		t.Errorf("twice: %v", err)
	}
	final("twice", ch)

	c, ch = notes("synth", isUp)
	if err := unix.Kill(c.PID(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stopped: %v", err)
	}
	final("stopped", ch)

	c, ch = notes("panics", func(n engine.Note) bool { d, ok := n.(engine.Down); return ok && d.Epoch == 15 })
	if err := c.Close(context.Background()); err != nil { // between two incarnations
		t.Errorf("in the pause: %v", err)
	}
	final("in the pause", ch)
}

// TestCloseFinishesTheStep: the running step's report still comes.
func TestCloseFinishesTheStep(t *testing.T) {
	cfg := backend("synth")
	cfg.Spec.Synth.StepNS = 50e6
	c := enginetest.StartChild(t, cfg)
	up := enginetest.Await[engine.Up](c)
	if err := c.Submit(&ieg.Batch{
		Engine: 5, Epoch: up.Info.Epoch, Step: 1, Grant: 1000,
		New:  []ieg.SeqStart{{Seq: 1, Tokens: []ieg.Token{300}, Prompt: 1}},
		Work: []ieg.Work{{Seq: 1, N: 1, Sample: true}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if d := enginetest.Await[engine.Done](c).Step; !d.Last || d.Outcome != ieg.StepOK || d.Repeat != 0 {
		t.Errorf("%+v", d)
	}
	enginetest.Await[engine.Down](c)
}

func TestTokenizeNeverWaitsForAStep(t *testing.T) {
	cfg := backend("synth")
	cfg.Spec.Synth.StepNS = 3600e9
	c := enginetest.StartChild(t, cfg)
	up := enginetest.Await[engine.Up](c)
	if err := c.Submit(&ieg.Batch{
		Engine: 5, Epoch: up.Info.Epoch, Step: 1,
		New:  []ieg.SeqStart{{Seq: 1, Tokens: []ieg.Token{300}, Prompt: 1}},
		Work: []ieg.Work{{Seq: 1, N: 1, Sample: true}},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	got, err := c.Tokenize(ctx, []engine.Part{{Text: "<s>", Special: true}, {Text: "w300 <s>"}})
	if want := "[1 300 64 119 66]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("tokens %v (%v), want %s", got, err, want)
	}
	if text, err := c.Detokenize(ctx, got); err != nil || text != "<s>w300 <s>" {
		t.Errorf("text %q (%v)", text, err)
	}
	if _, err := c.Detokenize(ctx, []ieg.Token{-1}); !errors.Is(err, ieg.ErrUnsupported) {
		t.Errorf("a token that is none: %v", err)
	}
	if _, err := c.Tokenize(ctx, []engine.Part{{Text: strings.Repeat("x", engine.TextBytes+1)}}); !errors.Is(err, ieg.ErrContextLength) {
		t.Errorf("a long text: %v", err)
	}
	c.Abort(up.Info.Epoch, 1)
	if d := enginetest.Await[engine.Done](c).Step; d.Outcome != ieg.StepAborted || !d.Last {
		t.Errorf("%+v", d)
	}
}

// TestDeathEndsCalls: a call that waits for a dead child's answer fails.
func TestDeathEndsCalls(t *testing.T) {
	cfg := backend("stuck")
	cfg.Spec.Path = filepath.Join(t.TempDir(), "asked")
	c := enginetest.StartChild(t, cfg)
	up := enginetest.Await[engine.Up](c)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Tokenize(context.Background(), []engine.Part{{Text: "x"}})
		failed <- err
	}()
	eventually(t, func() error { _, err := os.Stat(cfg.Spec.Path); return err })
	if err := c.Submit(&ieg.Batch{Engine: 5, Epoch: up.Info.Epoch, Step: 1}); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, ieg.ErrEngineLost) {
		t.Errorf("the call ended with %v", err)
	}
	down := enginetest.Await[engine.Down](c)
	if !strings.Contains(down.Reason, "panic: died in a step") || !errors.Is(down.Err, ieg.ErrEngineLost) {
		t.Errorf("%+v", down)
	}
}

// TestCallsAreBounded: past the calls that may wait, more are refused; those
// that wait leave when their context ends.
func TestCallsAreBounded(t *testing.T) {
	cfg := backend("stuck")
	cfg.Spec.Path = filepath.Join(t.TempDir(), "asked")
	c := enginetest.StartChild(t, cfg)
	enginetest.Await[engine.Up](c)
	ctx, cancel := context.WithCancel(context.Background())
	const most = engine.CallsInFlight + engine.CallsWaiting
	failed := make(chan error, most+1)
	for range most + 1 {
		go func() {
			_, err := c.Tokenize(ctx, []engine.Part{{Text: "x"}})
			failed <- err
		}()
	}
	if err := <-failed; !errors.Is(err, ieg.ErrBusy) {
		t.Errorf("one call too many: %v", err)
	}
	cancel()
	for range most {
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("a call that was left: %v", err)
		}
	}
}

func TestProcessHygiene(t *testing.T) {
	c := enginetest.StartChild(t, backend("synth"))
	up := enginetest.Await[engine.Up](c)
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", up.PID)); err != nil || strings.TrimSpace(string(score)) != "500" {
		t.Errorf("oom_score_adj %q (%v)", score, err)
	}
	if group, err := unix.Getpgid(up.PID); err != nil || group != up.PID {
		t.Errorf("process %d in group %d (%v)", up.PID, group, err)
	}
	// What a service manager sends to all its processes leaves the child to
	// the node.
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP} {
		if err := unix.Kill(up.PID, sig); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Tokenize(context.Background(), []engine.Part{{Text: "x"}}); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	// The two planes, /dev/null, the pipe of output, and what Go's runtime
	// polls with: no descriptor of the node comes along.
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", up.PID))
	if err != nil || len(fds) > 12 {
		t.Errorf("%d descriptors (%v)", len(fds), err)
	}
}

// TestNodeDies: a child does not outlive the node, even when it is killed.
func TestNodeDies(t *testing.T) {
	node := exec.Command("/proc/self/exe")
	node.Env = append(os.Environ(), "IEG_TEST_NODE=1")
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatal(err)
	}
	if err := node.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = node.Wait()
	eventually(t, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return nil // gone, or left for init to reap
		}
		return fmt.Errorf("child %d lives: %s", pid, stat)
	})
}

// TestNothingLeaks counts what the node holds before and after many deaths.
func TestNothingLeaks(t *testing.T) {
	count := func() (fds, goroutines, children int) {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			text, _ := os.ReadFile(task) // a thread may have ended meanwhile
			children += len(strings.Fields(string(text)))
		}
		return len(list), runtime.NumGoroutine(), children
	}
	round := func(kills int) {
		c := enginetest.StartChild(t, backend("synth"))
		for i := range kills {
			up := enginetest.Await[engine.Up](c)
			if i%2 == 0 {
				if err := unix.Kill(up.PID, unix.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			c.Kill(up.Info.Epoch, "test")
			if down := enginetest.Await[engine.Down](c); down.Reason != "killed: test" {
				t.Errorf("%+v", down)
			}
		}
		if err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
	round(1)
	fds, goroutines, children := count()
	for range 5 {
		round(3)
	}
	eventually(t, func() error {
		f, g, c := count()
		if f > fds || g > goroutines || c > children {
			return fmt.Errorf("descriptors %d → %d, goroutines %d → %d, children %d → %d", fds, f, goroutines, g, children, c)
		}
		return nil
	})
}

// eventually waits until check has no complaint.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for err := check(); err != nil; err = check() {
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
}
