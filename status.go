package ieg

import "time"

// Status is what the loop publishes for people: plain data, made by the
// kernel, read by the admin socket without slowing the loop.
type Status struct {
	Now      Time           `json:"now_ns"`
	Draining bool           `json:"draining"`
	Engines  []EngineStatus `json:"engines"`
	Requests []RequestRow   `json:"requests"` // running and waiting
	Totals   Totals         `json:"totals"`
	KV       KVStatus       `json:"kv"`
}

// KVCounts are what happened below the device since the start.
type KVCounts struct {
	// Hits counts cached prompt tokens by the tier they came from.
	Hits [NumTiers]int64 `json:"hit_tokens"`
	// Diverged counts tokens of blocks that a text shares the beginning of and
	// then leaves: what an edited template or stripped reasoning costs.
	Diverged int64 `json:"diverged_tokens"`
	// Saves copy blocks from a device to the arena, Loads rows back; Stores copy
	// blocks from the arena to the NVMe tier, Fetches back.
	Saves        int64 `json:"saves"`
	SavedBytes   int64 `json:"saved_bytes"`
	Loads        int64 `json:"loads"`
	LoadedBytes  int64 `json:"loaded_bytes"`
	Stores       int64 `json:"stores"`
	StoredBytes  int64 `json:"stored_bytes"`
	Fetches      int64 `json:"fetches"`
	FetchedBytes int64 `json:"fetched_bytes"`
	// What was not done: for lack of room, refused by the tier, since computing
	// is quicker, or since it came too late.
	SavesRefused    int64 `json:"saves_refused"`
	StoresRefused   int64 `json:"stores_refused"`
	FetchesFailed   int64 `json:"fetches_failed"`
	BringsDeclined  int64 `json:"brings_declined"`
	FetchesDeclined int64 `json:"fetches_declined"`
	FetchesLate     int64 `json:"fetches_late"`
	// Corrupt counts blocks whose bytes in the arena were not what their digest
	// says, seen when they were to be read or stored.
	Corrupt int64 `json:"corrupt"`
	// LongestCopy is what the streams of a step waited for at most, for one copy,
	// in the last minute or so.
	LongestCopy time.Duration `json:"longest_copy_ns"`
	// LongestRun is the most processor time that one copy took of the engine's
	// thread in that time: what LongestCopy exceeds it by, the thread was put off
	// by others, or waited.
	LongestRun time.Duration `json:"longest_copy_run_ns"`
}

// KVStatus is the state of the tiers below the device, as the kernel sees it.
type KVStatus struct {
	Pages     int32  `json:"host_pages"`
	FreePages int32  `json:"host_pages_free"`
	PageBytes int64  `json:"host_page_bytes"`
	Blocks    int    `json:"host_blocks"`
	Evicted   int64  `json:"host_evicted"`
	Lost      int64  `json:"host_evicted_without_copy"`
	Leases    [3]int `json:"leases"` // of steps, moves, pins
	NVMe      bool   `json:"nvme"`
	NVMeWhy   string `json:"nvme_why,omitempty"`
	Moves     int    `json:"moves"`
	Queued    int    `json:"moves_queued"`
	// Measured speeds in bytes a second.
	ReadRate  float64  `json:"nvme_read_bytes_per_s"`
	WriteRate float64  `json:"nvme_write_bytes_per_s"`
	Counts    KVCounts `json:"counts"`
}

// Totals are counters since the start.
type Totals struct {
	Requests, Finished, Failed, Cancelled, Rejected int64
	PromptTokens, CachedTokens, GeneratedTokens     int64
	Steps, Preemptions, EngineDeaths                int64
}

// EngineState is the state of an engine as the kernel sees it.
type EngineState string

// The states of an engine.
const (
	EngineLoading EngineState = "loading"
	EngineUp      EngineState = "ready"
	EngineDown    EngineState = "down"
	EngineClosing EngineState = "unloading"
)

