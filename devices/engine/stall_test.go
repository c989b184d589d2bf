package engine

import (
	"os"
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
