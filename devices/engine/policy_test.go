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

// TestLastWord: the head of a crash dump says what happened, not its end.
func TestLastWord(t *testing.T) {
	const stack = "\ngoroutine 7 gp=0xc000102380 m=4 mp=0xc000100008 [syscall]:\nruntime.cgocall(0x4f2b10, 0xc000051e10)\n\t/usr/lib/go/src/runtime/cgocall.go:167 +0x4b\n\nrax    0x0\nfs     0x0\ngs     0x0\n"
	for name, c := range map[string]struct{ out, want string }{
		"C reads a file that was cut": {"loaded\nSIGBUS: bus error\nPC=0x7f0c m=4 sigcode=2 addr=0x7f00\nsignal arrived during cgo execution\n" + stack, "SIGBUS: bus error" + fileHint},
		"C reads wild":                {"SIGSEGV: segmentation violation\nPC=0x7f0c m=4 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n" + stack, "SIGSEGV: segmentation violation" + fileHint},
		"Go reads a file that was cut": {"unexpected fault address 0x7f00\nfatal error: fault\n[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x401000]\n" + stack,
			"unexpected fault address 0x7f00 (SIGBUS: bus error)" + fileHint},
		"a signal on a thread of C": {"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x7f0c]\n" + stack,
			"fatal error: unexpected signal during runtime execution (SIGSEGV: segmentation violation)" + fileHint},
		"a nil pointer of Go": {"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x401000]\n" + stack,
			"panic: runtime error: invalid memory address or nil pointer dereference (SIGSEGV: segmentation violation)"},
		"only the signal's line": {"[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x401000]\n" + stack, "[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x401000]" + fileHint},
		"abort":                  {"SIGABRT: abort\nPC=0x7f0c m=0 sigcode=18446744073709551610\n" + stack, "SIGABRT: abort"},
		"an assertion":           {"ggml.c:10: GGML_ASSERT(x) failed\nSIGABRT: abort\nPC=0x7f0c\n" + stack, "ggml.c:10: GGML_ASSERT(x) failed (SIGABRT: abort)"},
		"a panic":                {"panic: boom\n" + stack + "SIGSEGV: said later\n", "panic: boom"},
		"no dump":                {"loading\nno such file\n", "no such file"},
		"talk of a signal":       {"SIGNAL processing: on\nSIGma: x\nready\n", "ready"},
	} {
		var whole, bytewise tail
		fmt.Fprint(&whole, c.out)
		for i := range len(c.out) {
			fmt.Fprint(&bytewise, c.out[i:i+1])
		}
		if got := whole.lastWord(); got != c.want || bytewise.lastWord() != got {
			t.Errorf("%s: %q and %q, want %q", name, got, bytewise.lastWord(), c.want)
		}
	}
}
