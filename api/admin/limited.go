package admin

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// limited bounds the connections that are open at once. Who comes last is let
// in for the one that has been silent for longest, so that connections that
// ask nothing keep nobody out; where all of them ask something it waits. (It
// keeps the connection's own type reachable, which the check of credentials
// needs.)
type limited struct {
	net.Listener
	most    int
	changed chan struct{} // a connection closed or fell silent; capacity 1

	mu     sync.Mutex
	open   int
	silent []*counted // without a request under way, the longest first
}

func newLimited(l net.Listener, most int) *limited {
	return &limited{Listener: l, most: most, changed: make(chan struct{}, 1)}
}

func (l *limited) Accept() (net.Conn, error) {
	l.makeRoom()
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("admin: %s is no Unix socket", l.Addr())
	}
	n := &counted{UnixConn: u, l: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.listen(n)
	return n, nil
}

// makeRoom returns when one more connection may be open.
func (l *limited) makeRoom() {
	for {
		wait, ok := l.room()
		if ok {
			return
		}
		select {
		case <-l.changed:
		case <-time.After(wait):
		}
	}
}

// room tells whether one more connection may be open, and else when to look
// again. It closes a silent one for that.
func (l *limited) room() (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.open >= l.most && len(l.silent) > 0 {
		c := l.silent[0]
		if wait = SilenceMin - time.Since(c.since); wait > 0 {
			return wait, false // it may be about to ask
		}
		if c.asks() {
			l.speak(c)
			continue
		}
		l.forget(c)
		_ = c.UnixConn.Close() // the server's goroutine closes it again
	}
	return HeaderTimeout, l.open < l.most
}

// forget takes a connection out of the count, once; the lock is held.
func (l *limited) forget(c *counted) {
	if c.gone {
		return
	}
	c.gone = true
	l.open--
	l.speak(c)
	l.signal()
}

// speak takes a connection off the silent ones; the lock is held.
func (l *limited) speak(c *counted) {
	if i := slices.Index(l.silent, c); i >= 0 {
		l.silent = slices.Delete(l.silent, i, i+1)
	}
}

// listen puts a connection among the silent ones; the lock is held.
func (l *limited) listen(c *counted) {
	l.speak(c)
	c.since = time.Now()
	l.silent = append(l.silent, c)
	l.signal()
}

func (l *limited) signal() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// counted is a connection of a limited listener.
type counted struct {
	*net.UnixConn
	l     *limited
	since time.Time // when it fell silent; guarded by l.mu
	gone  bool      // guarded by l.mu
}

// asks tells whether bytes have come that the server has not read yet.
func (c *counted) asks() bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _, _ = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}

// Read ends the silence with the first byte of a request: the HTTP server
// tells of it only after the whole header.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.UnixConn.Read(b)
	if n > 0 {
		c.l.mu.Lock()
		c.l.speak(c)
		c.l.mu.Unlock()
	}
	return n, err
}

func (c *counted) Close() error {
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
	return c.UnixConn.Close()
}

// followState learns from the HTTP server when a request has been answered,
// and when the next one had been read before that.
func followState(conn net.Conn, state http.ConnState) {
	c, ok := conn.(*counted)
	if !ok {
		return
	}
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	switch {
	case state == http.StateActive:
		c.l.speak(c)
	case state == http.StateIdle && !c.gone:
		c.l.listen(c)
	}
}
