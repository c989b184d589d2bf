package engine

import (
	"errors"
	"fmt"
	"os/exec"
	"time"

	"ieg"
)

// ending says how an incarnation ended.
type ending struct {
	err    error         // what it or its connection reported; nil: it only died
	up     bool          // it had loaded its model
	ran    time.Duration // how long it was up
	exit   string        // how its process ended: "status 1", "killed by signal 9 …"
	kill   string        // the reason given to Kill
	closed bool          // by Close
	word   string        // its last line of output
	stderr string        // the end of its output
}

// reason is one line for people.
func (e *ending) reason() string {
	s := "died: " + e.exit
	switch {
	case e.closed:
		return "closed"
	case e.kill != "":
		s = "killed: " + e.kill
	case e.err != nil && !errors.Is(e.err, ieg.ErrEngineLost):
		s = e.err.Error()
		if !e.up {
			s = "not loaded: " + s
		}
	case !e.up:
		s = "died while loading: " + e.exit
	}
	if e.word != "" && !(e.err != nil && e.word == e.err.Error()) {
		s += "; its last words: " + e.word
	}
	return cut(s, MessageBytes)
}

// identity is the error of the Down note.
func (e *ending) identity() error {
	switch {
	case e.closed:
		return nil
	case e.err != nil && !errors.Is(e.err, ieg.ErrEngineLost):
		return e.err
	}
	return fmt.Errorf("%w: %s", ieg.ErrEngineLost, e.reason())
}

// history decides about restarts. It is plain arithmetic on what happened.
type history struct {
	everUp bool
	short  int // deaths in a row without a healthy run between them
	failed int // loads in a row that failed
}

// next tells whether to give up and otherwise how long to wait.
func (h *history) next(e *ending) (wait time.Duration, final bool) {
	if e.closed {
		return 0, true
	}
	if e.up {
		h.everUp, h.failed = true, 0
	} else {
		h.failed++
	}
	if e.up && e.ran >= healthyRun {
		h.short = 0
	}
	wait = backoff(h.short)
	h.short++
	if !e.up && e.err != nil && (isPermanent(e.err) || errors.Is(e.err, ieg.ErrProtocol) || errors.Is(e.err, exec.ErrNotFound)) {
		return 0, true
	}
	return wait, !h.everUp && h.failed >= loadTries
}

// backoff is the wait before restart n, counted from 0.
func backoff(n int) time.Duration {
	if n == 0 {
		return 0
	}
	return min(backoffMin<<min(n-1, 16), backoffMax)
}
