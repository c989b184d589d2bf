package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"ieg"
)

// Config describes one supervised engine.
type Config struct {
	ID ieg.EngineID
	// Epoch is the last epoch that this engine has used; the first
	// incarnation gets the next one.
	Epoch ieg.Epoch
	Spec  LoadSpec
	// Command is the argument list that runs the child, for example the path
	// of this binary and "engine". The child must call Main.
	Command []string
	// Env is added to the environment of the node ("NAME=value").
	Env []string
	// Arena is the file of the node's arena, ArenaBytes long in pages of
	// ArenaPage bytes; nil: none. Each incarnation gets the same one. It stays
	// the caller's, and open until Close has returned.
	Arena      *os.File
	ArenaBytes int64
	ArenaPage  int
	// Notify receives every note, one at a time, in order. It may block only
	// as long as the child's reports may wait, and must not call Close.
	Notify func(Note)
	// Log gets starts and deaths; nil is silent.
	Log *slog.Logger
}

// Part is a piece of text. Control tokens spelled in it count only if Special
// is set.
type Part struct {
	Text    string
	Special bool
}

// Child is one supervised engine: a process that is started again when it
// dies. Its methods may be called from any goroutine; none but Close,
// Tokenize and Detokenize blocks.
type Child struct {
	cfg     Config
	closing chan struct{} // closed by Close
	ended   chan struct{} // closed after the final Down
	pool    chan *ieg.StepDone
	slots   chan struct{} // one per call in flight
	waiting atomic.Int32  // calls that wait for a slot or an answer

	mu     sync.Mutex
	cur    *incarnation // nil between two incarnations
	closed bool
	frame  []byte // where Submit encodes
}

// Start begins supervision; the child's progress arrives at cfg.Notify.
func Start(cfg Config) *Child {
	if cfg.Notify == nil {
		cfg.Notify = func(Note) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &Child{
		cfg:     cfg,
		closing: make(chan struct{}),
		ended:   make(chan struct{}),
		pool:    make(chan *ieg.StepDone, pooledReports),
		slots:   make(chan struct{}, CallsInFlight),
	}
	go c.supervise()
	return c
}

// ID is the engine's number.
func (c *Child) ID() ieg.EngineID { return c.cfg.ID }

// PID is the running incarnation's process id, or 0.
func (c *Child) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur == nil || c.cur.dead {
		return 0
	}
	return c.cur.pid()
}

// Submit sends a batch. It is encoded before Submit returns and not kept.
// ieg.ErrEngineLost: b.Epoch is not the incarnation that is up.
// ieg.ErrProtocol: a step is still in flight, or the batch is over a limit.
func (c *Child) Submit(b *ieg.Batch) error {
	if err := checkBatch(b); err != nil {
		return err
	}
	if b.Engine != c.cfg.ID {
		return fmt.Errorf("%w: batch for engine %d given to engine %d", ieg.ErrProtocol, b.Engine, c.cfg.ID)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inc := c.at(b.Epoch)
	if inc == nil || !inc.up {
		return fmt.Errorf("%w: engine %d is not up in epoch %d", ieg.ErrEngineLost, c.cfg.ID, b.Epoch)
	}
	if inc.busy {
		return fmt.Errorf("%w: engine %d still runs step %d", ieg.ErrProtocol, c.cfg.ID, inc.running)
	}
	frame, err := closeFrame(appendBatch(openFrame(c.frame[:0], frameBatch), b), 0)
	if c.frame = frame; cap(frame) > keepBytes {
		c.frame = nil
	}
	if err == nil {
		err = inc.out.send(frame)
	}
	if err == nil {
		inc.busy, inc.running = true, b.Step
	}
	return err
}

// Halt ends the grant of a step after the running repeat.
func (c *Child) Halt(epoch ieg.Epoch, step ieg.StepID) { c.refer(frameHalt, epoch, step) }

// Abort ends a step soon; its report is StepAborted, or StepOK if it was
// quicker.
func (c *Child) Abort(epoch ieg.Epoch, step ieg.StepID) { c.refer(frameAbort, epoch, step) }

// refer sends a frame that names a step, if the step is in flight.
func (c *Child) refer(typ byte, epoch ieg.Epoch, step ieg.StepID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	inc := c.at(epoch)
	if inc == nil || !inc.busy || inc.running != step {
		return
	}
	frame, err := closeFrame(appendStepRef(openFrame(c.frame[:0], typ), stepRef{epoch, step}), 0)
	if err == nil {
		err = inc.out.send(frame)
	}
	if err != nil && !errors.Is(err, ieg.ErrEngineLost) {
		inc.kill(err.Error()) // it reads nothing any more
	}
}

// at returns the incarnation of an epoch if it lives; c.mu is held.
func (c *Child) at(epoch ieg.Epoch) *incarnation {
	if c.cur == nil || c.cur.epoch != epoch || c.cur.dead {
		return nil
	}
	return c.cur
}

// Kill ends an incarnation, also a stopped one, with SIGKILL; it is started
// again. The reason is shown in Down. Another epoch is left alone.
func (c *Child) Kill(epoch ieg.Epoch, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if inc := c.at(epoch); inc != nil {
		inc.kill(reason)
	}
}

// Close ends the engine for good: the running step finishes, the model is
// freed, the process is reaped. When ctx ends first the process is killed and
// the error is ctx's. The last note is Down with Final. Close returns when
// everything is gone.
func (c *Child) Close(ctx context.Context) error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
		if c.cur != nil {
			c.cur.close()
		}
	}
	c.mu.Unlock()
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
	}
	c.mu.Lock()
	if c.cur != nil {
		c.cur.kill("did not close in time")
	}
	c.mu.Unlock()
	<-c.ended
	return ctx.Err()
}

