package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StopTimeout is how long a server may take to end after SIGTERM.
const StopTimeout = 10 * time.Second

// Server is a running server.
type Server struct {
	Base    string // "http://127.0.0.1:PORT"
	Started time.Time
	cmd     *exec.Cmd
	out     tail
	done    chan struct{}
}

// Start runs argv, in which "{port}" stands for a free port, and waits until
// GET health answers 200. env is added to the environment.
func Start(ctx context.Context, argv []string, env []string, health string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	args := make([]string, len(argv))
	for i, a := range argv {
		args[i] = strings.ReplaceAll(a, "{port}", strconv.Itoa(port))
	}
	s := &Server{Base: fmt.Sprintf("http://127.0.0.1:%d", port), done: make(chan struct{})}
	s.cmd = exec.Command(args[0], args[1:]...)
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.Started = time.Now()
	if err := s.run(); err != nil {
		return nil, err
	}
	if err := s.await(ctx, health); err != nil {
		s.Stop()
		return nil, fmt.Errorf("%s: %w; its last words:\n%s", argv[0], err, s.out.String())
	}
	return s, nil
}

// run starts the server on a thread that stays as long as it lives: its end would
// be the server's.
func (s *Server) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		if started <- err; err == nil {
			_ = s.cmd.Wait()
			close(s.done)
		}
	}()
	return <-started
}

// await polls until the server answers.
func (s *Server) await(ctx context.Context, path string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	client := http.Client{Timeout: time.Second}
	for {
		if resp, err := client.Get(s.Base + path); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.done:
			return errors.New("it ended before it answered")
		case <-tick.C:
		}
	}
}

// PID is the server's process id.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Output is the end of what the server printed.
func (s *Server) Output() string { return s.out.String() }

// Stop ends the server, by SIGKILL if SIGTERM does not do it in time.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(StopTimeout):
		s.Kill()
	}
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Memory is what a process holds.
type Memory struct {
	RSS, Anon, File, Shmem int64 // bytes
}

// MemoryOf reads /proc/PID/status.
func MemoryOf(pid int) (Memory, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, err
	}
	var m Memory
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		f := strings.Fields(sc.Text())
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			m.RSS = kb << 10
		case "RssAnon:":
			m.Anon = kb << 10
		case "RssFile:":
			m.File = kb << 10
		case "RssShmem:":
			m.Shmem = kb << 10
		}
	}
	return m, nil
}

// Engines lists the processes of a node's engines: of its direct children those
// that serve, and not those by which it asks a library for its devices.
func Engines(pid int) []int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, t := range tasks {
		b, err := os.ReadFile(t)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(b)) {
			// A thread that ends leaves its children to another: they may be
			// listed twice.
			if n, err := strconv.Atoi(f); err == nil && !slices.Contains(out, n) && isEngine(n) {
				out = append(out, n)
			}
		}
	}
	return out
}

func isEngine(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(line), "\x00engine\x00serve\x00")
}

// tail keeps the last bytes written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

// TailBytes is what is kept of a server's output.
const TailBytes = 16 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - TailBytes; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
