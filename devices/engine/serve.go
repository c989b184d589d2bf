package engine

import (
	"context"
	"net"

	"ieg"
)

// Serve is the child's side: it reads what to load from step, loads it, and
// runs batches until the node closes the engine (nil) or goes away
// (ieg.ErrEngineLost). Tokenising is served on ctl meanwhile. When the node
// goes away Serve returns at once, with a step perhaps still running: the
// caller must end the process.
func Serve(ctx context.Context, step, ctl net.Conn, loaders map[string]Loader) error {
	return ieg.ErrEngineLost
}

// Main runs Serve on the inherited descriptors 3 and 4 and returns the exit
// status of the process.
func Main(loaders map[string]Loader) int { return 1 }
