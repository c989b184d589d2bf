package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ieg"
	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
)

// The day: so many recorded sessions of so many turns, in a hundredth of their
// length and of a day's time; the device has room for half of them, the host
// for a few more.
const (
	daySessions = 8
	dayTurns    = 20
	dayLengths  = 100
	dayTimes    = 144
	daySlots    = 4
	dayContext  = 2048
	dayHost     = "64MiB"
	dayTick     = 5 * time.Second
	dayTimeout  = 30 * time.Minute
	dayWidth    = 60 // of the picture
)

// kvDay plays recorded sessions on our server and prints where the tokens of
// their prompts came from, beside what a cache without bounds would have.
func kvDay(ctx context.Context, e *Env, trace string, w io.Writer) error {
	list, err := openSessions(trace, daySessions, dayTurns, (dayContext-256)*dayLengths)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, dayTimeout)
	defer stop()
	dir := filepath.Join(e.dir, "kv-day")
	srv, c, err := e.ours(ctx, shape{slots: daySlots, context: dayContext, data: dir, admin: dir + ".sock",
		extra: []string{"--kv-host", dayHost, "--kv-nvme", "8GiB"}})
	if err != nil {
		return err
	}
	defer srv.Stop()
	d := &day{c: c, socket: dir + ".sock"}
	for i := range list {
		d.sessions = append(d.sessions, list[i].scale(uint64(i+1), dayLengths, dayTimes))
	}
	if err := d.play(ctx); err != nil {
		return err
	}
	d.print(w)
	return nil
}

// day is a day under way.
type day struct {
	c        *load.Client
	socket   string
	sessions []scaled

	mu      sync.Mutex
	traces  []*load.Trace
	began   time.Time
	took    time.Duration
	samples []ieg.Status
}

// play lets all sessions take their turns.
func (d *day) play(ctx context.Context) error {
	d.began = time.Now()
	run, stop := context.WithCancel(ctx)
	defer stop()
	var players, sampler sync.WaitGroup
	var failure error
	sampler.Go(func() { d.sample(run) })
	for i := range d.sessions {
		players.Go(func() {
			if err := d.session(run, &d.sessions[i]); err != nil {
				d.mu.Lock()
				failure = errors.Join(failure, fmt.Errorf("session %d: %w", i+1, err))
				d.mu.Unlock()
				stop()
			}
		})
	}
	players.Wait()
	d.took = time.Since(d.began)
	stop()
	sampler.Wait()
	if failure != nil {
		return failure
	}
	st, err := serve.Status(ctx, d.socket)
	d.samples = append(d.samples, st)
	return err
}

func (d *day) session(ctx context.Context, s *scaled) error {
	for turn, prompt := range s.prompts {
		if err := pause(ctx, s.thinks[turn]); err != nil {
			return err
		}
		t := d.c.Stream(ctx, "/v1/completions", completion(prompt, s.outputs[turn]))
		if t.Err != nil {
			return fmt.Errorf("turn %d: %w", turn+1, t.Err)
		}
		d.mu.Lock()
		d.traces = append(d.traces, t)
		d.mu.Unlock()
	}
	return nil
}

// sample reads the status from time to time.
func (d *day) sample(ctx context.Context) {
	for pause(ctx, dayTick) == nil {
		if st, err := serve.Status(ctx, d.socket); err == nil {
			d.samples = append(d.samples, st)
		}
	}
}

// print writes the table and the picture.
func (d *day) print(w io.Writer) {
	var asked, bound int64
	for _, s := range d.sessions {
		for i, p := range s.prompts {
			asked += int64(len(p))
			bound += int64(s.common[i])
		}
	}
	last := d.samples[len(d.samples)-1]
	hits := last.KV.Counts.Hits
	all := hits[ieg.TierDevice] + hits[ieg.TierHost] + hits[ieg.TierNVMe]
	fmt.Fprintf(w, "%d sessions × %d turns, lengths ÷ %d, think times ÷ %d, in %.0f s; TTFT p50 %.3f s, p90 %.3f s\n\n",
		len(d.sessions), dayTurns, dayLengths, dayTimes, d.took.Seconds(), report.Percentile(ttfts(d.traces), 50), report.Percentile(ttfts(d.traces), 90))
	row := func(name string, n int64) {
		share := float64(n) / float64(asked)
		fmt.Fprintf(w, "%-16s %8d  %5.1f %%  %s\n", name, n, 100*share, strings.Repeat("█", int(share*dayWidth+0.5)))
	}
	row("prompt tokens", asked)
	row("infinite cache", bound)
	row("hits", all)
	row("  device", hits[ieg.TierDevice])
	row("  host", hits[ieg.TierHost])
	row("  nvme", hits[ieg.TierNVMe])
	row("computed", asked-all)
	if bound > 0 {
		fmt.Fprintf(w, "\nhits are %.1f %% of the infinite cache's\n", 100*float64(all)/float64(bound))
	}
	c := &last.KV.Counts
	fmt.Fprintf(w, "not there: %d saves and %d stores refused, %d fetches failed, %d blocks evicted without a copy; left there: %d fetches and %d loads declined, %d fetches late\n",
		c.SavesRefused, c.StoresRefused, c.FetchesFailed, last.KV.Lost, c.FetchesDeclined, c.BringsDeclined, c.FetchesLate)
	fmt.Fprintf(w, "\nby time: # device, + host, - nvme, . computed; %v a line\n", dayTick)
	var before ieg.Status
	for _, st := range d.samples {
		fmt.Fprintf(w, "%s\n", picture(before, st))
		before = st
	}
}

// picture is a line of where the prompt tokens between two states came from.
func picture(a, b ieg.Status) string {
	parts := [ieg.NumTiers + 1]int64{}
	rest := b.Totals.PromptTokens - a.Totals.PromptTokens
	for t := range ieg.NumTiers {
		parts[t] = b.KV.Counts.Hits[t] - a.KV.Counts.Hits[t]
		rest -= parts[t]
	}
	parts[ieg.NumTiers] = max(rest, 0)
	var sum int64
	for _, n := range parts {
		sum += n
	}
	var line strings.Builder
	drawn, before := int64(0), int64(0)
	for i, n := range parts {
		before += n
		for ; drawn < before*dayWidth/max(sum, 1); drawn++ {
			line.WriteByte("#+-."[i])
		}
	}
	return fmt.Sprintf("%6d %s", sum, line.String())
}
