package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A node under systemd tells when it is ready, feeds the watchdog while its
// loop turns, and tells that it stops.
func TestNotify(t *testing.T) {
	dir, err := os.MkdirTemp("", "ieg")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	sock, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	path, err := exec.LookPath("ieg")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "up", "--model", "synth:", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--admin", filepath.Join(dir, "s"))
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+filepath.Join(dir, "notify"), "WATCHDOG_USEC=300000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if err := sock.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	seen := ""
	await := func(what string) {
		t.Helper()
		buf := make([]byte, 4096)
		for !strings.Contains(seen, what) {
			n, err := sock.Read(buf)
			if err != nil {
				t.Fatalf("%s was not told: %v; told: %q", what, err, seen)
			}
			seen += string(buf[:n]) + "\n"
		}
	}
	await("EXTEND_TIMEOUT_USEC=")
	await("READY=1")
	await("WATCHDOG=1")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	await("STOPPING=1")
	if err := cmd.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}
