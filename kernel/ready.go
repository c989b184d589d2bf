package kernel

import "ieg"

// Ready is what the machine wants done after the events applied so far. It is
// the machine's only window to the world. The lists are done in the order of
// the fields; each is valid until the next Apply.
type Ready struct {
	// Admits tell which sequence will speak for which choice.
	Admits []Admit
	// Emits make results visible to the client.
	Emits []Emit
	// Finishes end choices and requests.
	Finishes []ieg.Finish
	// Aborts stop a step that is running now, Halts end a grant after it.
	Aborts []StepRef
	Halts  []StepRef
	// Kills end an engine's process: it made no progress.
	Kills []Kill
	// Loads and Unloads start and stop engines; Refusals answer a LoadEngine
	// or an UnloadEngine that can't be.
	Loads    []ieg.EngineID
	Unloads  []ieg.EngineID
	Refusals []Refusal
	// KV tells which blocks tiers got and lost, if the configuration asks for
	// it. It is news, not work.
	KV []ieg.KVEvent
	// Moves copy blocks between the arena and the NVMe tier; each is answered
	// by a MoveDone.
	Moves []ieg.Move
	// Batches are steps to run, one per idle engine at most.
	Batches []*ieg.Batch
}

// Admit binds a sequence to a choice of a request.
type Admit struct {
	Request ieg.RequestID
	Choice  int32
	Seq     ieg.SeqID
}

// Emit shows one result of a choice to the client.
type Emit struct {
	Request ieg.RequestID
	Choice  int32
	Result  *ieg.SeqResult
}

// StepRef names a step in flight.
type StepRef struct {
	Engine ieg.EngineID
	Epoch  ieg.Epoch
	Step   ieg.StepID
}

// Kill ends an incarnation of an engine.
type Kill struct {
	Engine ieg.EngineID
	Epoch  ieg.Epoch
	Reason string
}

// Refusal says why an engine is not loaded or unloaded.
type Refusal struct {
	Engine ieg.EngineID
	Err    error
}

// Empty tells whether there is nothing to do.
func (r *Ready) Empty() bool {
	return len(r.Admits)+len(r.Emits)+len(r.Finishes)+len(r.Aborts)+len(r.Halts)+
		len(r.Kills)+len(r.Loads)+len(r.Unloads)+len(r.Refusals)+len(r.Moves)+len(r.Batches) == 0
}

func (r *Ready) reset() {
	r.Admits, r.Emits, r.Finishes = r.Admits[:0], r.Emits[:0], r.Finishes[:0]
	r.Aborts, r.Halts, r.Kills = r.Aborts[:0], r.Halts[:0], r.Kills[:0]
	r.Loads, r.Unloads, r.Refusals = r.Loads[:0], r.Unloads[:0], r.Refusals[:0]
	r.KV = nil
	r.Moves, r.Batches = r.Moves[:0], r.Batches[:0]
}
