package engine

import "time"

// Limits of the wire, both sides alike. A frame over a limit is refused by
// the sender and ends the connection at the receiver.
const (
	// FrameBytes is the most bytes of one frame: type and body.
	FrameBytes = 64 << 20
	// BatchSeqs is the most entries of a batch's New and Work and of a
	// report's Results.
	BatchSeqs = 4096
	// BatchOps is the most entries of a batch's Drop and Ops.
	BatchOps = 65536
	// OpExtents is the most blocks of one Load: a million tokens.
	// ExtentPages is the most pages of one block.
	OpExtents   = 4096
	ExtentPages = 16384
	// TopLogprobs is the most alternatives reported for one token.
	TopLogprobs = 1024
	// TextBytes is the most bytes of text of one Tokenize call, all parts
	// together; TextParts the most parts.
	TextBytes = 8 << 20
	TextParts = 65536
	// DetokenizeTokens is the most tokens of one Detokenize call.
	DetokenizeTokens = 4 << 20
	// SpecBytes and InfoBytes bound the JSON of LoadSpec and EngineInfo.
	SpecBytes = 1 << 20
	InfoBytes = 16 << 20
	// MessageBytes bounds an error's text; longer ones are cut.
	MessageBytes = 16 << 10
)

// Limits of the buffers.
const (
	// readBytes is the read buffer of a plane; frames up to this size are
	// decoded where they were read.
	readBytes = 64 << 10
	// growBytes is how much memory a longer frame gets before its bytes have
	// arrived.
	growBytes = 1 << 20
	// keepBytes is the largest buffer kept after a frame.
	keepBytes = 4 << 20
	// outboxBytes is the most bytes that wait for a child that doesn't read.
	outboxBytes = 2 * FrameBytes
	// pooledReports is the number of released reports a Child keeps.
	pooledReports = 16
	// tailBytes is how much of a child's output is kept; wordBytes bounds the
	// part shown in Down.Reason.
	tailBytes = 8 << 10
	wordBytes = 400
)

// Limits of the control plane.
const (
	// CallsInFlight is the most Tokenize and Detokenize calls of one child at
	// the same time; more wait. CallsWaiting is the most that wait.
	CallsInFlight = 64
	CallsWaiting  = 1024
	// ctlWorkers is the number of calls that a child serves at once.
	ctlWorkers = 2
	// callWait is how long a closing child waits for calls that it serves;
	// after that it leaves without freeing the model.
	callWait = time.Second
)

// Limits of supervision.
const (
	// helloWait is how long a started child may take to say hello.
	helloWait = 10 * time.Second
	// healthyRun is how long an incarnation must have been up to be restarted
	// at once; before that the wait starts at backoffMin and doubles up to
	// backoffMax. The first restart never waits.
	healthyRun = 10 * time.Second
	backoffMin = 100 * time.Millisecond
	backoffMax = 5 * time.Second
	// loadTries is the number of failed loads in a row after which a model
	// that was never up is given up.
	loadTries = 8
	// exitWait is how long a child may live on after its connection ended.
	exitWait = time.Second
	// stderrWait is how long a dead child's output may stay open in a process
	// that it left behind.
	stderrWait = time.Second
	// abortRetry is the interval at which an abort is repeated until its step
	// ends.
	abortRetry = time.Millisecond
	// oomScoreAdj makes Linux prefer a child to the node when memory ends
	// (-1000 … 1000).
	oomScoreAdj = 500

	// warmAhead is the number of pages after those in use that are kept ready,
	// warmStep how many are made so at once.
	warmAhead = 256
	warmStep  = 8
)
