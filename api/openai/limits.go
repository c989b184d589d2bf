package openai

import (
	"time"

	"ieg/kernel/run"
)

// Limits of requests. What exceeds one is refused with 400 and the name of
// the field, a long body with 413.
const (
	// MaxBodyBytes is the longest request body.
	MaxBodyBytes = 16 << 20
	// MaxBodyDepth is the deepest nesting of a body's JSON.
	MaxBodyDepth = 64
	// MaxPromptBytes is the longest prompt text, all messages together.
	MaxPromptBytes = 8 << 20
	// MaxMessages is the most messages of a chat.
	MaxMessages = 4096
	// MaxChoices is the most choices of one response: n times prompts.
	MaxChoices = 128
	// MaxInputs is the most inputs of one embedding request, EmbedWindow the
	// most of them that are in the kernel at once.
	MaxInputs   = 2048
	EmbedWindow = 32
	// MaxStops is the most stop strings, MaxStopBytes the longest of them.
	MaxStops     = 16
	MaxStopBytes = 256
	// MaxStopTokens is the most stop_token_ids.
	MaxStopTokens = 64
	// MaxTools is the most tools of a request.
	MaxTools = 128
	// MaxToolBytes is the longest definition of one tool.
	MaxToolBytes = 128 << 10
	// MaxCallsHistory is the most tool calls of one message.
	MaxCallsHistory = 64
	// MaxBias is the most entries of logit_bias.
	MaxBias = 1024
	// MaxAllowed is the most allowed_token_ids.
	MaxAllowed = 1 << 16
	// MaxLogprobs is the most alternatives reported per token.
	MaxLogprobs = 20
	// MaxIDBytes is the longest id, name, salt or user of a client.
	MaxIDBytes = 256
	// MaxNamesShown is the most model names in an error message.
	MaxNamesShown = 32
	// MaxVars is the most entries of chat_template_kwargs.
	MaxVars = 64
)

// Limits of the server.
const (
	// MaxHeaderBytes is the longest request header.
	MaxHeaderBytes = 64 << 10
	// PauseBacklogBytes is the untaken output past which the runtime pauses a
	// request; below half of it the door resumes it.
	PauseBacklogBytes = run.BacklogPauseBytes
	// MaxBacklogBytes is the untaken output at which a stream is given up:
	// a pause that does not help.
	MaxBacklogBytes = 16 << 20
	// MaxTemplates is the number of compiled chat templates kept.
	MaxTemplates = 32
	// MaxKeys is the most API keys.
	MaxKeys = 10_000

	headerTimeout = 10 * time.Second
	bodyTimeout   = 60 * time.Second
	idleTimeout   = 2 * time.Minute
	// chunkBytes is what a chunk of a stream weighs beside its text.
	chunkBytes = 200
)
