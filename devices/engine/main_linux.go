package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// The descriptors that a child inherits.
const (
	stepFD  = 3
	ctlFD   = 4
	arenaFD = 5 // if the node shares an arena
)

// Main runs Serve on the inherited descriptors 3 and 4 and returns the exit
// status of the process: 0 after a close, 1 after any other end. Signals that
// ask a service to stop are ignored: the node drains first and ends the child
// by its connection. The node's arena, if it shares one, is on descriptor 5;
// open maps it. Without open, or if it fails, engines load all the same and keep
// their KV to themselves.
func Main(loaders map[string]Loader, open OpenArena) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	unix.CloseOnExec(arenaFD)
	step, err := inherit(stepFD, "step")
	ctl, err2 := inherit(ctlFD, "control")
	if err = errors.Join(err, err2); err == nil {
		err = Serve(context.Background(), step, ctl, loaders, inherited(open))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// inherit makes a connection of a descriptor that the node left open, and
// keeps it from processes started later.
func inherit(fd int, name string) (net.Conn, error) {
	unix.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is no %s connection of a node: run \"ieg up\", which starts engines itself: %w", fd, name, err)
	}
	return conn, nil
}

// inherited binds open to the arena's descriptor.
func inherited(open OpenArena) func(int64, int) (Arena, error) {
	if open == nil {
		return nil
	}
	return func(bytes int64, pageBytes int) (Arena, error) { return open(arenaFD, bytes, pageBytes) }
}
