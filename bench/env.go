package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"ieg/bench/load"
	"ieg/bench/serve"
)

// Env is what the groups share.
type Env struct {
	Binary  string // our program
	Model   string // the chat model's file
	LibDir  string // engine libraries with the peer's instruction set
	Peer    string // llama-server; "" if it was not built
	Threads int    // of the engine, on both sides
	Rounds  int
	Full    bool
	JSON    bool // rows are printed as JSON
	Whole   bool // one group is measured, and may take its time
	Tiny    bool // small forms, which tell only whether a group runs
	Log     io.Writer
	dir     string
}

// NewEnv finds the binary, the model and the peer in the cache.
func NewEnv(log io.Writer) (*Env, error) {
	bin, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	cache = filepath.Join(cache, "ieg")
	e := &Env{Binary: bin, Threads: max(runtime.NumCPU()-1, 1), Rounds: Rounds, Log: log, Tiny: os.Getenv("IEG_BENCH_TINY") != ""}
	e.Model = pick(os.Getenv("IEG_MODEL"), filepath.Join(cache, "models", "SmolLM2-135M-Instruct.Q4_1.gguf"))
	e.LibDir = pick(os.Getenv("IEG_LIB"), filepath.Join(cache, "lib", "linux-x64-cpu-v0.5.0"))
	if m, _ := filepath.Glob(filepath.Join(cache, "peers", "llama-server-*", "llama-server")); len(m) > 0 {
		e.Peer = m[len(m)-1]
	}
	for _, f := range []string{e.Model, e.LibDir} {
		if _, err := os.Stat(f); err != nil {
			return nil, fmt.Errorf("%w; run `make build models` first", err)
		}
	}
	e.dir, err = os.MkdirTemp("", "ieg-bench-")
	return e, err
}

// Close removes the scratch folder.
func (e *Env) Close() { _ = os.RemoveAll(e.dir) }

func pick(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// shape is the size of a server: slots of context tokens each.
type shape struct {
	slots, context int
	extra          []string // flags of our own server
	admin          string   // its admin socket, "" for one of its own
	data           string   // its data folder, "" for that of the slots
}

// ours starts our server.
func (e *Env) ours(ctx context.Context, s shape) (*serve.Server, *load.Client, error) {
	dir, err := os.MkdirTemp(e.dir, "node-")
	if err != nil {
		return nil, nil, err
	}
	argv := append([]string{e.Binary, "up", "--model", e.Model, "--listen", "127.0.0.1:{port}",
		"--slots", strconv.Itoa(s.slots), "--ctx", strconv.Itoa(s.context), "--threads", strconv.Itoa(e.Threads),
		"--data-dir", pick(s.data, filepath.Join(e.dir, "state"+strconv.Itoa(s.slots))), "--admin", pick(s.admin, filepath.Join(dir, "ieg.sock"))}, s.extra...)
	return e.start(ctx, argv, []string{"IEG_LIB=" + e.LibDir})
}

// peer starts llama-server with the same shape.
func (e *Env) peer(ctx context.Context, s shape, flags ...string) (*serve.Server, *load.Client, error) {
	if e.Peer == "" {
		return nil, nil, fmt.Errorf("llama-server is not built; run `make peers`")
	}
	t := strconv.Itoa(e.Threads)
	argv := append([]string{e.Peer, "-m", e.Model, "--host", "127.0.0.1", "--port", "{port}", "-t", t, "-tb", t, "--no-webui"}, flags...)
	if s.slots > 0 {
		argv = append(argv, "-np", strconv.Itoa(s.slots), "-c", strconv.Itoa(s.slots*s.context))
	}
	return e.start(ctx, argv, nil)
}

func (e *Env) start(ctx context.Context, argv, env []string) (*serve.Server, *load.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, ReadyTimeout)
	defer cancel()
	s, err := serve.Start(ctx, argv, env, "/health")
	if err != nil {
		return nil, nil, err
	}
	return s, load.New(s.Base), nil
}

// pair is our server and the peer's, both running; only one gets work at a
// time.
type pair struct {
	our, their   *serve.Server
	ours, theirs *load.Client
}

func (e *Env) pair(ctx context.Context, s shape, flags ...string) (*pair, error) {
	p := &pair{}
	var err error
	if p.our, p.ours, err = e.ours(ctx, s); err != nil {
		return nil, err
	}
	if p.their, p.theirs, err = e.peer(ctx, s, flags...); err != nil {
		p.our.Stop()
		return nil, err
	}
	return p, nil
}

func (p *pair) stop() {
	p.our.Stop()
	p.their.Stop()
}

func (e *Env) logf(format string, a ...any) { fmt.Fprintf(e.Log, format+"\n", a...) }
