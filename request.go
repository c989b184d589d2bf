package ieg

import "time"

// Kind says what a request wants from the model.
type Kind uint8

// The kinds of a request.
const (
	Generate Kind = iota // tokens
	Embed                // one pooled vector
)

// Request is one user call after the door decoded, validated, templated and
// tokenised it. It is immutable once it has been submitted.
type Request struct {
	ID   RequestID
	Name string // id shown to the client, e.g. "chatcmpl-…"
	Kind Kind
	// Model is the name under which a model is loaded (aliases are resolved
	// by the door).
	Model  string
	Class  Class
	Tenant string // salt of the KV it makes; "" is the common tenant

	Prompt []Token
	// N is the number of sequences that continue the prompt (1 for Embed).
	N        int
	Sampling Sampling
	// MaxTokens bounds the generated tokens of each sequence; the door has
	// already cut it to the context.
	MaxTokens int32

	// Tools holds the tool names offered, so that templates of possible
	// tool sub-graphs can be built. Empty for a plain chat.
	Tools []string

	// Stored is what the NVMe tier holds of the prompt: a hint, proven when it
	// is used. NoStore keeps the request's KV on the device.
	Stored  Stored
	NoStore bool

	Received Time // the door read the first byte
	Tokenize Span // the tokenise node, timed by the door
	Deadline Time // Never if none
}

// Span is a timed piece of work.
type Span struct{ Start, End Time }

// Duration is the length of the span.
func (s Span) Duration() time.Duration { return s.End.Sub(s.Start) }

// Sampling says how the next token of a sequence is drawn. The draw is a
// function of (Seed, Choice, position) and the logits, so that a sequence can
// be continued in another process.
type Sampling struct {
	Temperature float32 // 0: arg max
	TopK        int32   // ≤ 0: off
	TopP        float32 // ≥ 1: off
	MinP        float32 // 0: off

	RepetitionPenalty float32 // 1: off; over prompt and output
	PresencePenalty   float32 // 0: off; over output
	FrequencyPenalty  float32 // 0: off; over output
	LogitBias         []TokenBias
	AllowedTokens     []Token // empty: all

	Seed uint64
	// Choice is 0 … N-1; the kernel sets it per sequence.
	Choice int32

	// Logprobs is the number of alternatives reported per token; -1: none.
	Logprobs int32

	// Grammar is GBNF made by our own generator, or "". With a trigger it
	// sleeps until the text matches one of the trigger strings.
	Grammar         string
	GrammarTriggers []string

	StopTokens  []Token
	Stop        []string
	IncludeStop bool // the stop string stays in the text
	IgnoreEOS   bool
	MinTokens   int32
	// KeepSpecial shows control tokens as text.
	KeepSpecial bool
}

// TokenBias is added to a token's logit.
type TokenBias struct {
	Token Token
	Bias  float32
}

// StopReason says why a sequence ended. The text forms are OpenAI's where it
// has one.
type StopReason uint8

// The reasons. Only StopEnd and StopLength are successes.
const (
	NotStopped   StopReason = iota
	StopEnd                 // an end-of-generation or stop token, or a stop string
	StopLength              // max tokens or the context's end
	StopToolCall            // the parser saw complete tool calls (set by the runtime)
	StopCancel              // the client went away
	StopDeadline            // the deadline passed
	StopError               // the engine failed beyond the retry limit
	StopLimit               // a limit of the graph was reached
)

var stopNames = [...]string{"", "stop", "length", "tool_calls", "cancelled", "deadline", "error", "limit"}

// String is the reason as shown in JSON.
func (r StopReason) String() string { return stopNames[r] }

// Success tells whether the text is whole as far as the client asked for it.
func (r StopReason) Success() bool {
	return r == StopEnd || r == StopLength || r == StopToolCall
}

// Usage counts the tokens of a request. Cached prompt tokens were not
// computed for it; Generated counts all sequences.
type Usage struct {
	Prompt    int32 `json:"prompt_tokens"`
	Cached    int32 `json:"cached_tokens"`
	Generated int32 `json:"generated_tokens"`
}

// Finish ends one choice of a request, or the whole request when Choice is
// AllChoices (refused, failed before it ran, or after the last choice).
type Finish struct {
	Request RequestID
	Choice  int32
	Reason  StopReason
	// Err says what went wrong when Reason is no success.
	Err   error
	Usage Usage
	// RetryAfter is set with ErrBusy.
	RetryAfter time.Duration
	Times      RequestTimes
}

// AllChoices in Finish.Choice ends the request.
const AllChoices = int32(-1)

// RequestTimes are the instants of a request's life; zero if not reached.
type RequestTimes struct {
	Received, Arrived, Admitted, FirstToken, Last Time
}
