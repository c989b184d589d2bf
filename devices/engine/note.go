package engine

import "ieg"

// Note is what a Child tells its owner. The set is closed.
type Note interface{ note() }

type (
	// Loading: the incarnation loads its model. Fraction goes from 0 to 1;
	// the first note of an incarnation has 0.
	Loading struct {
		ID       ieg.EngineID
		Epoch    ieg.Epoch
		PID      int
		Fraction float64
	}

	// Up: the incarnation has loaded its model and takes batches.
	Up struct {
		Info ieg.EngineInfo // with ID and Epoch
		PID  int
	}

	// Down: the incarnation died, was killed, or failed to load.
	Down struct {
		ID    ieg.EngineID
		Epoch ieg.Epoch
		// Reason is one line for people: how it ended and its last words.
		Reason string
		// Err has the identity: ieg.ErrEngineLost, ErrUnsupported,
		// ErrOutOfMemory, ErrProtocol … It is nil after a Close.
		Err error
		// Stderr is the end of what the child printed.
		Stderr string
		// Final: no incarnation will follow.
		Final bool
	}

	// Stalled: the child has a step in flight and shows no sign of working on
	// it. The owner decides; Kill ends it.
	Stalled struct {
		ID     ieg.EngineID
		Epoch  ieg.Epoch
		Step   ieg.StepID
		Reason string
	}

	// Done: a step, or a repeat of a granted step, ended. Step goes back with
	// Child.Release once it has been read.
	Done struct{ Step *ieg.StepDone }
)

func (Loading) note() {}
func (Up) note()      {}
func (Down) note()    {}
func (Stalled) note() {}
func (Done) note()    {}
