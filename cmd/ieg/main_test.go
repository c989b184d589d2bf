package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ieg/api/admin"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ieg": main})
}

func TestScripts(t *testing.T) {
	nodes := &nodes{}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			// Each script is a host of its own: folders, socket, environment.
			// Unix sockets need short paths.
			run, err := os.MkdirTemp("", "ieg")
			if err != nil {
				return err
			}
			e.Defer(func() { os.RemoveAll(run) })
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_RUNTIME_DIR", run)
			e.Setenv("IEG_ADMIN", filepath.Join(run, "ieg.sock"))
			e.Setenv("IEG_DATA_DIR", filepath.Join(e.WorkDir, "data"))
			e.Setenv("IEG_CACHE_DIR", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("IEG_LISTEN", "127.0.0.1:0")
			e.Setenv("IEG_LOG_FORMAT", "text")
			e.Defer(func() { nodes.endAll(e.Getenv("IEG_ADMIN")) })
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": nodes.node, "signal": nodes.signal, "ended": nodes.ended,
			"exit": exitWith, "json": validJSON, "http": get, "free": reusable, "waitrunning": waitRunning, "ask": ask, "waitstatus": waitStatus,
		},
	})
}

// nodes are the nodes that scripts started, by socket and name.
type nodes struct {
	mu  sync.Mutex
	all map[string]*running
}

type running struct {
	cmd  *exec.Cmd
	out  *output
	err  *output
	done chan struct{}
}

// output collects what a process prints and tells of each change.
type output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	more chan struct{}
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

func (n *nodes) key(ts *testscript.TestScript, name string) string {
	return ts.Getenv("IEG_ADMIN") + " " + name
}

func (n *nodes) get(ts *testscript.TestScript, name string) *running {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.all[n.key(ts, name)]
	if r == nil {
		ts.Fatalf("no node %q was started", name)
	}
	return r
}

// node NAME ARGS… starts "ieg up ARGS…" and waits until it is ready; its
// address is then in $NAME.
func (n *nodes) node(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: node NAME ARGS…")
	}
	path, err := exec.LookPath("ieg")
	ts.Check(err)
	r := &running{out: &output{more: make(chan struct{}, 1)}, err: &output{more: make(chan struct{}, 1)}, done: make(chan struct{})}
	r.cmd = exec.Command(path, append([]string{"up"}, args[1:]...)...)
	r.cmd.Dir = ts.MkAbs(".")
	r.cmd.Stdout, r.cmd.Stderr = r.out, r.err
	for _, k := range []string{"HOME", "XDG_RUNTIME_DIR", "IEG_ADMIN", "IEG_DATA_DIR", "IEG_CACHE_DIR", "IEG_LISTEN", "IEG_LOG_FORMAT", "PATH", "TMPDIR"} {
		r.cmd.Env = append(r.cmd.Env, k+"="+ts.Getenv(k))
	}
	ts.Check(r.cmd.Start())
	go func() { _ = r.cmd.Wait(); close(r.done) }()
	n.mu.Lock()
	if n.all == nil {
		n.all = map[string]*running{}
	}
	n.all[n.key(ts, args[0])] = r
	n.mu.Unlock()
	ready := regexp.MustCompile(`ready on http://(\S+)(?s:.*)ieg (chat|models load)`)
	limit := time.After(30 * time.Second)
	for {
		if m := ready.FindStringSubmatch(r.out.String()); m != nil {
			ts.Setenv(args[0], m[1])
			return
		}
		select {
		case <-r.out.more:
		case <-r.done:
			ts.Fatalf("the node ended: %s\n%s", r.out, r.err)
		case <-limit:
			ts.Fatalf("the node is not ready: %s\n%s", r.out, r.err)
		}
	}
}

// signal NAME SIGNAL sends a signal.
func (n *nodes) signal(ts *testscript.TestScript, _ bool, args []string) {
	sig := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}[args[1]]
	ts.Check(n.get(ts, args[0]).cmd.Process.Signal(sig))
}

// ended NAME CODE waits for the node's end and checks its exit code; -1 is by
// a signal. What it printed is written to NAME.out and NAME.err.
func (n *nodes) ended(ts *testscript.TestScript, _ bool, args []string) {
	r := n.get(ts, args[0])
	select {
	case <-r.done:
	case <-time.After(30 * time.Second):
		ts.Fatalf("the node does not end: %s", r.err)
	}
	if got := fmt.Sprint(r.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("the node ended with %s, want %s\n%s\n%s", got, args[1], r.out, r.err)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".out"), []byte(r.out.String()), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(r.err.String()), 0o600))
}

func (n *nodes) endAll(socket string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k, r := range n.all {
		if strings.HasPrefix(k, socket+" ") {
			_ = r.cmd.Process.Kill()
			<-r.done
			delete(n.all, k)
		}
	}
}

// exit CODE ARGS… runs "ieg ARGS…" and checks its exit code. Its output goes
// to stdout.txt and stderr.txt.
func exitWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exit CODE ARGS…")
	}
	err := ts.Exec("ieg", args[1:]...)
	code := 0
	if ee := (*exec.ExitError)(nil); err != nil {
		var ok bool
		if ee, ok = err.(*exec.ExitError); !ok {
			ts.Fatalf("%v", err)
		}
		code = ee.ExitCode()
	}
	ts.Check(os.WriteFile(ts.MkAbs("stdout.txt"), []byte(ts.ReadFile("stdout")), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("stderr.txt"), []byte(ts.ReadFile("stderr")), 0o600))
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("ieg %s ended with %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// json FILE checks that a file is JSON.
func validJSON(ts *testscript.TestScript, neg bool, args []string) {
	if ok := json.Valid([]byte(ts.ReadFile(args[0]))); ok == neg {
		ts.Fatalf("%s: JSON is %v", args[0], ok)
	}
}

// http CODE URL gets a page and checks the status; the body is in body.txt.
func get(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(args[1])
	ts.Check(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs("body.txt"), b, 0o600))
	if fmt.Sprint(resp.StatusCode) != args[0] {
		ts.Fatalf("%s: %s, want %s\n%s", args[1], resp.Status, args[0], b)
	}
}

// waitrunning waits until the node runs a request.
func waitRunning(ts *testscript.TestScript, _ bool, _ []string) {
	c := admin.NewClient(ts.Getenv("IEG_ADMIN"))
	limit := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		st, err := c.Status(context.Background())
		ts.Check(err)
		for _, r := range st.Requests {
			if r.Generated > 0 {
				return
			}
		}
		select {
		case <-limit:
			ts.Fatalf("nothing runs: %+v", st)
		case <-tick.C:
		}
	}
}

// free SOCKET tells that nobody is behind a socket.
func reusable(ts *testscript.TestScript, neg bool, args []string) {
	_, err := os.Stat(args[0])
	if gone := os.IsNotExist(err); gone == neg {
		ts.Fatalf("%s: gone is %v", args[0], gone)
	}
}
