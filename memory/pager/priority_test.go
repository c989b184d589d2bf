package pager

import (
	"testing"

	"golang.org/x/sys/unix"
)

// The writer's thread gives way, whoever runs it, and nobody else gets it later.
func TestGiveWay(t *testing.T) {
	is := make(chan int)
	go func() {
		giveWay()
		n, err := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
		if err != nil {
			t.Error(err)
		}
		is <- n
	}()
	if n := <-is; n != 20-writerNice {
		t.Errorf("priority %d, want %d", n, 20-writerNice)
	}
	for range 100 {
		go func() {
			n, _ := unix.Getpriority(unix.PRIO_PROCESS, unix.Gettid())
			is <- n
		}()
		if n := <-is; n == 20-writerNice {
			t.Fatal("another goroutine runs on the writer's thread")
		}
	}
}
