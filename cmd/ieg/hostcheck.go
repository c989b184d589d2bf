package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"ieg/cmd/ieg/config"
)

// hostChecks looks at the processor, the memory and the limits.
func hostChecks() []check {
	out := []check{{What: "processor", State: "ok", Found: fmt.Sprintf("%d cores granted", runtime.GOMAXPROCS(0))}}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil {
		c := check{What: "open files", State: "ok", Found: fmt.Sprintf("%d at most", lim.Cur)}
		if lim.Cur < 1024 {
			c.State, c.Do = "bad", "raise it: ulimit -n 4096, or LimitNOFILE= in the unit"
		}
		out = append(out, c)
	}
	return out
}

func deviceChecks(e *config.Effective) []check {
	ds, err := hostDevices(e)
	if err != nil {
		return []check{{What: "devices", State: "bad", Found: err.Error()}}
	}
	var out []check
	for _, d := range ds {
		out = append(out, check{What: "device " + d.Spec.ID, State: "ok", Found: fmt.Sprintf("%s, %s free for models", d.Spec.Type, size(d.Free))})
	}
	return out
}
