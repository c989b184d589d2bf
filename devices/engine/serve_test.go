package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
)

// fake is a runner whose steps wait for goOn or an abort; it draws each work's
// start.
type fake struct {
	entered chan struct{}
	goOn    chan struct{}
	abort   chan struct{}
	closed  chan struct{}
	works   []int // sequences of each step
	short   bool  // give too few results
}

func newFake() *fake {
	return &fake{entered: make(chan struct{}, 100), goOn: make(chan struct{}, 100), abort: make(chan struct{}, 1), closed: make(chan struct{})}
}

func (f *fake) Info() ieg.EngineInfo { return ieg.EngineInfo{Slots: 4} }

func (f *fake) Step(b *ieg.Batch, d *ieg.StepDone) {
	f.works = append(f.works, len(b.Work))
	if len(b.Work) == 0 {
		return
	}
	f.entered <- struct{}{}
	select {
	case <-f.goOn:
	case <-f.abort:
		d.Outcome = ieg.StepAborted
		return
	}
	for _, w := range b.Work[min(len(b.Work), 1*btoi(f.short)):] {
		d.Results = append(d.Results, ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample, Token: ieg.Token(w.Start)})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Abort is kept for the next step if none runs, which shows an abort that came
// too late.
func (f *fake) Abort() {
	select {
	case f.abort <- struct{}{}:
	default:
	}
}
func (f *fake) Tokenize(string, bool) ([]ieg.Token, error) { return []ieg.Token{1}, nil }
func (f *fake) Detokenize([]ieg.Token) (string, error)     { return "x", nil }
func (f *fake) Close()                                     { close(f.closed) }

// node is the other end of Serve, by hand.
type node struct {
	t    *testing.T
	step net.Conn
	ctl  net.Conn
	in   *frameReader
	done chan error // Serve's result
}

func pair(t *testing.T) (a, b net.Conn) {
	fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conn [2]net.Conn
	for i := range conn {
		f := os.NewFile(uintptr(fd[i]), "pair")
		if conn[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { conn[i].Close() })
	}
	return conn[0], conn[1]
}

// serve runs Serve with a loader, up to the load frame.
func serve(t *testing.T, load Loader) *node {
	n := &node{t: t, done: make(chan error, 1)}
	var step, ctl net.Conn
	n.step, step = pair(t)
	n.ctl, ctl = pair(t)
	n.in = newFrameReader(n.step)
	go func() { n.done <- Serve(context.Background(), step, ctl, map[string]Loader{"fake": load}, nil) }()
	n.send(n.step, frameHello, appendHello(nil, hello{Version: protocolVersion, Plane: stepPlane, Engine: 3, Epoch: 7}))
	n.send(n.ctl, frameHello, appendHello(nil, hello{Version: protocolVersion, Plane: ctlPlane, Engine: 3, Epoch: 7}))
	n.send(n.step, frameLoad, []byte(`{"backend":"fake"}`))
	n.expect(frameHello)
	return n
}

// serveFake has a runner loaded.
func serveFake(t *testing.T, f *fake) *node {
	n := serve(t, func(context.Context, LoadSpec, func(float64)) (Runner, error) { return f, nil })
	info, err := decodeInfo(n.expect(frameReady))
	if err != nil || info.ID != 3 || info.Epoch != 7 || info.Slots != 4 {
		t.Fatalf("%+v (%v)", info, err)
	}
	return n
}

func (n *node) send(conn net.Conn, typ byte, body []byte) {
	n.t.Helper()
	frame, err := closeFrame(append(openFrame(nil, typ), body...), 0)
	if err == nil {
		_, err = conn.Write(frame)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) expect(typ byte) []byte {
	n.t.Helper()
	if err := n.step.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		n.t.Fatal(err)
	}
	got, body, err := n.in.next()
	if err != nil || got != typ {
		n.t.Fatalf("frame of type %d (%v), want %d", got, err, typ)
	}
	return body
}

func (n *node) batch(step ieg.StepID, grant int32) {
	n.t.Helper()
	n.send(n.step, frameBatch, appendBatch(nil, &ieg.Batch{
		Engine: 3, Epoch: 7, Step: step, Grant: grant, Work: []ieg.Work{{Seq: 1, Start: 5, N: 2, Sample: true}, {Seq: 2, Slot: 1, Start: 9, N: 1, Sample: true}},
	}))
}

func (n *node) report() *ieg.StepDone {
	n.t.Helper()
	d := &ieg.StepDone{}
	if err := decodeDone(n.expect(frameDone), d); err != nil {
		n.t.Fatal(err)
	}
	return d
}

// ends waits for Serve's result.
func (n *node) ends() error {
	n.t.Helper()
	select {
	case err := <-n.done:
		return err
	case <-time.After(20 * time.Second):
		n.t.Fatal("Serve goes on")
		return nil
	}
}

func ref(step ieg.StepID) []byte { return appendStepRef(nil, stepRef{Epoch: 7, Step: step}) }

func TestServeGrant(t *testing.T) {
	f := newFake()
	n := serveFake(t, f)
	for range 3 {
		f.goOn <- struct{}{}
	}
	n.batch(1, 2)
	for repeat, starts := range [][2]ieg.Token{{5, 9}, {7, 10}, {8, 11}} {
		d := n.report()
		if d.Repeat != int32(repeat) || d.Last != (repeat == 2) || d.Results[0].Token != starts[0] || d.Results[1].Token != starts[1] {
			t.Errorf("repeat %d: %+v, want starts %v", repeat, d, starts)
		}
	}
	n.send(n.step, frameClose, nil)
	if err := n.ends(); err != nil {
		t.Errorf("close: %v", err)
	}
	<-f.closed
}

func TestServeHaltAndAbort(t *testing.T) {
	f := newFake()
	n := serveFake(t, f)
	n.batch(1, 100)
	<-f.entered
	n.send(n.step, frameHalt, ref(99)) // not this step
	f.goOn <- struct{}{}
	if d := n.report(); d.Last {
		t.Errorf("ended by a halt for another step: %+v", d)
	}
	<-f.entered
	n.send(n.step, frameHalt, ref(1))
	n.drained()
	f.goOn <- struct{}{}
	if d := n.report(); !d.Last || d.Repeat != 1 || d.Outcome != ieg.StepOK {
		t.Errorf("after a halt: %+v", d)
	}
	n.batch(2, 100)
	<-f.entered
	n.send(n.step, frameAbort, ref(2))
	if d := n.report(); !d.Last || d.Repeat != 0 || d.Outcome != ieg.StepAborted || len(d.Results) != 0 {
		t.Errorf("after an abort: %+v", d)
	}
	n.step.Close()
	if err := n.ends(); !errors.Is(err, ieg.ErrEngineLost) {
		t.Errorf("the node left: %v", err)
	}
}

// drained waits until Serve has read all that was sent: it answers on the
// step plane in order, but a halt has no answer, so the socket is watched.
func (n *node) drained() {
	n.t.Helper()
	raw, err := n.step.(*net.UnixConn).SyscallConn()
	if err != nil {
		n.t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for left := 1; left > 0; {
		if err := raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }); err != nil || time.Now().After(deadline) {
			n.t.Fatalf("%d bytes unread (%v)", left, err)
		}
		<-time.After(time.Millisecond)
	}
	<-time.After(5 * time.Millisecond) // read, and now surely taken
}

