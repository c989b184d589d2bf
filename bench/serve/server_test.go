package serve

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// A server outlives the thread of whoever started it.
func TestServerOutlivesThread(t *testing.T) {
	s := &Server{cmd: exec.Command("cat"), done: make(chan struct{})}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine
		started <- s.run()
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
		t.Error("the server ended with the thread that asked for it")
	case <-time.After(300 * time.Millisecond):
	}
	in.Close()
	select {
	case <-s.done:
	case <-time.After(StopTimeout):
		s.Kill()
		t.Error("cat does not end with its input")
	}
}
