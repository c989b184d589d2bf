package engine

import (
	"context"

	"ieg"
)

// Runner is a model loaded in this process. The child's step loop calls Step
// from one goroutine; Tokenize, Detokenize and Abort may be called from any
// goroutine while a step runs.
type Runner interface {
	// Info describes the loaded engine; ID and Epoch are filled by the caller.
	Info() ieg.EngineInfo

	// Step runs one batch and fills done.Outcome, Err, Took, Copies and
	// Results, one result per Work in its order. The caller owns done and
	// resets it; the runner may reuse the slices inside it. A batch that breaks
	// the contract (unknown sequence, wrong start) is StepFailed with the
	// numbers in Err; if the fault is in Work, Drop, New and Ops are done all
	// the same. If it is in an op (CheckCopy), that one and those after it are
	// not done and not in Copies. A Load of bytes that are not what their
	// digest says is no such fault: it is in Copies, and the ops after it are
	// done.
	// b is valid during the call only, but what b.New[i] points to may be
	// kept. Grant is the caller's affair.
	Step(b *ieg.Batch, done *ieg.StepDone)

	// Abort makes the step in flight return StepAborted soon, its Work
	// undone (its Drop, New and Ops are done); without one it does nothing. It
	// may be called again and again during one step.
	Abort()

	// Tokenize turns text into tokens. With special, spelled control tokens
	// become them. It adds no begin-of-text token.
	Tokenize(text string, special bool) ([]ieg.Token, error)

	// Detokenize is the inverse, control tokens shown as text.
	Detokenize(tokens []ieg.Token) (string, error)

	// Close frees the model.
	Close()
}

// Loader loads a model. progress gets values from 0 to 1 and may be nil.
type Loader func(ctx context.Context, spec LoadSpec, progress func(float64)) (Runner, error)

// LoadSpec says what to load and how. It travels to the child as JSON.
type LoadSpec struct {
	// Backend names the loader: "llama", "synth".
	Backend string   `json:"backend"`
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
	Path    string   `json:"path,omitempty"`
	// Context is the most tokens of one slot; 0: sized to model and memory.
	Context int32 `json:"context,omitempty"`
	// Slots is the number of rows of KV; 0: the default of limits.go.
	Slots int32 `json:"slots,omitempty"`
	// Threads is the number of cores granted; 0: the cgroup's less one.
	Threads int `json:"threads,omitempty"`
	// KVType is "f16", "q8_0" …; "" is f16.
	KVType string `json:"kv_type,omitempty"`
	// Layout is "auto", "unified" or "streams"; FlashAttn "auto", "on", "off".
	Layout    string `json:"layout,omitempty"`
	FlashAttn string `json:"flash_attention,omitempty"`
	// Device is the ggml device's name; "" is the CPU.
	Device string `json:"device,omitempty"`
	// LibDir holds the libraries of the backend.
	LibDir string `json:"lib_dir,omitempty"`
	// StateDir keeps what was measured at load between runs; "" keeps nothing.
	StateDir string `json:"state_dir,omitempty"`
	// MemoryBytes bounds what the engine may take; 0: what is free.
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	// Embedding asks for pooled vectors even of a generative model.
	Embedding bool `json:"embedding,omitempty"`
	// ArenaBytes and ArenaPageBytes are the sizes of the node's arena and its
	// pages; 0: it shares none. The node fills them in from Config.
	ArenaBytes     int64 `json:"arena_bytes,omitempty"`
	ArenaPageBytes int   `json:"arena_page_bytes,omitempty"`
	// Arena is that arena, mapped by the child before it calls the loader.
	// Without it ArenaNote says why, and the engine's KV can't leave it
	// (EngineInfo.KVToken 0).
	Arena     Arena  `json:"-"`
	ArenaNote string `json:"-"`
	// Synth configures the synthetic engine.
	Synth *SynthSpec `json:"synth,omitempty"`
}

// SynthSpec configures the synthetic engine.
type SynthSpec struct {
	Seed  uint64 `json:"seed"`
	Vocab int32  `json:"vocab"`
	// Times of a step in nanoseconds: fixed, per prefill token, per decoded
	// sequence, per 1,000 cells of KV read.
	StepNS, PrefillNS, DecodeNS, KiloCellNS int64
	// Sleep makes the times real (in a child); in simulations they are only
	// reported in Took.
	Sleep bool `json:"sleep"`
	// StopEvery makes about one token in N an end-of-generation; 0: never.
	StopEvery int32 `json:"stop_every"`
	// Cells is the number of tokens that all slots together hold in the
	// unified layout; 0: each slot can be full.
	Cells int32 `json:"cells,omitempty"`
	// CopyNS is how long a copy to or from the arena takes, a KiB.
	CopyNS int64 `json:"copy_ns_per_kib,omitempty"`
	// LoadNS is how long loading takes, with Sleep.
	LoadNS int64 `json:"load_ns,omitempty"`
}
