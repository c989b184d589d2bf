package openai

import (
	"context"

	"ieg"
)

// Node is what the front door needs of the node runtime.
type Node interface {
	// Models lists the loaded models in the order of loading; the first is
	// the default. A model that is still loading has Ready false.
	Models() []Model

	// Tokenize turns parts of text into the tokens of a model. It never waits
	// for a step.
	Tokenize(ctx context.Context, model string, parts []Part) ([]ieg.Token, error)

	// Detokenize is the inverse.
	Detokenize(ctx context.Context, model string, tokens []ieg.Token) (string, error)

	// Submit hands a request to the kernel; output arrives at sink. It fails
	// at once with ieg.ErrBusy, ErrDraining or ErrNoModel; later failures
	// arrive as Finish. ID is filled by Submit. The sink may be called before
	// Submit returns.
	Submit(req *ieg.Request, sink Sink) (Handle, error)

	// Now is the runtime's clock.
	Now() ieg.Time
}

// Model is one loaded model and the context that its engine gives a request.
type Model struct {
	ieg.ModelInfo
	Context int32 // most tokens of prompt and output together
	Slots   int32
	Ready   bool
	Error   string // why it is not ready, if it failed
	// Loading is the progress, 0 … 1.
	Loading float64
	Created int64 // Unix seconds
}

// Part is a piece of a prompt. Control tokens spelled in it count only if
// Special is set: text from users is never Special.
type Part struct {
	Text    string
	Special bool
}

// Sink takes the output of one request. All methods are called from the
// runtime's loop: they must not block and must not call the Node. Each result
// goes to Parse and then to Emit, before the choice's next result; a result
// that will be computed again goes to neither.
type Sink interface {
	// Parse sees each result before the kernel's next decision. True ends the
	// choice here (for example: a complete tool call when no more may follow).
	Parse(choice int32, r *ieg.SeqResult) (done bool)

	// Emit makes the result visible to the client (r is valid during the call
	// only) and returns the bytes that the client has not taken yet.
	Emit(choice int32, r *ieg.SeqResult) (backlog int)

	// Finish ends a choice, and with ieg.AllChoices the request; no call
	// follows that one.
	Finish(f ieg.Finish)
}

// Handle steers a submitted request. Its methods may be called from any
// goroutine and after the request has ended.
type Handle interface {
	ID() ieg.RequestID
	// Cancel ends the request; reason is StopCancel or StopDeadline.
	Cancel(reason ieg.StopReason, why string)
	// Resume is called when a paused reader has taken its backlog.
	Resume()
	// Delivered reports when the client's last byte was written.
	Delivered(span ieg.Span)
}
