package enginetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/devices/engine"
)

// RunChild checks an engine in a child process of this test binary: all of
// Run, with an arena of its own, then grants, refusals, and death at any
// moment. cfg needs Spec only.
func RunChild(t *testing.T, cfg engine.Config, o Options) {
	cfg.ID = max(cfg.ID, 1)
	share(t, &cfg, &o)
	t.Run("hosted", func(t *testing.T) {
		c := StartChild(t, cfg)
		up := Await[engine.Up](c)
		r := Remote(c, up)
		Run(t, o, func(t testing.TB) engine.Runner { c.t = t; return r })
		c.t = t
	})
	if o.EmbedOnly {
		return
	}
	t.Run("grant", func(t *testing.T) { testGrant(t, start(t, cfg, o)) })
	t.Run("grant refused", func(t *testing.T) { testGrantRefused(t, start(t, cfg, o)) })
	t.Run("halt", func(t *testing.T) { testHalt(t, start(t, cfg, o)) })
	t.Run("old epoch", func(t *testing.T) { testOldEpoch(t, start(t, cfg, o)) })
	t.Run("kill", func(t *testing.T) { testKill(t, start(t, cfg, o)) })
	t.Run("kv: grant", func(t *testing.T) { testCopyGrant(t, start(t, cfg, o)) })
	t.Run("kv: after a death", func(t *testing.T) { testCopyAfterDeath(t, start(t, cfg, o)) })
	t.Run("stopped", func(t *testing.T) { testStopped(t, start(t, cfg, o)) })
}

// hosted is a child on the test bench.
type hosted struct {
	*Child
	*bench
	up engine.Up
}

func start(t *testing.T, cfg engine.Config, o Options) *hosted {
	c := StartChild(t, cfg)
	up := Await[engine.Up](c)
	if o.Prompt == "" {
		o.Prompt = defaultPrompt
	}
	return &hosted{c, newBench(t, Remote(c, up), o), up}
}

// grant sends the prompt of a new sequence with a grant and returns it.
func (h *hosted) grant(n, most int32) ieg.SeqStart {
	h.Helper()
	s := h.start(0, h.prompt)
	s.MaxTokens = most
	s.Sampling.IgnoreEOS = true
	h.step += 1000
	h.submit(ieg.Batch{
		Step: h.step, Grant: n, New: []ieg.SeqStart{s},
		Work: []ieg.Work{{Seq: s.Seq, N: int32(len(h.prompt)), Sample: true}},
	})
	return s
}

func (h *hosted) submit(b ieg.Batch) {
	h.Helper()
	b.Engine, b.Epoch = h.up.Info.ID, h.up.Info.Epoch
	if err := h.Submit(&b); err != nil {
		h.Fatalf("submit: %v", err)
	}
}

// reports takes the reports of a step until its last.
func (h *hosted) reports(out *output) *ieg.StepDone {
	h.Helper()
	for repeat := int32(0); ; repeat++ {
		d := Await[engine.Done](h.Child).Step
		if d.Step != h.step || d.Repeat != repeat {
			h.Fatalf("report of step %d repeat %d, want %d, %d", d.Step, d.Repeat, h.step, repeat)
		}
		for i := range d.Results {
			out.take(h, &d.Results[i])
		}
		if d.Last {
			return d
		}
	}
}

// testGrant: a granted step gives the tokens of single ones, ends when it is
// spent and when the sequence stops.
func testGrant(t *testing.T, h *hosted) {
	s := h.start(0, h.prompt)
	s.Sampling.IgnoreEOS = true
	want := h.generate(s, 9)
	h.clear()
	var got output
	s = h.grant(5, 100)
	if d := h.reports(&got); d.Repeat != 5 || d.Outcome != ieg.StepOK {
		t.Errorf("ended at repeat %d, outcome %d, want 5", d.Repeat, d.Outcome)
	}
	h.step++
	h.submit(ieg.Batch{
		Step: h.step, Grant: 2,
		Work: []ieg.Work{{Seq: s.Seq, Start: int32(len(h.prompt) + len(got.tokens) - 1), N: 1, Sample: true}},
	})
	h.reports(&got)
	h.same("granted", want, got)

	h.clear()
	got = output{}
	h.grant(50, 4)
	if d := h.reports(&got); d.Repeat != 3 || got.stop != ieg.StopLength {
		t.Errorf("ended at repeat %d, stop %v; want 3, length", d.Repeat, got.stop)
	}
}

func testGrantRefused(t *testing.T, h *hosted) {
	s := h.start(0, h.prompt)
	for _, grant := range []int32{1, -1} {
		h.step++
		h.submit(ieg.Batch{Step: h.step, Grant: grant, New: []ieg.SeqStart{s}, Work: []ieg.Work{{Seq: s.Seq, N: 3}}})
		var out output
		if d := h.reports(&out); d.Outcome != ieg.StepFailed || d.Err == "" {
			t.Errorf("grant %d without a sample: outcome %d, %q", grant, d.Outcome, d.Err)
		}
	}
}

