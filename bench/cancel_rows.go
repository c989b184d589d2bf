package bench

import (
	"context"
	"fmt"
	"time"

	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
	"ieg/devices/engine"
)

// tickMillis is a clock tick of the system in milliseconds.
const tickMillis = 10

// cancelled: how long the engine goes on computing for a client that is gone.
// With one thread of the engine its processor time is that time.
func cancelled(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{{Name: "cancel", Unit: "ms", Bound: 250, Better: report.Lower,
		Against: "processor time of the engine after its client's leaving, the worst of all rounds"}}
	srv, c, err := e.ours(ctx, shape{slots: 4, context: 2048})
	if err != nil {
		return nil, err
	}
	defer srv.Stop()
	pids := serve.Engines(srv.PID())
	if len(pids) != 1 {
		return rows, fmt.Errorf("the node has %d children, one is expected", len(pids))
	}
	var spent []float64
	for round := range e.short() {
		ms, err := e.leave(ctx, c, pids[0], uint64(round))
		if err != nil {
			return rows, err
		}
		e.logf("      round %d: %.0f ms", round, ms)
		spent = append(spent, ms)
	}
	rows[0].Measure([]float64{report.Percentile(spent, 100)})
	rows[0].Detail = fmt.Sprintf("median %.0f ms; in turn a long prompt and four streams are left", report.Median(spent))
	return rows, nil
}

// leave leaves a long prompt or four streams in the middle and returns the
// milliseconds of processor time that the engine spends afterwards.
func (e *Env) leave(ctx context.Context, c *load.Client, pid int, round uint64) (float64, error) {
	bodies := []load.Body{chat("", prose(80_000+round, 1300), 1)}
	if round%2 == 1 {
		bodies = bodies[:0]
		for i := range uint64(4) {
			bodies = append(bodies, chat("", prose(81_000+10*round+i, 20), 900))
		}
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan []*load.Trace)
	go func() { done <- c.All(run, "/v1/chat/completions", bodies) }()
	if err := pause(ctx, 1500*time.Millisecond); err != nil {
		return 0, err
	}
	_, before, err := engine.ProcessState(pid)
	if err != nil {
		return 0, err
	}
	stop()
	for _, t := range <-done {
		if t.Err == nil {
			return 0, fmt.Errorf("a request ended before its client left")
		}
	}
	if err := pause(ctx, time.Second); err != nil {
		return 0, err
	}
	_, after, err := engine.ProcessState(pid)
	return float64(after-before) * tickMillis, err
}
