package main

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
)

// hostChecks tells what was found of the host, its limits and its devices.
func hostChecks(ctx context.Context, e *config.Effective) []check {
	h := findHost(e, "")
	var out []check
	for _, f := range h.machine.Findings {
		c := check{What: f.What, Found: f.Detail, Do: f.Remedy, State: "ok"}
		if !f.OK {
			c.State = "note"
		}
		out = append(out, c)
	}
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err == nil {
		c := check{What: "open files", State: "ok", Found: fmt.Sprintf("%d at most", lim.Cur)}
		if lim.Cur < OpenFilesLeast {
			c.State, c.Do = "bad", "raise it: ulimit -n 4096, or LimitNOFILE= in the unit"
		}
		out = append(out, c)
	}
	ds := h.devices
	if self, err := os.Executable(); err == nil {
		err = probeBackends(ctx, self, e, func(more []node.Device) { ds = node.Merge(ds, more) })
		if err != nil {
			out = append(out, check{What: "backends", State: "note", Found: err.Error(), Do: "install what is missing, or leave it: the CPU serves"})
		}
	}
	for _, d := range ds {
		c := check{What: "device " + d.Spec.ID, State: "ok", Found: fmt.Sprintf("%s %s, %s free for models", d.Spec.Type, d.Spec.Model, size(d.Free))}
		for _, n := range d.Notes {
			c.State, c.Do = "note", n
		}
		out = append(out, c)
	}
	return out
}
