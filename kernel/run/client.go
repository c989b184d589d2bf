package run

import (
	"context"
	"fmt"
	"strings"

	"ieg"
	"ieg/kernel"
)

// Post adds a fact. It blocks while the inbox is full and does nothing once
// the loop has stopped. Sinks and Starters must not call it from the loop's
// goroutine.
func (l *Loop) Post(ev kernel.Event) {
	select {
	case l.inbox <- item{ev: ev}:
	case <-l.done:
	}
}

// Handle steers a submitted request.
type Handle struct {
	loop *Loop
	id   ieg.RequestID
}

// Submit hands in a request and fills its ID. ErrBusy: the inbox is full;
// ErrStopped: the loop has ended. Other refusals arrive as Finish.
func (l *Loop) Submit(r *ieg.Request, sink Sink) (*Handle, error) {
	if l.closed.Load() {
		return nil, ErrStopped
	}
	r.ID = ieg.RequestID(l.nextID.Add(1))
	select {
	case l.inbox <- item{ev: kernel.Arrived{Request: r}, sink: sink}:
		if l.closed.Load() {
			l.refuse() // the loop may have ended before it saw the request
		}
		return &Handle{l, r.ID}, nil
	default:
		return nil, fmt.Errorf("%w: the node's inbox is full", ieg.ErrBusy)
	}
}

// ID is the request's number.
func (h *Handle) ID() ieg.RequestID { return h.id }

// Cancel ends the request.
func (h *Handle) Cancel(reason ieg.StopReason, why string) {
	h.loop.Post(kernel.Cancel{Request: h.id, Reason: reason, Err: why})
}

// Resume tells that a slow reader caught up.
func (h *Handle) Resume() { h.loop.Post(kernel.Resume{Request: h.id}) }

// Delivered reports the output node's span.
func (h *Handle) Delivered(span ieg.Span) {
	h.loop.Post(kernel.Delivered{Request: h.id, Span: span})
}

// Inspect runs f in the loop's goroutine between two events. f must be quick,
// must not change the machine, and must not keep it.
func (l *Loop) Inspect(ctx context.Context, f func(*kernel.Machine)) error {
	ran := make(chan struct{})
	select {
	case l.inbox <- item{call: func(m *kernel.Machine) { f(m); close(ran) }}:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return ErrStopped
	}
	select {
	case <-ran:
		return nil
	case <-l.done:
		return ErrStopped
	}
}

// Explain tells the story of a request, live or one of the last finished, by
// its number ("r12" or "12") or the name the client got.
func (l *Loop) Explain(ctx context.Context, what string) (ieg.Explain, error) {
	var id ieg.RequestID
	if _, err := fmt.Sscanf(strings.TrimPrefix(what, "r"), "%d", &id); err != nil {
		id = 0
	}
	var ex ieg.Explain
	var found bool
	err := l.Inspect(ctx, func(m *kernel.Machine) { ex, found = m.Explain(id, what) })
	if err == nil && !found {
		err = fmt.Errorf("no request %q among the live ones and the last %d; see ieg ps", what, kernel.HistoryRequests)
	}
	return ex, err
}

// Drain refuses new requests and returns when the live ones have ended, or
// with ctx's error.
func (l *Loop) Drain(ctx context.Context) error {
	l.Post(kernel.Drain{})
	select {
	case <-l.idle:
		return nil
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
