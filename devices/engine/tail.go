package engine

import (
	"bytes"
	"strings"
	"sync"
)

// tail keeps the end of a child's output, and the first line that tells of
// its death, which a long stack trace would push out.
type tail struct {
	mu     sync.Mutex
	ring   []byte // the last tailBytes
	line   []byte // the unfinished line, cut
	word   string // the telling line
	signal string // that Go's dump names near it
	deep   bool   // the dump's head is over
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring = append(t.ring, p...); len(t.ring) > tailBytes {
		t.ring = append(t.ring[:0], t.ring[len(t.ring)-tailBytes:]...)
	}
	for rest := p; !t.deep && len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		t.line = append(t.line, line[:min(len(line), wordBytes-len(t.line))]...)
		if whole {
			t.read(string(t.line))
			t.line = t.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

// read looks at one line. The stack begins the part of a dump in which
// nothing is for people.
func (t *tail) read(line string) {
	switch {
	case t.word == "" && telling(line):
		t.word = line
	case t.word == "":
		return
	case strings.HasPrefix(line, "goroutine "):
		t.deep = true
	}
	if t.signal == "" {
		t.signal = signalIn(line)
	}
}

// telling recognises the first line of a Go crash and of a failed assertion
// in a C library.
func telling(line string) bool {
	for _, s := range []string{"panic: ", "fatal error: ", "runtime: ", "unexpected fault ", "[signal "} {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	return signalIn(line) != "" || strings.Contains(line, "ASSERT") || strings.Contains(line, "terminate called")
}

// signalIn finds what Go says of a signal, as in "SIGBUS: bus error" and
// "[signal SIGBUS: bus error code=0x2 addr=0x7f00 pc=0x401000]".
func signalIn(line string) string {
	line, inDump := strings.CutPrefix(line, "[signal ")
	name, rest, ok := strings.Cut(line, ": ")
	if !ok || !strings.HasPrefix(name, "SIG") || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
		return ""
	}
	if inDump {
		rest, _, _ = strings.Cut(rest, " code=")
		rest = strings.TrimSuffix(rest, "]")
	}
	return name + ": " + rest
}

// fileHint follows the signals that reading a mapped file can raise.
const fileHint = "; was the model file changed or cut while it was in use? Replace files by renaming, not in place"

// all returns what is kept.
func (t *tail) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.ring), "?")
}

// lastWord is the line to show: the telling one with its signal, else the
// last one.
func (t *tail) lastWord() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.word == "" {
		text := strings.TrimSpace(strings.ToValidUTF8(string(t.ring), "?"))
		return cut(text[strings.LastIndexByte(text, '\n')+1:], wordBytes)
	}
	s := t.word
	if !strings.Contains(s, t.signal) {
		s += " (" + t.signal + ")"
	}
	// A panic is Go code's own fault: Go reads no weights.
	if name, _, _ := strings.Cut(t.signal, ":"); (name == "SIGBUS" || name == "SIGSEGV") && !strings.HasPrefix(s, "panic: ") {
		s += fileHint
	}
	return strings.ToValidUTF8(s, "?")
}