// Ended is closed after the final Down.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Tokenize turns parts of text into one list of tokens, without waiting for a
// step. ieg.ErrEngineLost: no incarnation is up, or it died meanwhile;
// ieg.ErrBusy: too many calls are waiting; ieg.ErrContextLength: over
// TextBytes or TextParts.
func (c *Child) Tokenize(ctx context.Context, parts []Part) ([]ieg.Token, error) {
	n := 0
	for _, p := range parts {
		n += len(p.Text)
	}
	if n > TextBytes || len(parts) > TextParts {
		return nil, fmt.Errorf("%w: text of %d bytes in %d parts, the limits are %d and %d",
			ieg.ErrContextLength, n, len(parts), TextBytes, TextParts)
	}
	a, err := c.ask(ctx, frameTokenize, call{Parts: parts})
	return a.Tokens, err
}

// Detokenize is the inverse, control tokens shown as text. Its errors are
// those of Tokenize, the limit is DetokenizeTokens.
func (c *Child) Detokenize(ctx context.Context, tokens []ieg.Token) (string, error) {
	if len(tokens) > DetokenizeTokens {
		return "", fmt.Errorf("%w: %d tokens, the limit is %d", ieg.ErrContextLength, len(tokens), DetokenizeTokens)
	}
	a, err := c.ask(ctx, frameDetokenize, call{Tokens: tokens})
	return a.Text, err
}

func (c *Child) ask(ctx context.Context, typ byte, q call) (call, error) {
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > CallsInFlight+CallsWaiting {
		return call{}, fmt.Errorf("%w: %d tokenising calls are waiting", ieg.ErrBusy, CallsInFlight+CallsWaiting)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return call{}, ctx.Err()
	}
	c.mu.Lock()
	inc := c.cur
	if inc == nil || !inc.up || inc.dead {
		c.mu.Unlock()
		return call{}, fmt.Errorf("%w: engine %d is not up", ieg.ErrEngineLost, c.cfg.ID)
	}
	c.mu.Unlock()
	return inc.calls.ask(ctx, typ, q)
}

// Release takes back the value of a Done note. The caller must hold nothing
// of it, texts and vectors included.
func (c *Child) Release(d *ieg.StepDone) {
	select {
	case c.pool <- d:
	default:
	}
}

// report returns a value for a Done note.
func (c *Child) report() *ieg.StepDone {
	select {
	case d := <-c.pool:
		return d
	default:
		return new(ieg.StepDone)
	}
}
