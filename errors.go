package ieg

import "errors"

// Errors with identity. Packages wrap them with what the reader can do.
var (
	// ErrBusy: a bounded queue is full; try again later (429 or 503).
	ErrBusy = errors.New("busy")
	// ErrDraining: the node is shutting down and takes no new work.
	ErrDraining = errors.New("draining")
	// ErrNoModel: no such model is loaded.
	ErrNoModel = errors.New("no such model")
	// ErrContextLength: prompt and output can't fit the model's context.
	ErrContextLength = errors.New("context length exceeded")
	// ErrEngineLost: the engine's process died or was killed.
	ErrEngineLost = errors.New("engine lost")
	// ErrOutOfMemory: the device has no room for what was asked.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrCancelled: the client went away or asked to stop.
	ErrCancelled = errors.New("cancelled")
	// ErrDeadline: the request's deadline passed.
	ErrDeadline = errors.New("deadline exceeded")
	// ErrUnsupported: the model, file or feature is not supported here.
	ErrUnsupported = errors.New("unsupported")
	// ErrProtocol: bytes from the other side don't follow the format.
	ErrProtocol = errors.New("protocol error")
)