// EngineStatus is one engine.
type EngineStatus struct {
	Info      EngineInfo  `json:"info"`
	State     EngineState `json:"state"`
	Reason    string      `json:"reason,omitempty"`
	Running   int         `json:"running"`
	Waiting   int         `json:"waiting"`
	SlotsUsed int         `json:"slots_used"`
	SlotsIdle int         `json:"slots_idle_cached"`
	// CellsUsed counts tokens of KV held by running sequences, CellsIdle by
	// finished ones (kept for their prefixes).
	CellsUsed int64 `json:"cells_used"`
	CellsIdle int64 `json:"cells_idle"`
	Steps     int64 `json:"steps"`
	// PrefillTPS and StepTime are the measured speed: tokens/s of prefill,
	// seconds of a decode step of one sequence, and the added seconds for
	// each further sequence.
	PrefillTPS float64       `json:"prefill_tokens_per_s"`
	StepTime   time.Duration `json:"step_time_ns"`
	LastStep   Time          `json:"last_step_ns"`
	// SaveRate and LoadRate are the measured speeds of copies of KV from and to
	// the device, in bytes a second; 0: its KV can't leave it.
	SaveRate float64 `json:"kv_save_bytes_per_s,omitempty"`
	LoadRate float64 `json:"kv_load_bytes_per_s,omitempty"`
}

// RequestRow is a line of "ieg ps".
type RequestRow struct {
	ID        RequestID     `json:"id"`
	Name      string        `json:"name"`
	Model     string        `json:"model"`
	Class     Class         `json:"class"`
	State     string        `json:"state"` // waiting, running, preempted, finished
	Prompt    int32         `json:"prompt_tokens"`
	Cached    int32         `json:"cached_tokens"`
	Generated int32         `json:"generated_tokens"`
	Age       time.Duration `json:"age_ns"`
}

// CostTerm is one named term of a decision.
type CostTerm struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Note    string  `json:"note,omitempty"`
}

// NodeExplain explains one node of a request's graph.
type NodeExplain struct {
	ID         NodeID        `json:"id"`
	Label      string        `json:"label"`
	Stage      Stage         `json:"stage"`
	State      NodeState     `json:"state"`
	Reason     string        `json:"reason"` // the guard that led to the state
	After      []NodeID      `json:"after,omitempty"`
	Device     string        `json:"device,omitempty"`
	Demand     Demand        `json:"demand"`
	Bottleneck string        `json:"bottleneck,omitempty"` // compute, bandwidth, io
	Terms      []CostTerm    `json:"terms,omitempty"`
	Candidates []string      `json:"candidates,omitempty"` // what else was weighed
	Predicted  time.Duration `json:"predicted_ns"`
	Actual     time.Duration `json:"actual_ns"`
	Start, End Time          `json:"-"`
	Tokens     int32         `json:"tokens,omitempty"`
	Cached     int32         `json:"cached_tokens,omitempty"`
	Attempts   int           `json:"attempts,omitempty"`
}

// Explain is the story of one request.
type Explain struct {
	ID     RequestID     `json:"id"`
	Name   string        `json:"name"`
	Model  string        `json:"model"`
	Class  Class         `json:"class"`
	State  string        `json:"state"`
	Finish string        `json:"finish,omitempty"`
	Error  string        `json:"error,omitempty"`
	Prompt int32         `json:"prompt_tokens"`
	Cached int32         `json:"cached_tokens"`
	Output int32         `json:"generated_tokens"`
	Queue  time.Duration `json:"queue_ns"`
	TTFT   time.Duration `json:"ttft_ns"`
	E2E    time.Duration `json:"e2e_ns"`
	ITLMax time.Duration `json:"itl_max_ns"`
	Nodes  []NodeExplain `json:"nodes"`
	Limits []string      `json:"limits,omitempty"`
	// Tiers are the cached tokens by where they came from; KV says what was
	// brought or not, and why.
	Tiers   [NumTiers]int32 `json:"cached_tokens_by_tier"`
	KV      []string        `json:"kv,omitempty"`
	Journal []string        `json:"journal,omitempty"` // state changes in order
}
