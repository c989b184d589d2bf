package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"ieg/api/admin"
	"ieg/cmd/ieg/backend"
	"ieg/cmd/ieg/config"
	"ieg/cmd/ieg/node"
	"ieg/devices/engine/lib"
)

// examine looks at everything that a node with this configuration needs.
func examine(ctx context.Context, e *config.Effective) []check {
	out := hostChecks(ctx, e)
	out = append(out, libraryChecks(e)...)
	out = append(out, modelChecks(e)...)
	out = append(out, folderCheck("data folder", e.DataDir, "--data-dir"), folderCheck("cache folder", e.CacheDir, "--cache-dir"))
	return append(out, nodeChecks(ctx, e)...)
}

func libraryChecks(e *config.Effective) []check {
	c, cache := check{What: "llama.cpp", State: "ok"}, e.CacheDir
	dir, err := libDirs(e)(node.Device{})
	if err == nil && e.Lib == "" { // a folder of the user's own has no manifest
		err = lib.Verify(dir)
	}
	if err != nil {
		c.State, c.Found, c.Do = "bad", err.Error(), "ieg engine add cpu"
	} else {
		c.Found = lib.Version + " for the CPU in " + dir
	}
	out := []check{c}
	for _, b := range backend.All() {
		if b.Name == "cpu" {
			continue
		}
		c := check{What: "llama.cpp " + b.Name, State: "note", Found: "not here", Do: "for " + b.For + ": ieg engine add " + b.Name}
		if b.Installed(cache) {
			c = check{What: c.What, State: "ok", Found: lib.Version + " in " + b.Dir(cache)}
			if err := lib.Verify(b.Dir(cache)); err != nil {
				c.State, c.Found, c.Do = "bad", err.Error(), "ieg engine add "+b.Name
			}
		}
		out = append(out, c)
	}
	return out
}

func modelChecks(e *config.Effective) []check {
	var out []check
	for _, m := range e.Models {
		c := check{What: "model", State: "ok", Found: m.Path}
		if !config.IsSynth(m.Path) {
			_, n, err := readModel(m.Path)
			if err != nil {
				c.State, c.Found, c.Do = "bad", err.Error(), "give --model the path of a GGUF file"
			} else {
				c.Found = fmt.Sprintf("%s, %s", m.Path, size(n))
			}
		}
		out = append(out, c)
	}
	if len(out) > 0 {
		return out
	}
	if path := firstModel(e.CacheDir); path != "" {
		return []check{{What: "model", State: "ok", Found: path + " in the cache"}}
	}
	return []check{{What: "model", State: "note", Found: "none in " + modelDir(e.CacheDir), Do: "put a GGUF file there or name one by --model FILE"}}
}

// folderCheck tells whether a folder can be written, or made.
func folderCheck(what, dir, flag string) check {
	c := check{What: what, State: "ok", Found: dir}
	at := dir
	for {
		_, err := os.Stat(at)
		if err == nil || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	if err := unix.Access(at, unix.W_OK); err != nil {
		c.State, c.Found, c.Do = "bad", fmt.Sprintf("%s can't be written: %v", at, err), "choose another by "+flag
		return c
	}
	if at != dir {
		c.Found += " (will be made)"
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(at, &fs); err == nil {
		c.Found += ", " + size(int64(fs.Bavail)*fs.Bsize) + " free"
	}
	return c
}

func nodeChecks(ctx context.Context, e *config.Effective) []check {
	cl := admin.NewClient(e.Admin)
	v, err := cl.Version(ctx)
	switch {
	case err == nil:
		out := []check{{What: "node", State: "ok", Found: fmt.Sprintf("runs on %s (pid %d, %s)", v.Listen, v.PID, v.Version)}}
		out = append(out, tierChecks(ctx, cl)...)
		return append(out, deathChecks(ctx, cl)...)
	case !errors.Is(err, admin.ErrNotRunning):
		return []check{{What: "node", State: "bad", Found: err.Error()}}
	}
	out := []check{{What: "node", State: "note", Found: "not running on " + e.Admin, Do: "ieg up --model FILE"}}
	l, err := net.Listen("tcp", e.Listen)
	if err != nil {
		return append(out, check{What: "port", State: "bad", Found: err.Error(), Do: "stop who listens there, or choose another address by --listen"})
	}
	l.Close()
	return append(out, check{What: "port", State: "ok", Found: e.Listen + " is free"})
}

// tierChecks tells how the tiers of KV of the running node are.
func tierChecks(ctx context.Context, cl *admin.Client) []check {
	t, err := cl.KV(ctx)
	if err != nil {
		return []check{{What: "KV tiers", State: "bad", Found: err.Error()}}
	}
	c := check{What: "KV tiers", State: "ok", Found: kvLine(&t)}
	if n := &t.NVMe; n.Folder != "" && !n.Up {
		c.State, c.Do = "note", "see ieg kv; the node serves on and tries again by itself"
	}
	out := []check{c}
	for _, n := range t.Host.Notes {
		out = append(out, check{What: "KV in memory", State: "note", Found: n})
	}
	return out
}

func deathChecks(ctx context.Context, cl *admin.Client) []check {
	ms, err := cl.Models(ctx)
	if err != nil {
		return []check{{What: "models", State: "bad", Found: err.Error()}}
	}
	var out []check
	for _, m := range ms {
		c := check{What: "model " + m.Name, State: "ok", Found: m.State}
		if m.Reason != "" {
			c.Found += ": " + m.Reason
		}
		if m.State == "down" {
			c.State, c.Do = "bad", "see ieg status; the reason says what to do"
		}
		out = append(out, c)
	}
	return out
}
