package pager

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// writerNice is the nice value of the thread that writes to the store.
const writerNice = 10

// giveWay gives this goroutine a thread of its own, which gives way to others of
// the host: nobody waits for what goes down. The thread ends with the goroutine.
func giveWay() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), writerNice)
}
