package engine

import (
	"context"
	"log/slog"

	"ieg"
)

// Config describes one supervised engine.
type Config struct {
	ID   ieg.EngineID
	Spec LoadSpec
	// Command is the argument list that runs the child, for example the path
	// of this binary and "engine". The child must call Main.
	Command []string
	// Env is added to the environment of the node ("NAME=value").
	Env []string
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
type Child struct{ cfg Config }

// Start begins supervision; the child's progress arrives at cfg.Notify.
func Start(cfg Config) *Child { return &Child{cfg: cfg} }

// ID is the engine's number.
func (c *Child) ID() ieg.EngineID { return c.cfg.ID }

// PID is the running incarnation's process id, or 0.
func (c *Child) PID() int { return 0 }

// Submit sends a batch. It is encoded before Submit returns and not kept.
// ieg.ErrEngineLost: b.Epoch is not the incarnation that is up.
// ieg.ErrProtocol: a step is still in flight, or the batch is over a limit.
func (c *Child) Submit(b *ieg.Batch) error { return ieg.ErrEngineLost }

// Halt ends the grant of a step after the running repeat.
func (c *Child) Halt(epoch ieg.Epoch, step ieg.StepID) {}

// Abort ends a step soon; its report is StepAborted, or StepOK if it was
// quicker.
func (c *Child) Abort(epoch ieg.Epoch, step ieg.StepID) {}

// Kill ends an incarnation, also a stopped one, with SIGKILL; it is started
// again. The reason is shown in Down. Another epoch is left alone.
func (c *Child) Kill(epoch ieg.Epoch, reason string) {}

// Close ends the engine for good: the running step finishes, the model is
// freed, the process is reaped. When ctx ends first the process is killed.
// The last note is Down with Final. It returns when everything is gone.
func (c *Child) Close(ctx context.Context) error { return nil }

// Ended is closed after the final Down.
func (c *Child) Ended() <-chan struct{} { return nil }

// Tokenize turns parts of text into one list of tokens, without waiting for a
// step. ieg.ErrEngineLost: no incarnation is up, or it died meanwhile;
// ieg.ErrBusy: too many calls are waiting.
func (c *Child) Tokenize(ctx context.Context, parts []Part) ([]ieg.Token, error) {
	return nil, ieg.ErrEngineLost
}

// Detokenize is the inverse, control tokens shown as text.
func (c *Child) Detokenize(ctx context.Context, tokens []ieg.Token) (string, error) {
	return "", ieg.ErrEngineLost
}

// Release takes back the value of a Done note. The caller must hold nothing
// of it, texts and vectors included.
func (c *Child) Release(d *ieg.StepDone) {}
