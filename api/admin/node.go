package admin

import (
	"context"
	"io"

	"ieg"
)

// Observer tells what the node does. Its methods return what was last
// published and never wait for the loop. The caller owns what they return.
type Observer interface {
	Status() ieg.Status
	// Explain finds a request by its number ("r12" or "12") or by the id that
	// its client was given; ErrNotFound if it is not kept.
	Explain(id string) (ieg.Explain, error)
	// Deaths lists the last ends of engines, newest first.
	Deaths() []Death
}

// Host tells what the node runs on and by which settings.
type Host interface {
	Devices() []Device
	Config() Config
	Version() Version
}

// Models loads and unloads models.
type Models interface {
	Models() []Model
	// LoadModel starts loading and returns once the kernel admitted it, or
	// with the reason why not; progress shows in Models.
	LoadModel(ctx context.Context, m LoadModel) (Model, error)
	// UnloadModel returns once the engine is gone, or with the reason why not.
	UnloadModel(ctx context.Context, u UnloadModel) error
}

// Recorder hands out segments of the flight recorder.
type Recorder interface {
	Segments() ([]Segment, error)
	// OpenSegment reads a segment, without token ids and bytes when redact is
	// set; the caller closes it.
	OpenSegment(name string, redact bool) (io.ReadCloser, error)
}

// Drainer ends the node.
type Drainer interface {
	// Drain starts the end of the node and returns at once.
	Drain(d Drain) error
}
