package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"time"

	"ieg"
)

// Serve is the child's side: it reads what to load from step, loads it, and
// runs batches until the node closes the engine (nil) or goes away
// (ieg.ErrEngineLost). Tokenising is served on ctl meanwhile. When the node
// goes away or breaks the protocol Serve returns at once, with a step perhaps
// still running: the caller must end the process. Serve closes both
// connections. openArena maps the node's arena by its size and its pages'; it
// may be nil.
//
// A model that can't be loaded is reported to the node and returned.
func Serve(ctx context.Context, step, ctl net.Conn, loaders map[string]Loader, openArena func(bytes int64, pageBytes int) (Arena, error)) error {
	defer step.Close()
	defer ctl.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	defer context.AfterFunc(ctx, func() { step.Close(); ctl.Close() })()

	s := &server{ctx: ctx, cancel: cancel, ctl: ctl, in: newFrameReader(step), out: frameWriter{w: step}, work: make(chan struct{}, 1)}
	if err := s.greet(); err != nil {
		return err
	}
	load, err := s.in.readLoad()
	if err != nil {
		return err
	}
	load.mapArena(openArena)
	s.warm = newWarming(load.Arena)
	loader, ok := loaders[load.Backend]
	if !ok {
		loader = func(context.Context, LoadSpec, func(float64)) (Runner, error) {
			return nil, fmt.Errorf("%w: no backend %q in this build", ieg.ErrUnsupported, load.Backend)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.run(loader, load) }()
	go s.read()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return endOf(context.Cause(ctx))
	}
}

// mapArena fills in Arena, or ArenaNote.
func (s *LoadSpec) mapArena(open func(int64, int) (Arena, error)) {
	switch {
	case s.ArenaBytes == 0:
		s.ArenaNote = "the node shares no arena"
	case open == nil:
		s.ArenaNote = "this build of the engine can't map the node's arena"
	default:
		a, err := open(s.ArenaBytes, s.ArenaPageBytes)
		if err != nil {
			s.ArenaNote = fmt.Sprintf("the node's arena can't be mapped: %v", err)
			return
		}
		s.Arena = a
	}
}

// errClosed: the node closed the engine before it was loaded.
var errClosed = errors.New("closed")

func endOf(cause error) error {
	if cause == errClosed {
		return nil
	}
	return cause
}

// server is one engine in its child. The worker (run) owns the runner and
// done; the reader (read) fills batch while busy is false; mu guards the rest.
type server struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	ctl    net.Conn
	in     *frameReader
	ctlIn  *frameReader
	out    frameWriter
	ctlOut frameWriter
	id     ieg.EngineID
	epoch  ieg.Epoch

	runner Runner
	batch  ieg.Batch
	done   ieg.StepDone
	work   chan struct{} // batch is filled; closed on Close
	warm   *warming

	mu      sync.Mutex
	loaded  bool
	busy    bool // batch is being run
	halted  bool // no repeat after this one
	aborted bool // end this repeat
	closing bool
}

// greet exchanges hellos on both planes. The child speaks first, so that a
// node of another version can tell what is wrong.
func (s *server) greet() error {
	s.ctlIn, s.ctlOut = newFrameReader(s.ctl), frameWriter{w: s.ctl}
	err := s.out.send(frameHello, func(b []byte) []byte {
		return appendHello(b, hello{Version: protocolVersion, Plane: stepPlane})
	})
	if err == nil {
		err = s.ctlOut.send(frameHello, func(b []byte) []byte {
			return appendHello(b, hello{Version: protocolVersion, Plane: ctlPlane})
		})
	}
	if err != nil {
		return lost(err)
	}
	h, err := s.in.readHello(stepPlane)
	if err == nil {
		s.id, s.epoch = h.Engine, h.Epoch
		_, err = s.ctlIn.readHello(ctlPlane)
	}
	return err
}

// readHello reads the node's hello for a plane.
func (f *frameReader) readHello(plane uint8) (hello, error) {
	typ, body, err := f.next()
	if err != nil {
		return hello{}, lost(err)
	}
	if typ != frameHello {
		return hello{}, fmt.Errorf("%w: frame of type %d before hello", ieg.ErrProtocol, typ)
	}
	h, err := decodeHello(body)
	if err == nil && h.Plane != plane {
		err = fmt.Errorf("%w: hello for plane %d on plane %d", ieg.ErrProtocol, h.Plane, plane)
	}
	return h, err
}