// testHalt ends a grant from outside, and refuses a batch while it runs.
func testHalt(t *testing.T, h *hosted) {
	var got output
	h.grant(10_000, h.up.Info.SlotTokens)
	b := ieg.Batch{Engine: h.up.Info.ID, Epoch: h.up.Info.Epoch, Step: h.step + 1}
	if err := h.Submit(&b); !errors.Is(err, ieg.ErrProtocol) {
		t.Errorf("a second batch: %v, want a refusal", err)
	}
	first := Await[engine.Done](h.Child).Step
	h.Halt(h.up.Info.Epoch, h.step+7) // another step: no effect
	h.Halt(h.up.Info.Epoch, h.step)
	for d := first; !d.Last; {
		d = Await[engine.Done](h.Child).Step
		if d.Last && d.Outcome != ieg.StepOK {
			t.Errorf("halted with outcome %d: %s", d.Outcome, d.Err)
		}
		if d.Last && first.Took > 300*time.Microsecond && d.Results[0].Stop != ieg.NotStopped {
			t.Errorf("ran on to repeat %d, its sequence's end", d.Repeat)
		}
	}
	h.Halt(h.up.Info.Epoch, h.step) // ended: no effect

	h.clear()
	h.grant(3, h.up.Info.SlotTokens)
	if d := h.reports(&got); d.Repeat != 3 {
		t.Errorf("the next grant ended at repeat %d, want 3: an old halt met it", d.Repeat)
	}
}

func testOldEpoch(t *testing.T, h *hosted) {
	for _, epoch := range []ieg.Epoch{0, h.up.Info.Epoch + 1} {
		b := ieg.Batch{Engine: h.up.Info.ID, Epoch: epoch, Step: 1}
		if err := h.Submit(&b); !errors.Is(err, ieg.ErrEngineLost) {
			t.Errorf("batch of epoch %d: %v, want engine lost", epoch, err)
		}
		h.Kill(epoch, "not meant")
		h.Abort(epoch, 1)
	}
	h.generate(h.start(0, h.prompt), 2)
}

// testKill kills the process in the middle of a grant; the engine comes back
// in a new epoch and gives the same tokens.
func testKill(t *testing.T, h *hosted) {
	want := h.generate(h.start(0, h.prompt), 6)
	h.clear()
	h.grant(1<<30, h.up.Info.SlotTokens)
	Await[engine.Done](h.Child)
	if err := unix.Kill(h.up.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.comeBack(t, "signal 9")
	h.same("after a death", want, h.generate(h.start(0, h.prompt), 6))
}

// testStopped: a stopped process is killed by Kill, and nothing else blocks
// meanwhile.
func testStopped(t *testing.T, h *hosted) {
	if err := unix.Kill(h.up.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Its threads stop one after the other; the child of this process is
	// waited for without being reaped.
	for unix.Waitid(unix.P_PID, h.up.PID, nil, unix.WSTOPPED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	s := h.start(0, slices.Repeat(h.prompt, 200_000/len(h.prompt)))
	h.submit(ieg.Batch{Step: 1 << 20, New: []ieg.SeqStart{s}, Work: []ieg.Work{{Seq: s.Seq, N: 8}}})
	h.Abort(h.up.Info.Epoch, 1<<20)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := h.Child.Tokenize(ctx, []engine.Part{{Text: "x"}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("tokenize of a stopped engine: %v", err)
	}
	h.Kill(h.up.Info.Epoch, "made no progress")
	h.comeBack(t, "made no progress")
	h.generate(h.start(0, h.prompt), 2)
}

// comeBack awaits a death whose reason says why, and the next incarnation.
func (h *hosted) comeBack(t *testing.T, why string) {
	t.Helper()
	var down engine.Down
	for n := h.Next(); ; n = h.Next() {
		if d, ok := n.(engine.Down); ok {
			down = d
			break
		}
	}
	if down.Epoch != h.up.Info.Epoch || down.Final || !errors.Is(down.Err, ieg.ErrEngineLost) || !strings.Contains(down.Reason, why) {
		t.Errorf("%+v, want epoch %d lost because of %q", down, h.up.Info.Epoch, why)
	}
	before := h.up
	began := time.Now()
	h.up = Await[engine.Up](h.Child)
	t.Logf("ready again after %v", time.Since(began))
	if h.up.Info.Epoch != before.Info.Epoch+1 || h.up.PID == before.PID {
		t.Errorf("came back as epoch %d process %d, was %d, %d", h.up.Info.Epoch, h.up.PID, before.Info.Epoch, before.PID)
	}
	h.bench.runner = Remote(h.Child, h.up)
	h.live = nil
}
