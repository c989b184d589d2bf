package engine

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"ieg"
)

// stallEvery is how often a child with a step in flight is looked at, and
// stallLooks how many looks in a row must find it idle.
const (
	stallEvery = 100 * time.Millisecond
	stallLooks = 3
)

// cpuBackend is the backend whose steps use the processor all the time: its
// threads at rest in the middle of a step are a hang.
const cpuBackend = "CPU"

// watch looks for evidence that the child hangs, as long as it lives: it is
// stopped, or it has a step in flight on the CPU and neither runs nor wants
// to. A child that is merely denied the processor wants to run and is left
// alone. Each step is reported once.
func (inc *incarnation) watch(done <-chan struct{}) {
	tick := time.NewTicker(stallEvery)
	defer tick.Stop()
	var still int
	var last int64
	var told ieg.StepID
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		c := inc.c
		c.mu.Lock()
		step, look, backend := inc.running, inc.up && inc.busy && !inc.dead, inc.backend
		c.mu.Unlock()
		state, cpu, err := ProcessState(inc.pid())
		if !look || err != nil || !idle(state, cpu == last && !wanting(inc.pid()), backend) {
			still, last = 0, cpu
			continue
		}
		if still++; still >= stallLooks && told != step {
			told = step
			c.cfg.Notify(Stalled{ID: c.cfg.ID, Epoch: inc.epoch, Step: step,
				Reason: fmt.Sprintf("the engine is %s in the middle of a step", stateName(state))})
		}
	}
}

// idle judges one look: still tells that no thread ran since the last one or
// wants to.
func idle(state byte, still bool, backend string) bool {
	if state == 'T' || state == 't' {
		return true
	}
	return backend == cpuBackend && still && state != 'R'
}

// wanting tells whether any thread of a process waits for a processor, or for
// a page of its memory: a busy host may keep all of them waiting for long.
func wanting(pid int) bool {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil {
		return false
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it has ended
		}
		_, rest, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(" "))
		if ok && len(rest) > 0 && (rest[0] == 'R' || rest[0] == 'D') {
			return true
		}
	}
	return false
}

func stateName(state byte) string {
	if state == 'T' || state == 't' {
		return "stopped"
	}
	return "asleep"
}

// ProcessState is the state letter of a process and the processor time that
// all its threads have used, in clock ticks (USER_HZ: 100 a second).
func ProcessState(pid int) (state byte, ticks int64, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, err
	}
	// The name is in parentheses and may hold anything.
	_, rest, ok := bytes.Cut(b[max(bytes.LastIndexByte(b, ')'), 0):], []byte(" "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 13 || len(f[0]) != 1 {
		return 0, 0, fmt.Errorf("%w: /proc/%d/stat is %q", ieg.ErrProtocol, pid, b)
	}
	user, err := strconv.ParseInt(string(f[11]), 10, 64)
	if err != nil {
		return 0, 0, err
	}
	system, err := strconv.ParseInt(string(f[12]), 10, 64)
	return f[0][0], user + system, err
}
