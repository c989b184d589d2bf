package engine

import "golang.org/x/sys/unix"

// engineNice is the nice value of the thread that runs steps, and of those that
// the library makes for them.
const engineNice = -5

// hurry puts this thread before others of the host: all streams wait for it, and
// a slice of the scheduler that it is put off is a gap in each of them. The
// error tells that the user may not; nothing is changed then.
func hurry() error { return unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), engineNice) }
