package engine

import (
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"ieg"
)

// outbox sends bytes to a child without ever blocking its caller. While the
// child reads, send writes to the socket itself; what the socket doesn't take
// is left to a goroutine.
type outbox struct {
	conn *net.UnixConn
	raw  syscall.RawConn

	mu      sync.Mutex
	pending []byte
	behind  bool // the goroutine owns the socket and takes pending
	closed  bool
	wake    chan struct{}

	// try is what direct writes; it is a field so that the write needs no
	// closure.
	try     []byte
	written int
	direct  func(fd uintptr) bool
}

func newOutbox(conn *net.UnixConn) (*outbox, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &outbox{conn: conn, raw: raw, wake: make(chan struct{}, 1)}
	o.direct = func(fd uintptr) bool {
		o.written, _ = unix.Write(int(fd), o.try)
		return true
	}
	return o, nil
}

// send writes p or keeps a copy of what is left of it. ieg.ErrEngineLost: the
// box is closed; ieg.ErrBusy: too much waits already.
func (o *outbox) send(p []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ieg.ErrEngineLost
	}
	if len(o.pending)+len(p) > outboxBytes {
		return fmt.Errorf("%w: %d bytes wait for the engine", ieg.ErrBusy, len(o.pending))
	}
	if !o.behind {
		o.try, o.written = p, 0
		if err := o.raw.Write(o.direct); err != nil {
			return fmt.Errorf("%w: %v", ieg.ErrEngineLost, err)
		}
		o.try = nil
		// A fault of the socket shows again in the goroutine and ends it;
		// the incarnation's end is told by its reader.
		if p = p[max(o.written, 0):]; len(p) == 0 {
			return nil
		}
		o.behind = true
		o.wake <- struct{}{}
	}
	o.pending = append(o.pending, p...)
	return nil
}

// run is the goroutine; it ends after close.
func (o *outbox) run() {
	var p []byte
	for range o.wake {
		for {
			o.mu.Lock()
			p, o.pending = o.pending, p[:0]
			if len(p) == 0 {
				o.behind = false
				o.mu.Unlock()
				break
			}
			o.mu.Unlock()
			if _, err := o.conn.Write(p); err != nil {
				o.close()
				break
			}
			if cap(p) > keepBytes {
				p = nil
			}
		}
	}
}

// close makes later sends fail and ends the goroutine, once the connection is
// closed too.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.wake)
	}
}
