package engine

import (
	"bytes"
	"strings"
	"sync"
)

// tail keeps the end of a child's output, and the first line that tells of
// its death, which a long stack trace would push out.
type tail struct {
	mu   sync.Mutex
	ring []byte // the last tailBytes
	line []byte // the unfinished line, cut
	word string // the telling line
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring = append(t.ring, p...); len(t.ring) > tailBytes {
		t.ring = append(t.ring[:0], t.ring[len(t.ring)-tailBytes:]...)
	}
	for rest := p; t.word == "" && len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		t.line = append(t.line, line[:min(len(line), wordBytes-len(t.line))]...)
		if whole {
			if telling(t.line) {
				t.word = string(t.line)
			}
			t.line = t.line[:0]
		}
		rest = after
	}
	return len(p), nil
}

// telling recognises the first line of a Go crash and of a failed assertion
// in a C library.
func telling(line []byte) bool {
	for _, s := range []string{"panic: ", "fatal error: ", "runtime: "} {
		if bytes.HasPrefix(line, []byte(s)) {
			return true
		}
	}
	return bytes.Contains(line, []byte("ASSERT")) || bytes.Contains(line, []byte("terminate called"))
}

// all returns what is kept.
func (t *tail) all() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.ring), "?")
}

// lastWord is the line to show: the telling one, else the last one.
func (t *tail) lastWord() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.word != "" {
		return strings.ToValidUTF8(t.word, "?")
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.ring), "?"))
	return cut(text[strings.LastIndexByte(text, '\n')+1:], wordBytes)
}
