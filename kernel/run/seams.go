package run

import (
	"ieg"
	"ieg/kernel"
)

// Engine is a running engine as the loop sees it. No method blocks.
type Engine interface {
	// Submit sends a batch; it does not keep it.
	Submit(b *ieg.Batch) error
	Halt(epoch ieg.Epoch, step ieg.StepID)
	Abort(epoch ieg.Epoch, step ieg.StepID)
	Kill(epoch ieg.Epoch, reason string)
	// Release takes back a report that has been applied.
	Release(d *ieg.StepDone)
}

// Starter starts and stops engines when the kernel says so. Its methods are
// called from the loop and must not block.
type Starter interface {
	// Start begins the engine; its life arrives as events. The engine is
	// attached to the loop before it returns.
	Start(id ieg.EngineID) (Engine, error)
	// Stop ends it for good; EngineLost with Final follows.
	Stop(id ieg.EngineID)
	// Refused tells that the kernel did not load or unload the engine.
	Refused(id ieg.EngineID, err error)
}

// Mover copies blocks between the arena and the NVMe tier. Move does not block;
// each move is answered by one kernel.MoveDone.
type Mover interface {
	Move(m ieg.Move)
}

// Sink takes the output of one request (see api/openai.Sink).
type Sink interface {
	Parse(choice int32, r *ieg.SeqResult) (done bool)
	Emit(choice int32, r *ieg.SeqResult) (backlog int)
	Finish(f ieg.Finish)
}

// Observer folds over what happened, after it was carried out. It is called
// from the loop's goroutine; the values are valid during the call only.
type Observer interface {
	Observe(now ieg.Time, ev kernel.Event, r *kernel.Ready)
}