func (f *frameReader) readLoad() (LoadSpec, error) {
	typ, body, err := f.next()
	if err != nil {
		return LoadSpec{}, lost(err)
	}
	if typ != frameLoad {
		return LoadSpec{}, fmt.Errorf("%w: frame of type %d before load", ieg.ErrProtocol, typ)
	}
	return decodeSpec(body)
}

// lost gives a broken connection its identity; other errors keep theirs.
func lost(err error) error {
	if errors.Is(err, ieg.ErrProtocol) {
		return err
	}
	if err == io.EOF {
		return fmt.Errorf("%w: the other side closed the connection", ieg.ErrEngineLost)
	}
	return fmt.Errorf("%w: %v", ieg.ErrEngineLost, err)
}

// run loads the model and runs batches, on one thread.
func (s *server) run(loader Loader, load LoadSpec) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = hurry() // a user who may not has slower steps, on a busy host
	runner, err := loader(s.ctx, load, s.progress())
	if err != nil {
		if sendErr := s.out.send(frameFailed, func(b []byte) []byte { return appendError(b, err) }); sendErr != nil {
			return lost(sendErr)
		}
		return err
	}
	s.mu.Lock()
	s.runner, s.loaded = runner, true
	s.mu.Unlock()
	calls := s.serveCalls()
	err = s.runBatches()
	// Not deferred: a panic of the runner ends the process at once.
	s.ctl.Close()
	if endsWithin(calls, callWait) {
		runner.Close()
	}
	return err
}

// runBatches says that the model is ready and runs what comes until Close.
func (s *server) runBatches() error {
	info := s.runner.Info()
	info.ID, info.Epoch = s.id, s.epoch
	body, err := appendInfo(nil, &info)
	if err != nil {
		return err
	}
	if err := s.out.send(frameReady, func(b []byte) []byte { return append(b, body...) }); err != nil {
		return lost(err)
	}
	for range s.work {
		if err := s.runBatch(); err != nil {
			return lost(err)
		}
	}
	return nil
}

// endsWithin waits for wg, at most d.
func endsWithin(wg *sync.WaitGroup, d time.Duration) bool {
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
		return true
	case <-time.After(d):
		return false
	}
}

// progress reports the loaded fraction, at most once per percent.
func (s *server) progress() func(float64) {
	last := 0.0
	return func(f float64) {
		if !(f >= last+0.01 && f <= 1) || s.ctx.Err() != nil {
			return
		}
		last = f
		if err := s.out.send(frameProgress, func(b []byte) []byte { return appendF64(b, f) }); err != nil {
			s.cancel(lost(err))
		}
	}
}

// read takes frames of the step plane until the connection ends, so that
// halt, abort and the node's death act during a step.
func (s *server) read() {
	for {
		typ, body, err := s.in.next()
		if err == nil {
			err = s.take(typ, body)
		}
		if err == nil {
			continue
		}
		s.cancel(lost(err))
		s.mu.Lock()
		s.aborted = true
		s.nudge()
		if !s.closing {
			s.closing = true
			close(s.work)
		}
		s.mu.Unlock()
		return
	}
}

// take handles one frame from the node.
func (s *server) take(typ byte, body []byte) error {
	switch typ {
	case frameBatch:
		return s.takeBatch(body)
	case frameHalt, frameAbort:
		ref, err := decodeStepRef(body)
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.busy || ref.Epoch != s.epoch || ref.Step != s.batch.Step {
			return nil // the step has ended meanwhile
		}
		s.halted = true
		if typ == frameAbort && !s.aborted {
			s.aborted = true
			s.nudge()
		}
		return nil
	case frameClose:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.halted = true
		if !s.loaded {
			s.cancel(errClosed)
		}
		if !s.closing {
			s.closing = true
			close(s.work)
		}
		return nil
	}
	return fmt.Errorf("%w: frame of type %d on the step plane", ieg.ErrProtocol, typ)
}

// nudge asks the runner to end the step, again and again since the step may
// not have entered the runner yet. s.mu is held, so that the abort can't meet
// a later step.
func (s *server) nudge() {
	if !s.busy || !s.aborted || s.runner == nil {
		return
	}
	s.runner.Abort()
	time.AfterFunc(abortRetry, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.nudge()
	})
}

// frameWriter writes frames from several goroutines.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

func (f *frameWriter) send(typ byte, body func([]byte) []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.flush(body(openFrame(f.buf[:0], typ)))
}

// flush closes and writes the frame in b, which was made in f.buf; f.mu is
// held.
func (f *frameWriter) flush(b []byte) error {
	b, err := closeFrame(b, 0)
	if f.buf = b; cap(b) > keepBytes {
		f.buf = nil
	}
	if err == nil {
		_, err = f.w.Write(b)
	}
	return err
}
