package openai

import (
	"sync"

	"ieg"
)

// recKind is what a record says.
type recKind uint8

const (
	recContent   recKind = iota // text for the reader
	recReasoning                // text of thoughts
	recToolStart                // a call begins; the text is its name
	recToolArgs                 // more arguments
	recToolEnd                  // a call is complete
	recTokens                   // tokens without text (yet); has an extra
	recVector                   // an embedding
	recFinish                   // a choice ended
	recEnd                      // a request ended
)

// record is one piece of output, in the order it happened.
type record struct {
	kind      recKind
	choice    int32 // of the response
	call      int32 // of a tool record
	from, to  int32 // the text in batch.text
	generated int32 // tokens of the response so far
	extra     *extra
	end       *ending
	vector    []float32
}

// extra holds what only some clients ask for.
type extra struct {
	tokens   []ieg.Token
	logprobs []logprob
}

type logprob struct {
	chosen tokenText
	top    []tokenText
}

type tokenText struct {
	token ieg.Token
	value float32
	bytes []byte
}

// ending is the end of a choice or a request.
type ending struct {
	finish    ieg.Finish
	request   int // index of the request in the response
	stopText  string
	stopToken ieg.Token // when it was one of the client's, else -1
	calls     int       // complete tool calls
	reasoning int32     // tokens of thoughts
	// partial: a limit of the graph cut the output, which stands as it is.
	partial bool
}

// batch is a queue of records with their text.
type batch struct {
	recs []record
	text []byte
}

func (b *batch) textOf(r *record) []byte { return b.text[r.from:r.to] }

func (b *batch) reset() {
	clear(b.recs)
	b.recs, b.text = b.recs[:0], b.text[:0]
}

// box is the buffer between the runtime's loop and one HTTP response. The
// loop appends and never waits; the response's goroutine takes all there is.
type box struct {
	wake chan struct{} // capacity 1

	mu       sync.Mutex
	queue    batch
	spare    batch
	queued   int // bytes of the queue as they weigh on the wire
	inFlight int // bytes taken and not yet written
	peak     int // largest backlog reported since the last resume
	sent     int32
	closed   bool // the response has ended: everything is dropped
	overflow bool
	// collects: the response is whole, not a stream; there is no backlog.
	collects bool
}

func newBox(collects bool) *box {
	return &box{wake: make(chan struct{}, 1), collects: collects}
}

// put appends a record; the lock is held.
func put[T string | []byte](b *box, r record, text T) {
	if b.closed || b.overflow {
		return
	}
	b.queued += len(text) + chunkBytes
	if !b.collects && b.queued+b.inFlight > MaxBacklogBytes {
		b.overflow = true
		return
	}
	r.from = int32(len(b.queue.text))
	b.queue.text = append(b.queue.text, text...)
	r.to = int32(len(b.queue.text))
	b.queue.recs = append(b.queue.recs, r)
}

// ring wakes the response's goroutine; the lock is held or not.
func (b *box) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// backlog is what the client has not taken; the lock is held.
func (b *box) backlog() int {
	if b.collects || b.closed {
		return 0
	}
	n := b.queued + b.inFlight
	b.peak = max(b.peak, n)
	return n
}

// take returns all that waits; it is valid until the next take. What was
// taken before counts as written. resume tells that a paused reader has
// caught up.
func (b *box) take() (out *batch, resume, overflow bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare.reset()
	b.queue, b.spare = b.spare, b.queue
	b.inFlight, b.queued = b.queued, 0
	if b.peak > PauseBacklogBytes && b.inFlight <= PauseBacklogBytes/2 {
		b.peak, resume = 0, true
	}
	return &b.spare, resume, b.overflow
}

// wrote tells that all that was taken has been written.
func (b *box) wrote() (resume bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.inFlight = 0
	if b.peak > PauseBacklogBytes && b.queued <= PauseBacklogBytes/2 {
		b.peak, resume = 0, true
	}
	return resume
}

// close drops what is left and all that will come.
func (b *box) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.queue, b.spare = batch{}, batch{}
}
