package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ieg"
	"ieg/api/admin"
	"ieg/bench/serve"
)

// kvOnce is the state of the tiers once nothing is held or under way there.
func kvOnce(t *testing.T, ctx context.Context, socket string) ieg.KVStatus {
	t.Helper()
	c := admin.NewClient(socket)
	var st ieg.Status
	for n := 0; n < 300; n++ {
		var err error
		if st, err = c.Status(ctx); err == nil && len(st.Requests) == 0 && st.KV.Leases == [3]int{} && st.KV.Moves+st.KV.Queued == 0 {
			return st.KV
		}
		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("the idle node holds leases %v, %d moves go and %d wait, %d requests", st.KV.Leases, st.KV.Moves, st.KV.Queued, len(st.Requests))
	return st.KV
}

// leaving asks for a few tokens and goes away when its patience ends.
func leaving(ctx context.Context, base, text string, tokens int, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(map[string]any{"messages": []message{{"user", text}}, "max_tokens": tokens})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Clients that leave, engines that die, an arena and a disk that are too small:
// afterwards nothing is held, and what was said before is found.
func TestTiersUnderMisuse(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	srv, socket := synthNode(t, ctx, "--model", "m=synth:stop=400", "--ctx", "4096", "--slots", "3", "--kv-host", "16MiB", "--kv-nvme", "64MiB")
	var wg sync.WaitGroup
	for client := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(client)))
			for turn := range 30 {
				text := longText(fmt.Sprintf("talk %d of client %d", turn%4, client), 300+50*turn)
				stays := rng.IntN(3) > 0
				patience := time.Duration(1+rng.IntN(120)) * time.Millisecond
				if stays {
					patience = time.Minute
				}
				if err := leaving(ctx, srv.Base, text, 1+rng.IntN(40), patience); err != nil && stays {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		select {
		case <-ctx.Done():
		case <-time.After(700 * time.Millisecond):
			// The engine, if it is not just being started again, and whatever
			// looks for devices.
			for _, pid := range serve.Engines(srv.PID()) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	wg.Wait()
	k := kvOnce(t, ctx, socket)
	if k.Counts.Saves == 0 || k.Counts.Loads == 0 || k.Counts.Stores == 0 || k.Evicted == 0 {
		t.Errorf("the tiers were hardly used: %+v", k)
	}
	if k.Counts.Corrupt != 0 {
		t.Errorf("%d blocks were wrong", k.Counts.Corrupt)
	}
}

// A conversation goes on where it was: after it lost its row, after a restart,
// and after kill -9 of the node, to the token.
func TestTiersOutliveTheNode(t *testing.T) {
	path, cache, model := realEngine(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	up := func() *serve.Server {
		srv, err := serve.Start(ctx, []string{path, "up", "--model", model, "--slots", "1", "--ctx", "1024", "--threads", "1", "--listen", "127.0.0.1:{port}",
			"--cache-dir", cache, "--data-dir", filepath.Join(dir, "d"), "--admin", socket, "--kv-host", "64MiB", "--kv-nvme", "256MiB"}, nil, "/health")
		if err != nil {
			t.Fatal(err)
		}
		return srv
	}
	text := func(i int) string { return fmt.Sprintf("Story %d.", i) + strings.Repeat(" The fox went on.", 40) }
	say := func(srv *serve.Server, i int, least float64, when string) {
		t.Helper()
		u, err := answerUsage(srv.Base, text(i), map[string]any{"temperature": 0})
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(u.Details.Cached) / float64(u.Prompt); got < least {
			t.Errorf("%s: %d of %d prompt tokens were found, at least %.2f of them should be", when, u.Details.Cached, u.Prompt, least)
		}
	}
	srv := up()
	for i := range 3 {
		say(srv, i, 0, "new")
	}
	kvOnce(t, ctx, socket)
	for i := range 3 {
		say(srv, i, 0.99, "another conversation had the row")
	}
	kvOnce(t, ctx, socket)
	srv.Stop()
	srv = up()
	for i := range 3 {
		say(srv, i, 0.99, "after a restart")
	}
	kvOnce(t, ctx, socket)
	srv.Kill()
	srv = up()
	defer srv.Stop()
	for i := range 3 {
		say(srv, i, 0.99, "after kill -9")
	}
	if k := kvOnce(t, ctx, socket); k.Counts.Hits[ieg.TierNVMe] == 0 || k.Counts.Corrupt != 0 {
		t.Errorf("tokens by tier %v, %d blocks wrong", k.Counts.Hits, k.Counts.Corrupt)
	}
}
