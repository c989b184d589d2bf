package engine

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The thread of steps goes before others where the user may say so.
func TestHurry(t *testing.T) {
	var was, is int
	var denied error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with this goroutine
		was, _ = unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		denied = hurry()
		is, _ = unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
	}()
	<-done
	switch {
	case denied != nil && is != was:
		t.Errorf("priority %d after %v, it was %d", is, denied, was)
	case denied != nil:
		t.Skipf("this user may not: %v", denied)
	case is != 20-engineNice:
		t.Errorf("priority %d, it was %d", is, was)
	}
}
