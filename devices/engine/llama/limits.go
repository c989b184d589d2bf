package llama

import "time"

// Defaults and limits of sizing. Where a number is per model, it is tokens or
// bytes; MiB is 2^20 bytes.
const (
	// DefaultSlots is the number of rows of KV when none is asked for.
	DefaultSlots = 16
	// maxSlots is llama.cpp's limit of sequences in one context.
	maxSlots = 256
	// DefaultSlotTokens caps the context of one slot when none is asked for:
	// the smallest of it, the trained context, and what memory gives.
	DefaultSlotTokens = 8192
	// DefaultKVBytes caps the KV of all slots together when no context is
	// asked for: the library clears it at the start, about 2 GB a second.
	DefaultKVBytes = 1536 << 20
	// leastSlotTokens is what a slot must hold at least; less is out of
	// memory.
	leastSlotTokens = 256
	// slotStep is the granularity of a slot's size, given by the library.
	slotStep = 256
	// memoryShare is the part of the free memory that one engine takes when
	// it isn't told how much.
	memoryShare = 0.6
	// computeReserve is set aside for compute buffers before they are known.
	computeReserve = 192 << 20

	// stepTokens is the most tokens of a batch, and of one pass inside it.
	stepTokens = 512
	// embedStepTokens is the same for models that compute an input whole.
	embedStepTokens = 2048
	// fillMost is the longest gap between slots that is filled with rows of
	// no use in order to keep a batch in one pass.
	fillMost = 8
)

// Limits of files and of the vocabulary.
const (
	// maxVocab is the largest vocabulary.
	maxVocab = 1 << 20
	// digestSamples pieces of digestPiece bytes each of the tensor data go
	// into a model's digest.
	digestSamples = 64
	digestPiece   = 16 << 10
	// pieceBytes bounds the text of one token.
	pieceBytes = 1024
	// tokenizeBytes bounds one text to be tokenised.
	tokenizeBytes = 8 << 20
	// runBytes is the longest run of one kind of character handed to the
	// library at once: its regular expressions recurse once per character.
	runBytes = 2048
)

// Limits of grammars.
const (
	// grammarsKept is the number of compiled grammars kept for reuse.
	grammarsKept = 64
	// bestTokens is the number of the best candidates tried one by one after
	// the drawn one was refused.
	bestTokens = 256
	// enoughShare is the allowed candidates' weight, in units of what was not
	// looked at, from which the whole vocabulary need not be.
	enoughShare = 20
	// maxTriggers bounds the trigger strings of a lazy grammar.
	maxTriggers = 64
)

// Limits of the layout's measurement at the first load.
const (
	// probeSlots sequences are decoded, each with three quarters of its slot
	// full; a slot is taken at probeTokens at most, and all together at
	// probeBytes of KV.
	probeSlots  = 8
	probeTokens = 2048
	probeBytes  = 1 << 30
	// probePrefill tokens are computed in one go: a tile and a part of one, as
	// most prompts behind a context are.
	probePrefill = 96
	// tiersPay is how much faster the unified layout must be where KV goes
	// below the device: in streams it is copied where it lies, and idle KV costs
	// the others nothing, neither of which is measured.
	tiersPay = 1.1
	// probeFirst tokens are computed first; a device that takes longer than
	// probeSlow for them is measured with no more, and with steps of
	// probeSlowSlots sequences.
	probeFirst     = 8
	probeSlow      = 500 * time.Millisecond
	probeSlowSlots = 2
	// probeBudget is the time after which no further way is tried.
	probeBudget = 4 * time.Second
	// flashTile is the number of a sequence's tokens from which, and in whose
	// multiples, flash attention on the CPU works by tiles: 64 tokens behind
	// 4,000 take 0.67 s, 63 take 1.62 s, 65 take 0.95 s.
	flashTile = 64
	// probeTime is how long each kind of step of one way is measured, after a
	// warm-up; a prompt that takes longer is measured once.
	probeTime = 250 * time.Millisecond
	// probeSteps is the least number of measured steps, probeStepsMax the most.
	probeSteps    = 2
	probeStepsMax = 32
)

// Limits of moving running sequences together.
const (
	// compactAfter is the number of steps in a row with gaps between the
	// working streams after which one of them is moved.
	compactAfter = 4
	// compactPays is the number of further steps in which a move must pay for
	// itself. It also bounds the pause that a move is.
	compactPays = 10
	// passSeconds stands for the fixed time of a pass where it was not
	// measured.
	passSeconds = 0.003
	// keepBlobBytes is the largest export whose memory is kept.
	keepBlobBytes = 32 << 20
)

// Limits of copies between the slots and the arena.
const (
	// joiners is the number of goroutines that join a load's extents when they
	// are more than joinAlone bytes.
	joiners   = 2
	joinAlone = 16 << 20
	// keepStateBytes is the largest state whose memory is kept for the next
	// load: to fill new memory takes five times as long and more.
	keepStateBytes = 96 << 20
	// swapBytes of two streams are exchanged at a time.
	swapBytes = 64 << 10
	// packBytes is what int8 packs at least: 64 elements of two bytes.
	packBytes = 128
	// maxRowBytes bounds the K or V of a token in one layer.
	maxRowBytes = 1 << 24
	// learnTokens tokens are computed at load to find and prove the rows, the
	// first learnFirst of them with the library's operations watched.
	learnTokens = 20
	learnFirst  = 4
)

// copyRate, exportRate and importRate are the speeds, in bytes a second, by
// which the ways of copying KV between streams are compared. They were
// measured on one core; only their ratio matters.
const (
	copyRate   = 8e9
	exportRate = 1.5e9
	importRate = 8e9
)
