package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
)

// memory: the node's own memory at 250 streams.
func memory(ctx context.Context, e *Env) ([]report.Row, error) {
	const n = 250
	srv, c, err := e.ours(ctx, shape{slots: n, context: 512, extra: []string{"--layout", "unified"}})
	if err != nil {
		return nil, err
	}
	defer srv.Stop()
	rows := []report.Row{{Name: "memory-node", Unit: "MB", Bound: 64, Better: report.Lower, Against: "its resident memory at 250 streams, without the arena of KV"}}
	run, stop := context.WithCancel(ctx)
	defer stop()
	bodies := make([]load.Body, n)
	for i := range bodies {
		bodies[i] = chat("", prose(uint64(60_000+i), 8), 400)
	}
	done := make(chan []*load.Trace)
	go func() { done <- c.All(run, "/v1/chat/completions", bodies) }()
	var peak []float64
	for range 40 {
		if err := pause(ctx, 1e9); err != nil {
			break
		}
		m, err := serve.MemoryOf(srv.PID())
		if err != nil {
			return rows, err
		}
		peak = append(peak, float64(m.RSS-m.Shmem)/1e6) // without the arena of KV
	}
	child := int64(0)
	for _, pid := range serve.Engines(srv.PID()) {
		if m, err := serve.MemoryOf(pid); err == nil {
			child += m.Anon + m.Shmem
		}
	}
	stop()
	<-done
	rows[0].Measure([]float64{report.Percentile(peak, 100)})
	rows[0].Detail = fmt.Sprintf("engine child beside it: %.0f MB not backed by files", float64(child)/1e6)
	row, err := childMemory(ctx, e)
	return append(rows, row), err
}

// memorySlots and memoryContext are the shape in which the child is compared
// with the raw loop.
const memorySlots, memoryContext = 16, 1024

// childMemory: what the engine child holds beside weights and KV, against a
// process that does nothing but the raw loop.
func childMemory(ctx context.Context, e *Env) (report.Row, error) {
	row := report.Row{Name: "memory-child", Unit: "×", Bound: 1.2, Better: report.Lower, Against: "a process of the raw loop, both beside weights and KV"}
	srv, c, err := e.ours(ctx, shape{slots: memorySlots, context: memoryContext, extra: []string{"--layout", "streams"}})
	if err != nil {
		return row, err
	}
	defer srv.Stop()
	bodies := make([]load.Body, memorySlots)
	for i := range bodies {
		bodies[i] = chat("", prose(uint64(70_000+i), 300), 32)
	}
	if err := failed(c.All(ctx, "/v1/chat/completions", bodies)); err != nil {
		return row, err
	}
	pids := serve.Engines(srv.PID())
	if len(pids) != 1 {
		return row, fmt.Errorf("the node has %d children, one is expected", len(pids))
	}
	m, err := serve.MemoryOf(pids[0])
	if err != nil {
		return row, err
	}
	out, err := exec.CommandContext(ctx, e.Binary, "bench", "--raw-memory").Output()
	if err != nil {
		return row, fmt.Errorf("the raw loop's process: %w", err)
	}
	var raw rawMemory
	if err := json.Unmarshal(out, &raw); err != nil {
		return row, err
	}
	// Weights are mapped files or, repacked, anonymous: the same on both
	// sides; what differs is taken as a whole, less the KV in use.
	mine, theirs := float64(m.Anon+m.Shmem), float64(raw.Anon)
	kv := float64(memorySlots) * memoryContext * 23040
	row.Measure([]float64{(mine - kv) / (theirs - kv)})
	row.Detail = fmt.Sprintf("%.0f against %.0f MB not backed by files, %.0f MB of them KV", mine/1e6, theirs/1e6, kv/1e6)
	return row, nil
}

// rawMemory is what "ieg bench --raw-memory" prints.
type rawMemory struct {
	Anon int64 `json:"anon_bytes"`
}

// holdRaw fills the raw loop as childMemory fills the engine and prints what
// this process holds.
func holdRaw(e *Env, w io.Writer) error {
	prompts := make([][]int, memorySlots)
	for i := range prompts {
		for t := range 400 {
			prompts[i] = append(prompts[i], 1000+(t*7+i*13)%20000)
		}
	}
	raw, err := e.raw(0, prompts, memoryContext)
	if err != nil {
		return err
	}
	defer raw.Close()
	if _, err := raw.Prefill(); err != nil {
		return err
	}
	if _, err := raw.Decode(32, nil); err != nil {
		return err
	}
	m, err := serve.MemoryOf(os.Getpid())
	if err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(rawMemory{Anon: m.Anon + m.Shmem})
}
