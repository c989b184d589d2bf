package bench

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ieg"
	"ieg/memory/codec"
)

// A plain copy of a piece of KV with its digest, made controlEach by a thread of
// the engine's priority: what it is put off for is what this host does to any
// copy. The pieces lie far apart, as those of rows and blocks do.
const (
	controlPiece  = ieg.PieceTokens * kvTokenBytes
	controlPieces = 64
	controlEach   = 20 * time.Millisecond
	controlNice   = -5 // of the thread that runs an engine's steps
)

// control is what plain copies took.
type control struct {
	from, to     []byte
	n            int
	longest, ran time.Duration // by the clock, and of processor time
	sum          uint64
}

func newControl() *control {
	c := &control{from: make([]byte, controlPieces*controlPiece), to: make([]byte, controlPieces*controlPiece)}
	randomHalves(c.from, 7)
	copy(c.to, c.from) // no page of it is missing
	return c
}

// run copies until ctx ends; the returned channel is closed then.
func (c *control) run(ctx context.Context) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it ends with this goroutine
		_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), controlNice)
		for pause(ctx, controlEach) == nil {
			at := c.n % controlPieces * controlPiece
			began, ran := time.Now(), threadTime()
			copy(c.to[at:at+controlPiece], c.from[at:at+controlPiece])
			c.sum = codec.Digest(c.sum, c.to[at:at+controlPiece])
			c.ran = max(c.ran, threadTime()-ran)
			c.longest = max(c.longest, time.Since(began))
			c.n++
		}
	}()
	return done
}
