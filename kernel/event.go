package kernel

import "ieg"

// Event is a fact taken in by Machine.Apply. The set is closed.
type Event interface{ event() }

type (
	// Arrived: the door accepted a request.
	Arrived struct{ Request *ieg.Request }

	// Cancel: the client went away, or its deadline or buffer limit passed.
	Cancel struct {
		Request ieg.RequestID
		Reason  ieg.StopReason
		Err     string // what to tell the client, "" for the reason's default
	}

	// Pause: the reader is slow; its sequences are not scheduled until Resume.
	Pause struct{ Request ieg.RequestID }

	// Resume: the reader caught up.
	Resume struct{ Request ieg.RequestID }

	// Delivered: the door handed the last byte to the client; it times the
	// graph's output node.
	Delivered struct {
		Request ieg.RequestID
		Span    ieg.Span
	}

	// DeviceUp: a device exists, with what is free on it.
	DeviceUp struct {
		Spec ieg.ResourceSpec
		Free int64 // bytes
	}

	// LoadEngine: a person or the configuration wants a model on a device.
	LoadEngine struct {
		Engine ieg.EngineID
		Model  string
		Device string
		Need   int64 // estimated bytes: weights, KV, compute
	}

	// UnloadEngine: no new work for the engine; stop it when it is idle, or
	// at once with Force.
	UnloadEngine struct {
		Engine ieg.EngineID
		Force  bool
	}

	// EngineReady: an incarnation of the engine has loaded its model.
	EngineReady struct{ Info ieg.EngineInfo }

	// EngineLost: the incarnation died, was killed, or failed to load.
	EngineLost struct {
		Engine ieg.EngineID
		Epoch  ieg.Epoch
		Reason string
		// Final: the supervisor gave up; no incarnation will follow.
		Final bool
	}

	// EngineStalled: an engine has a step in flight and shows no sign of
	// working on it (it is stopped, or asleep).
	EngineStalled struct {
		Engine ieg.EngineID
		Epoch  ieg.Epoch
		Step   ieg.StepID
		Reason string
	}

	// StepDone: an engine reports a step. The machine reads it during Apply
	// and the Ready that follows refers to it; it is not kept longer.
	StepDone struct{ Done *ieg.StepDone }

	// HostUp: there is an arena of pages for KV below the devices.
	HostUp struct {
		Pages     int32
		PageBytes int64
	}

	// NVMeUp: the NVMe tier can be used; NVMeDown: it can't, for a reason.
	NVMeUp   struct{}
	NVMeDown struct{ Reason string }

	// MoveDone: a move has ended, well or not.
	MoveDone struct{ Done ieg.MoveDone }

	// KVControl: a person drops or pins blocks of the arena.
	KVControl struct {
		Kind KVControlKind
		// Hash is the block whose beginning is pinned, or the root to drop.
		Hash  ieg.BlockHash
		Until ieg.Time // of a pin; ieg.Never
	}

	// Drain: take no new requests; finish what runs.
	Drain struct{}

	// Tick: the machine's own Deadline was reached.
	Tick struct{}
)

func (Arrived) event()       {}
func (Cancel) event()        {}
func (Pause) event()         {}
func (Resume) event()        {}
func (Delivered) event()     {}
func (DeviceUp) event()      {}
func (LoadEngine) event()    {}
func (UnloadEngine) event()  {}
func (EngineReady) event()   {}
func (EngineLost) event()    {}
func (EngineStalled) event() {}
func (StepDone) event()      {}
func (Drain) event()         {}
func (Tick) event()          {}
func (HostUp) event()        {}
func (NVMeUp) event()        {}
func (NVMeDown) event()      {}
func (MoveDone) event()      {}
func (KVControl) event()     {}

// KVControlKind is what a person asks of the arena.
type KVControlKind uint8

// The kinds of a KVControl.
const (
	KVDrop    KVControlKind = iota // all blocks under a root
	KVDropAll                      // all blocks
	KVPin                          // keep a block and those before it
	KVUnpin                        // no longer
	KVStore                        // store what the NVMe tier lacks, refused before or not
)
