package synth

// Defaults and bounds of the synthetic model, in tokens unless said otherwise.
const (
	// DefaultVocab is the size of the vocabulary; MinVocab leaves room for
	// control tokens, all bytes and some words.
	DefaultVocab = 1024
	MinVocab     = 320
	// DefaultContext is what a slot holds, DefaultSlots the number of slots,
	// MaxSlots their bound (llama.cpp's).
	DefaultContext = 4096
	DefaultSlots   = 16
	MaxSlots       = 256
	// StepTokens is the most tokens of a step, UBatch of a pass inside it.
	StepTokens = 2048
	UBatch     = 512
	// VectorSize is the length of an embedding, in numbers.
	VectorSize = 64
	// KVToken is what a token's KV takes in blocks, in bytes.
	KVToken = 128
	// redraws bounds the search for a token that is not banned.
	redraws = 64
)
