package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ieg/bench/serve"
)

// synthNode starts a node with the synthetic engine and returns it with its
// socket.
func synthNode(t *testing.T, ctx context.Context, args ...string) (*serve.Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ieg") // Unix sockets need short paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	srv, err := serve.Start(ctx, append([]string{ownPath(t), "up", "--listen", "127.0.0.1:{port}",
		"--data-dir", filepath.Join(dir, "d"), "--admin", socket}, args...), nil, "/health")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	return srv, socket
}

func ownPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ieg")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// What still runs at the end of the drain timeout is told so: a whole answer
// by its status, a stream by an event.
func TestTheEndOfTheDrainIsTold(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, _ := synthNode(t, ctx, "--model", "synth:stop=0,step=50ms", "--drain-timeout", "300ms")
	ask := func(stream string) *http.Response {
		body := `{"messages":[{"role":"user","content":"Hello"}],"stream":` + stream + `}`
		resp, err := http.Post(srv.Base+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Errorf("stream %s: %v", stream, err)
			return nil
		}
		return resp
	}
	whole := make(chan *http.Response, 1)
	go func() { whole <- ask("false") }()
	stream := ask("true")
	if stream == nil {
		t.FailNow()
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(srv.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || !bytes.Contains(rest, []byte(`data: {"error":`)) {
		t.Errorf("the stream ends with %v: …%s", err, rest[max(0, len(rest)-200):])
	}
	resp := <-whole
	if resp == nil {
		t.FailNow()
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(got, []byte(`{"error":`)) {
		t.Errorf("the whole answer: %s, %v: %s", resp.Status, err, got)
	}
}

// A node whose log and greeting nobody reads any more serves on.
func TestALostLogEndsNoNode(t *testing.T) {
	dir, err := os.MkdirTemp("", "ieg")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	path, socket := ownPath(t), filepath.Join(dir, "s")
	node := exec.Command(path, "up", "--model", "synth:", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "d"), "--admin", socket)
	node.Stdout, node.Stderr = w, w
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = node.Process.Kill() }()
	w.Close()
	for s := bufio.NewScanner(r); s.Scan() && !strings.Contains(s.Text(), "ready on"); {
	}
	r.Close()
	for _, args := range [][]string{{"models", "load", "b=synth:"}, {"models", "unload", "b"}, {"status"}, {"down"}} {
		if out, err := exec.Command(path, append(args, "--admin", socket)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
	}
	if err := node.Wait(); err != nil {
		t.Errorf("end: %v", err)
	}
}

// Ctrl-C in a chat ends it without a word, by the code of interruption.
func TestInterruptedChat(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, socket := synthNode(t, ctx, "--model", "synth:stop=0,step=20ms")
	chat := exec.CommandContext(ctx, ownPath(t), "chat", "--admin", socket, "Hello")
	var said bytes.Buffer
	chat.Stderr = &said
	out, err := chat.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := chat.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := chat.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		t.Fatal(err)
	}
	_ = chat.Wait()
	if code := chat.ProcessState.ExitCode(); code != exitInterrupted || said.Len() > 0 {
		t.Errorf("code %d, %q", code, said.String())
	}
}

// A full disk costs the pid in the lock, not the node. What /dev/full refuses
// stands for it.
func TestLockOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "lock")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	f, err := lockData(dir, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !strings.Contains(log.String(), "free some space") {
		t.Errorf("no warning: %s", log.String())
	}
}

// A process that nobody has asked for its exit code has ended all the same.
func TestAlive(t *testing.T) {
	c := exec.Command("cat")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	if !alive(pid) {
		t.Error("a running process is taken for dead")
	}
	in.Close()
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if alive(pid) {
		t.Error("a zombie is taken for alive")
	}
	if err := c.Wait(); err != nil || alive(pid) {
		t.Errorf("after the wait: %v, alive %v", err, alive(pid))
	}
}