func TestServeShortResults(t *testing.T) {
	f := newFake()
	f.short = true
	n := serveFake(t, f)
	f.goOn <- struct{}{}
	n.batch(1, 0)
	if d := n.report(); d.Outcome != ieg.StepFailed || d.Err != "the runner gave 1 results for 2 sequences" {
		t.Errorf("%+v", d)
	}
}

// TestServeBreaches: what breaks the protocol ends Serve with ErrProtocol.
func TestServeBreaches(t *testing.T) {
	wrong := func(edit func(*ieg.Batch)) []byte {
		b := ieg.Batch{Engine: 3, Epoch: 7, Step: 1}
		edit(&b)
		return appendBatch(nil, &b)
	}
	for name, act := range map[string]func(n *node, f *fake){
		"a batch in a step": func(n *node, f *fake) { n.batch(1, 0); <-f.entered; n.batch(2, 0) },
		"another epoch": func(n *node, _ *fake) {
			n.send(n.step, frameBatch, wrong(func(b *ieg.Batch) { b.Epoch = 6 }))
		},
		"another engine": func(n *node, _ *fake) {
			n.send(n.step, frameBatch, wrong(func(b *ieg.Batch) { b.Engine = 4 }))
		},
		"a broken batch":  func(n *node, _ *fake) { n.send(n.step, frameBatch, []byte{1}) },
		"an unknown type": func(n *node, _ *fake) { n.send(n.step, 99, nil) },
		"a second load":   func(n *node, _ *fake) { n.send(n.step, frameLoad, []byte(`{}`)) },
		"a broken call":   func(n *node, _ *fake) { n.send(n.ctl, frameTokenize, []byte{1, 2}) },
		"a huge frame": func(n *node, _ *fake) {
			if _, err := n.step.Write([]byte{0, 0, 0, 0xff}); err != nil {
				n.t.Fatal(err)
			}
		},
	} {
		f := newFake()
		n := serveFake(t, f)
		act(n, f)
		if err := n.ends(); !errors.Is(err, ieg.ErrProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestServeLoading(t *testing.T) {
	n := serve(t, func(_ context.Context, _ LoadSpec, progress func(float64)) (Runner, error) {
		for i := range 1001 {
			progress(float64(i) / 1000)
		}
		return nil, fmt.Errorf("x: %w", ieg.ErrUnsupported)
	})
	frames := 0
	for {
		typ, body, err := n.in.next()
		if err != nil {
			t.Fatal(err)
		}
		if typ == frameFailed {
			failure, err := decodeError(body)
			if err != nil || !isPermanent(failure) {
				t.Errorf("%v (%v)", failure, err)
			}
			break
		}
		frames++
	}
	if frames > 100 || frames < 50 {
		t.Errorf("%d progress frames, want about one a percent", frames)
	}
	if err := n.ends(); !errors.Is(err, ieg.ErrUnsupported) {
		t.Error(err)
	}

	// The node leaves, closes, or sends a batch while the loader hears
	// nothing: Serve ends all the same.
	for name, c := range map[string]struct {
		act  func(n *node)
		want error
	}{
		"leave": {func(n *node) { n.step.Close() }, ieg.ErrEngineLost},
		"close": {func(n *node) { n.send(n.step, frameClose, nil) }, nil},
		"batch": {func(n *node) { n.batch(1, 0) }, ieg.ErrProtocol},
	} {
		release := make(chan struct{})
		n := serve(t, func(context.Context, LoadSpec, func(float64)) (Runner, error) {
			<-release
			return newFake(), nil
		})
		c.act(n)
		if err := n.ends(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		close(release)
	}
}

func TestServeCancelled(t *testing.T) {
	step, theirs := pair(t)
	ctl, theirCtl := pair(t)
	_, _ = step, ctl
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Serve(ctx, theirs, theirCtl, nil, nil); err == nil {
		t.Error("served without a context")
	}
}
