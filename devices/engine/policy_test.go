package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"ieg"
)

func TestBackoff(t *testing.T) {
	want := []time.Duration{0, 100e6, 200e6, 400e6, 800e6, 1600e6, 3200e6, 5e9, 5e9}
	for n, w := range want {
		if got := backoff(n); got != w {
			t.Errorf("restart %d waits %v, want %v", n, got, w)
		}
	}
	if got := backoff(1 << 30); got != backoffMax {
		t.Errorf("restart 2^30 waits %v", got)
	}
}

func TestHistory(t *testing.T) {
	quick := &ending{up: true, ran: time.Second}
	healthy := &ending{up: true, ran: healthyRun}
	crash := &ending{err: ieg.ErrEngineLost}
	missing := &ending{err: fmt.Errorf("model: %w", fs.ErrNotExist)}
	memory := &ending{err: ieg.ErrOutOfMemory}
	type step struct {
		e     *ending
		wait  time.Duration
		final bool
	}
	for name, steps := range map[string][]step{
		"deaths soon after each other wait longer": {{quick, 0, false}, {quick, 100e6, false}, {quick, 200e6, false}},
		"a healthy run restarts at once again":     {{quick, 0, false}, {quick, 100e6, false}, {healthy, 0, false}, {quick, 100e6, false}},
		"a missing file is final":                  {{missing, 0, true}},
		"another build is final":                   {{&ending{err: ieg.ErrProtocol}, 0, true}},
		"a marked error is final":                  {{&ending{err: Permanent(errors.New("x"))}, 0, true}},
		"a broken protocol after loading is not":   {{&ending{err: ieg.ErrProtocol, up: true}, 0, false}},
		"want of memory is tried again":            {{memory, 0, false}, {memory, 100e6, false}},
		"a close is final":                         {{&ending{closed: true}, 0, true}},
		"a model that never loads is given up":     {{crash, 0, false}, {crash, 100e6, false}, {crash, 200e6, false}, {crash, 400e6, false}, {crash, 800e6, false}, {crash, 1600e6, false}, {crash, 3200e6, false}, {crash, 5e9, true}},
		"one that did is not":                      {{quick, 0, false}, {crash, 100e6, false}, {crash, 200e6, false}, {crash, 400e6, false}, {crash, 800e6, false}, {crash, 1600e6, false}, {crash, 3200e6, false}, {crash, 5e9, false}, {crash, 5e9, false}},
	} {
		var h history
		for i, s := range steps {
			wait, final := h.next(s.e)
			if final != s.final || !final && wait != s.wait {
				t.Errorf("%s: death %d waits %v, final %t; want %v, %t", name, i, wait, final, s.wait, s.final)
			}
		}
	}
}

func TestReason(t *testing.T) {
	for _, c := range []struct {
		e    ending
		want string
	}{
		{ending{up: true, exit: "signal 11 (segmentation fault)", err: ieg.ErrEngineLost, word: "last"}, "died: signal 11 (segmentation fault); its last words: last"},
		{ending{exit: "exit status 3", err: ieg.ErrEngineLost}, "died while loading: exit status 3"},
		{ending{err: errors.New("no such file")}, "not loaded: no such file"},
		{ending{err: errors.New("no such file"), word: "no such file"}, "not loaded: no such file"},
		{ending{up: true, kill: "no step for 10 s", exit: "signal 9"}, "killed: no step for 10 s"},
		{ending{up: true, err: ieg.ErrProtocol}, "protocol error"},
		{ending{closed: true, kill: "x"}, "closed"},
	} {
		if got := c.e.reason(); got != c.want {
			t.Errorf("reason %q, want %q", got, c.want)
		}
		if lost := c.e.err == nil || c.e.err == ieg.ErrEngineLost; !c.e.closed && lost != errors.Is(c.e.identity(), ieg.ErrEngineLost) {
			t.Errorf("%q has identity %v", c.want, c.e.identity())
		}
	}
}

func TestTail(t *testing.T) {
	var w tail
	fmt.Fprint(&w, "loading\npan")
	fmt.Fprint(&w, "ic: index out of range\n\ngoroutine 1:\n")
	for i := range 2000 {
		fmt.Fprintf(&w, "\tframe %d\n", i)
	}
	if got := w.lastWord(); got != "panic: index out of range" {
		t.Errorf("last word %q", got)
	}
	if all := w.all(); len(all) != tailBytes || !strings.HasSuffix(all, "frame 1999\n") {
		t.Errorf("%d bytes kept, ending %q", len(all), all[len(all)-20:])
	}
	var plain tail
	fmt.Fprint(&plain, strings.Repeat("x", 3*wordBytes)+"\nthe end")
	if got := plain.lastWord(); got != "the end" {
		t.Errorf("last word %q", got)
	}
	var none tail
	if got := none.lastWord(); got != "" {
		t.Errorf("last word %q of nothing", got)
	}
}
