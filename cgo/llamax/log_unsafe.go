package llamax

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// Log keeps the library's last warnings and errors and prints nothing.
type Log struct {
	mu    sync.Mutex
	lines []string
	level int32
	sums  map[string]int64
}

// bufferSize matches the lines in which the library tells a buffer's size.
var bufferSize = regexp.MustCompile(`(model|KV|compute|output) buffer size\s*=\s*([0-9.]+) MiB`)

// The levels of ggml's log.
const (
	levelInfo     = 2
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
		if l.level == levelInfo {
			l.sum(goString(text, logLineBytes))
		}
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

// sum adds up the sizes of buffers.
func (l *Log) sum(line string) {
	m := bufferSize.FindStringSubmatch(line)
	if m == nil {
		return
	}
	if l.sums == nil {
		l.sums = map[string]int64{}
	}
	if mib, err := strconv.ParseFloat(m[2], 64); err == nil {
		l.sums[m[1]] += int64(mib * (1 << 20))
	}
}

// Sums returns the bytes of the buffers made since the last call, by kind:
// "model", "KV", "compute", "output".
func (l *Log) Sums() map[string]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sums
	l.sums = nil
	return s
}

// Take returns the kept lines, oldest first, and forgets them.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := strings.Join(l.lines, "; ")
	l.lines = l.lines[:0]
	return s
}
