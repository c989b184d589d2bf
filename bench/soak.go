package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
)

// Settings of the soak.
const (
	soakClients   = 16
	soakKillEvery = 45 * time.Second
	// soakKillShadow is how long after a kill an error may be the kill's.
	soakKillShadow = 15 * time.Second
)

// soaker is one soak run.
type soaker struct {
	srv    *serve.Server
	c      *load.Client
	killed atomic.Int64 // Unix ns of the last engine kill

	mu     sync.Mutex
	counts map[string]int
	wrong  []string // errors that nobody asked for
}

// soak runs clients that cancel, send bad bodies and read slowly, while the
// engine is killed again and again. It fails on any error that is neither the
// client's nor a kill's, on growing memory, and on KV held when idle.
func soak(ctx context.Context, e *Env, d time.Duration, stdout io.Writer) error {
	admin := e.dir + "/soak.sock"
	srv, c, err := e.ours(ctx, shape{slots: soakClients, context: 1024, admin: admin})
	if err != nil {
		return err
	}
	defer srv.Stop()
	s := &soaker{srv: srv, c: c, counts: map[string]int{}}
	run, stop := context.WithTimeout(ctx, d)
	defer stop()
	var wg sync.WaitGroup
	for i := range soakClients {
		wg.Go(func() { s.client(run, uint64(i)) })
	}
	wg.Go(func() { s.killer(run) })
	rss := s.watch(run, stdout)
	wg.Wait()
	fmt.Fprintf(stdout, "requests: %v\n", s.counts)
	if len(s.wrong) > 0 {
		return fmt.Errorf("%d errors that are neither the client's nor a kill's, the first: %s", len(s.wrong), s.wrong[0])
	}
	if err := flat(rss); err != nil {
		return err
	}
	return idleHoldsNothing(ctx, e, admin)
}

// client sends requests of random kinds until the time is up.
func (s *soaker) client(ctx context.Context, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 99))
	for n := uint64(0); ctx.Err() == nil; n++ {
		switch k := r.IntN(10); {
		case k < 5:
			s.check("chat", s.c.Stream(ctx, "/v1/chat/completions", chat("", prose(seed<<20+n, 5+r.IntN(200)), 8+r.IntN(80))).Err, ctx)
		case k < 7:
			s.cancelled(ctx, r, seed<<20+n)
		case k < 9:
			s.bad(ctx, r)
		default:
			s.slow(ctx, r, seed<<20+n)
		}
	}
}

// check sorts an outcome: success, the end of the run, a kill's, or wrong.
func (s *soaker) check(kind string, err error, ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shadow := time.Since(time.Unix(0, s.killed.Load())) < soakKillShadow
	switch {
	case err == nil:
		s.counts[kind]++
	case ctx.Err() != nil:
	case shadow:
		s.counts[kind+" failed by a kill"]++
	default:
		s.counts["wrong"]++
		s.wrong = append(s.wrong, kind+": "+err.Error())
	}
}

// cancelled leaves in the middle of the answer.
func (s *soaker) cancelled(ctx context.Context, r *rand.Rand, seed uint64) {
	leave, stop := context.WithTimeout(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
	defer stop()
	t := s.c.Stream(leave, "/v1/chat/completions", chat("", prose(seed, 50), 200))
	if t.Err != nil && leave.Err() != nil {
		t.Err = nil
	}
	s.check("cancelled", t.Err, ctx)
}

// badBodies must each be answered by a 4xx.
var badBodies = []string{
	`{`, `[]`, `{"messages":7}`, `{"messages":[]}`, `{"messages":[{"role":"user","content":"x"}],"n":-1}`,
	`{"messages":[{"role":"user","content":"x"}],"temperature":"hot"}`, `{"model":"nobody","messages":[{"role":"user","content":"x"}]}`,
	`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"nothing"}}}}`,
	strings.Repeat("[", 10_000),
}

func (s *soaker) bad(ctx context.Context, r *rand.Rand) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.c.Base+"/v1/chat/completions", strings.NewReader(badBodies[r.IntN(len(badBodies))]))
	if err != nil {
		s.check("bad body", err, ctx)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		if resp.StatusCode < 400 || resp.StatusCode >= 500 {
			err = fmt.Errorf("status %d", resp.StatusCode)
		}
	}
	s.check("bad body", err, ctx)
}

