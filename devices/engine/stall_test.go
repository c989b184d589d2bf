package engine

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

func TestIdleNeedsEvidence(t *testing.T) {
	for _, c := range []struct {
		state   byte
		same    bool
		backend string
		want    bool
	}{
		{'T', false, "synthetic", true}, // stopped, whatever it runs on
		{'t', true, "CUDA", true},
		{'S', true, "CPU", true},
		{'D', true, "CPU", true},
		{'S', false, "CPU", false}, // it used the processor
		{'R', true, "CPU", false},  // it wants the processor
		{'S', true, "CUDA", false}, // its device works
	} {
		if got := idle(c.state, c.same, c.backend); got != c.want {
			t.Errorf("state %c, same processor time %v, %s: idle is %v", c.state, c.same, c.backend, got)
		}
	}
}

func TestProcessStateOfThisProcess(t *testing.T) {
	state, before, err := ProcessState(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if state == 0 || before < 0 {
		t.Fatalf("state %q, %d ticks", state, before)
	}
	x := 1.0
	for after := before; after < before+2; _, after, err = ProcessState(os.Getpid()) {
		for range 1_000_000 {
			x *= 1.0000001
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if x == 0 {
		t.Fatal("the loop was left out")
	}
	if _, _, err := ProcessState(1 << 30); err == nil {
		t.Fatal("a process that does not exist has a state")
	}
}

// A thread that runs, or waits for its turn, is seen also where the process's
// first thread sleeps; a process that sleeps as a whole wants nothing.
func TestWanting(t *testing.T) {
	for script, want := range map[string]bool{"while :; do :; done": true, "exec sleep 60": false} {
		cmd := exec.Command("sh", "-c", script)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait() //nolint:errcheck // it is killed
		defer cmd.Process.Kill()
		seen := 0
		for range 200 {
			if wanting(cmd.Process.Pid) == want {
				if seen++; seen == 20 {
					break
				}
			} else {
				seen = 0
			}
			runtime.Gosched()
		}
		if seen < 20 {
			t.Errorf("%q: it is not seen to want the processor: %t", script, want)
		}
	}
	if wanting(1 << 30) {
		t.Error("no process wants the processor")
	}
}
