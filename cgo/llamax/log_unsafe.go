package llamax

import (
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// Log keeps the library's last warnings and errors and prints nothing.
type Log struct {
	mu    sync.Mutex
	lines []string
	level int32
}

// The levels of ggml's log.
const (
	levelWarn     = 3
	levelError    = 4
	levelContinue = 5
)

// NewLog makes a log and the C callback that feeds it. Callbacks can't be
// freed: make one per process.
func NewLog() (*Log, uintptr) {
	l := &Log{}
	cb := purego.NewCallback(func(level int32, text, _ uintptr) uintptr {
		l.add(level, text)
		return 0
	})
	return l, cb
}

func (l *Log) add(level int32, text uintptr) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if level != levelContinue {
		l.level = level
	}
	if l.level != levelWarn && l.level != levelError {
		return
	}
	line := strings.TrimSpace(goString(text, logLineBytes))
	if line == "" {
		return
	}
	if len(l.lines) == logLines {
		copy(l.lines, l.lines[1:])
		l.lines = l.lines[:logLines-1]
	}
	l.lines = append(l.lines, line)
}

// Take returns the kept lines, oldest first, and forgets them.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.lines, "; ")
	l.lines = l.lines[:0]
	return s
}