// slow reads a byte now and then, then leaves.
func (s *soaker) slow(ctx context.Context, r *rand.Rand, seed uint64) {
	body, _ := json.Marshal(merge(chat("", prose(seed, 20), 300), load.Body{"stream": true}))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.c.Base+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		s.check("slow", err, ctx)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.check("slow", err, ctx)
		return
	}
	defer resp.Body.Close()
	var one [1]byte
	for range 20 + r.IntN(60) {
		if _, err = resp.Body.Read(one[:]); err != nil || pause(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s.check("slow", err, ctx)
}

func merge(a, b load.Body) load.Body {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// killer kills the engine child again and again.
func (s *soaker) killer(ctx context.Context) {
	for pause(ctx, soakKillEvery) == nil {
		for _, pid := range serve.Engines(s.srv.PID()) {
			s.killed.Store(time.Now().UnixNano())
			_ = syscall.Kill(pid, syscall.SIGKILL)
			s.mu.Lock()
			s.counts["engine kills"]++
			s.mu.Unlock()
		}
	}
}

// watch samples the node's memory and shows progress.
func (s *soaker) watch(ctx context.Context, w io.Writer) []float64 {
	var rss []float64
	for n := 0; pause(ctx, 5*time.Second) == nil; n++ {
		m, err := serve.MemoryOf(s.srv.PID())
		if err != nil {
			s.check("node", fmt.Errorf("the node is gone: %w; %s", err, s.srv.Output()), context.Background())
			return rss
		}
		rss = append(rss, float64(m.RSS-m.Shmem)/1e6) // the arena of KV has a budget of its own
		if n%6 == 0 {
			s.mu.Lock()
			fmt.Fprintf(w, "%4d s  node %.0f MB  %v\n", 5*(n+1), rss[len(rss)-1], s.counts)
			s.mu.Unlock()
		}
	}
	return rss
}

// flat compares the last quarter of the samples with the second one.
func flat(rss []float64) error {
	if len(rss) < 8 {
		return nil
	}
	q := len(rss) / 4
	before, after := report.Median(rss[q:2*q]), report.Median(rss[len(rss)-q:])
	if after > before*1.15+8 {
		return fmt.Errorf("the node's memory grew from %.0f to %.0f MB", before, after)
	}
	return nil
}

// idleHoldsNothing asks the node what is held once all clients are gone.
func idleHoldsNothing(ctx context.Context, e *Env, admin string) error {
	var last string
	for range 100 {
		out, err := exec.CommandContext(ctx, e.Binary, "status", "--admin", admin, "--json").Output()
		if err != nil {
			return fmt.Errorf("ieg status: %w", err)
		}
		var st struct {
			Engines []struct {
				Running, Waiting int
				SlotsUsed        int   `json:"slots_used"`
				CellsUsed        int64 `json:"cells_used"`
			} `json:"engines"`
			Requests []json.RawMessage `json:"requests"`
			KV       struct {
				Leases [3]int
				Moves  int
			} `json:"kv"`
		}
		if err := json.Unmarshal(out, &st); err != nil {
			return fmt.Errorf("ieg status: %w", err)
		}
		held := len(st.Requests) + st.KV.Leases[0] + st.KV.Leases[1] + st.KV.Leases[2] + st.KV.Moves
		for _, g := range st.Engines {
			held += g.Running + g.Waiting + g.SlotsUsed + int(g.CellsUsed)
		}
		if held == 0 {
			return nil
		}
		last = string(out)
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the idle node still holds something: %s", last)
}
