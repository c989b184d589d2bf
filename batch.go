package ieg

import "time"

// Batch is one step for one engine: everything the engine must do before the
// next message. It is a diff: a sequence is described once, in New; later
// batches name it only.
//
// Order inside a step: Drop, then New, then Ops (in order), then Work as one
// forward pass.
type Batch struct {
	Engine EngineID
	Epoch  Epoch
	Step   StepID
	// Drop lists sequences that the engine forgets (sampler, text state); an
	// unknown one is no error. The KV in their slots stays until an Op trims
	// or overwrites it.
	Drop []SeqID
	// New describes sequences; a known one is replaced.
	New  []SeqStart
	Ops  []KVOp
	Work []Work
	// Grant lets the engine repeat the step up to Grant more times without
	// asking: each repeat computes the token that each sequence of Work drew
	// (Start = the previous end, N = 1) and draws the next. It needs Sample on
	// every Work. It ends early, with Last, after the repeat in which any
	// sequence stopped, or which a Halt met, or which did not end in StepOK.
	Grant int32
}

// SeqStart describes a sequence to the engine.
type SeqStart struct {
	Seq  SeqID
	Slot Slot
	// Tokens are all known tokens: the prompt, then what was generated so far
	// (after an engine's death or a preemption).
	Tokens []Token
	// Prompt is the number of leading tokens that are the prompt. The rest is
	// replayed into the sampler history, grammar, detokeniser and stop
	// matcher without being sent again.
	Prompt    int32
	MaxTokens int32
	Sampling  Sampling
	Embed     bool
}

// KVOp changes KV in an engine's slots, or copies it to and from the arena,
// without computing.
type KVOp struct {
	Kind KVOpKind
	From Slot  // Copy, Save
	To   Slot  // Trim, Copy, Load: the slot that changes
	N    int32 // tokens kept (Trim), copied from the start (Copy), saved, loaded
	// Start is the first token of a Save or Load: a multiple of PieceTokens.
	Start int32
	// Sum is the digest of the first extent's pieces before Start, 0 if there
	// are none.
	Sum uint64
	// Next tells that a copy goes on where the op before it in the batch ended, a
	// copy of its kind that left the block unfinished; its digest counts as Sum.
	Next bool
	// Open tells that a Load leaves pieces of its last extent to a later op,
	// which goes on at this one's end and proves it.
	Open bool
	// Extents are the block that a Save writes a part of, or the blocks that a
	// Load reads, in order and without gaps.
	Extents []Extent
}

// KVOpKind is the kind of a KVOp.
type KVOpKind uint8

// The operations on slots.
const (
	// KVTrim keeps the first N tokens of To.
	KVTrim KVOpKind = iota
	// KVCopy makes the first N tokens of From also the content of To,
	// whatever To held before.
	KVCopy
	// KVSave copies tokens [Start, Start+N) of From into the one extent. They
	// are whole pieces of it, the last one of a shorter block aside, and all
	// before them was saved by earlier ops, the last of which told Sum.
	KVSave
	// KVLoad makes To hold tokens [0, Start+N): it keeps its first Start
	// tokens and takes the N that follow from the extents, of which the first
	// holds token Start and the last may hold more. Where the first begins
	// before Start, an Open op loaded what it has there, and told Sum. An extent
	// that is not what its digest says leaves the slot empty, and no Work of the
	// batch is done (StepFailed, CopyDone.Bad), nor a later Load of it that goes
	// on in that slot. What is open need not be proven.
	KVLoad
)

// Work computes known tokens [Start, Start+N) of a sequence, and with Sample
// draws the token that follows them. Its slot must hold exactly the tokens
// [0, Start) of the sequence: what a slot holds beyond is trimmed first. A
// sequence appears once in a batch. Sample goes with the last known token
// only. An Embed sequence is computed whole by one Work (Start 0, without
// Sample).
type Work struct {
	Seq    SeqID
	Slot   Slot
	Start  int32
	N      int32
	Sample bool
}

// Outcome says how a step ended.
type Outcome uint8

// The outcomes of a step.
const (
	StepOK      Outcome = iota
	StepAborted         // on request: Drop, New and Ops were done, Work was not
	StepFailed          // Err says why: Drop, New and Ops were done, Work was not
)

// StepDone is an engine's report of one step, or of one repeat of a granted
// step. The receiver owns it.
type StepDone struct {
	Engine EngineID
	Epoch  Epoch
	Step   StepID
	// Repeat is 0 for the step as sent, then 1, 2 … for granted repeats.
	Repeat int32
	// Last tells that the engine waits for the next Batch.
	Last    bool
	Outcome Outcome
	Err     string
	// Took is the time of the forward pass and the sampling; what copies took
	// is told by Copies.
	Took    time.Duration
	Results []SeqResult
	// Copies report the Save and Load ops in their order; those that were not
	// reached are missing.
	Copies []CopyDone
}

// SeqResult is what a step did for one sequence.
type SeqResult struct {
	Seq SeqID
	// Computed is the number of tokens that this step added to the sequence's
	// KV: N of its Work.
	Computed int32
	// Sampled tells that Token was drawn (it is known, not yet computed).
	Sampled bool
	Token   Token
	// Text is the new text that is safe to show: never half a character,
	// never what may still turn out to be a stop string. Bytes may lag behind
	// tokens and are complete once Stop is set.
	Text []byte
	Stop StopReason
	// StopText is the stop string or "" (a stop token is told by Token).
	StopText string
	// Logprob is set when the sequence asked for it.
	Logprob *Logprob
	// Vector is the pooled embedding of an Embed sequence, which then has
	// Stop set to StopEnd.
	Vector []float32
}

// Logprob reports the drawn token and the best alternatives, from the
// distribution before temperature and filters (as OpenAI and vLLM do).
type Logprob struct {
	Chosen TokenLogprob
	Top    []TokenLogprob
}

// TokenLogprob is one token with its natural-log probability and its bytes.
type TokenLogprob struct {
	Token   Token
	Logprob float32
	Bytes   []byte
}
