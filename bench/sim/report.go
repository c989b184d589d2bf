package sim

import (
	"fmt"
	"io"
	"slices"
	"time"

	"ieg"
)

// Report is what a run was like. Times are virtual unless said otherwise.
type Report struct {
	Requests  int `json:"requests"`
	Finished  int `json:"finished"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Rejected  int `json:"rejected"`

	Facts       int   `json:"facts"`
	Steps       int   `json:"steps"`
	Repeats     int   `json:"granted_repeats"`
	Preemptions int64 `json:"preemptions"`
	Deaths      int   `json:"engine_deaths"`
	Kills       int   `json:"engine_kills"`
	Flips       int   `json:"flipped_bits"`

	KV ieg.KVCounts `json:"kv"`

	PromptTokens    int64   `json:"prompt_tokens"`
	CachedTokens    int64   `json:"cached_tokens"`
	PrefilledTokens int64   `json:"prefilled_tokens"`
	GeneratedTokens int64   `json:"generated_tokens"`
	HitRatio        float64 `json:"prefix_hit_ratio"`

	TTFT Percentiles `json:"ttft_s"`
	ITL  Percentiles `json:"itl_s"`
	E2E  Percentiles `json:"e2e_s"`

	TokensPerSecond float64 `json:"generated_tokens_per_s"`
	// Utilisation is the part of the time in which a device computed.
	Utilisation float64 `json:"utilisation"`
	Simulated   float64 `json:"simulated_s"`
	Wall        float64 `json:"wall_s"`
	// Speed is simulated seconds per second.
	Speed float64 `json:"simulated_per_wall"`

	ttft, itl, e2e []time.Duration
	busy           time.Duration
}

// Percentiles of a span, in seconds.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func percentiles(d []time.Duration) Percentiles {
	if len(d) == 0 {
		return Percentiles{}
	}
	slices.Sort(d)
	at := func(p float64) float64 { return d[min(int(p*float64(len(d))), len(d)-1)].Seconds() }
	return Percentiles{at(0.50), at(0.90), at(0.99), d[len(d)-1].Seconds()}
}

// observe counts one report of a step.
func (r *Report) observe(c *child, d *ieg.StepDone) {
	r.busy += d.Took
	if d.Repeat > 0 {
		r.Repeats++
	}
	if d.Outcome != ieg.StepOK {
		return
	}
	for _, w := range c.batch.Work {
		if w.N > 1 || !w.Sample {
			r.PrefilledTokens += int64(w.N)
		}
	}
}

// token takes the times of a token that reached its client.
func (r *Report) token(w *World, c *client, ch *choice) {
	if len(ch.tokens) == 1 {
		r.ttft = append(r.ttft, w.now.Sub(c.arrived))
	} else {
		r.itl = append(r.itl, w.now.Sub(ch.last))
	}
	ch.last = w.now
}

// request takes the end of a request.
func (r *Report) request(w *World, c *client) {
	switch {
	case c.reason.Success():
		r.Finished++
		r.e2e = append(r.e2e, w.now.Sub(c.arrived))
	case c.reason == ieg.StopCancel:
		r.Cancelled++
	case c.times.Admitted == 0 && c.got == 0:
		r.Rejected++
	default:
		r.Failed++
	}
}

func (r *Report) finish(w *World, wall time.Duration) {
	t := w.m.Status().Totals
	r.Requests, r.Facts, r.Preemptions = len(w.order), w.facts, t.Preemptions
	r.PromptTokens, r.CachedTokens, r.GeneratedTokens = t.PromptTokens, t.CachedTokens, t.GeneratedTokens
	if t.PromptTokens > 0 {
		r.HitRatio = float64(t.CachedTokens) / float64(t.PromptTokens)
	}
	r.TTFT, r.ITL, r.E2E = percentiles(r.ttft), percentiles(r.itl), percentiles(r.e2e)
	r.Simulated, r.Wall = w.at().Seconds(), wall.Seconds()
	devices := map[string]bool{}
	for i := range w.cfg.Engines {
		devices[w.cfg.Engines[i].Device] = true
	}
	if r.Simulated > 0 {
		r.TokensPerSecond = float64(r.GeneratedTokens) / r.Simulated
		r.Utilisation = r.busy.Seconds() / r.Simulated / float64(len(devices))
	}
	if r.Wall > 0 {
		r.Speed = r.Simulated / r.Wall
	}
}

// Print writes the report for people.
func (r *Report) Print(w io.Writer) {
	fmt.Fprintf(w, "requests     %d: %d finished, %d failed, %d cancelled, %d rejected\n", r.Requests, r.Finished, r.Failed, r.Cancelled, r.Rejected)
	fmt.Fprintf(w, "tokens       %d generated (%.1f/s), %d of prompts, %d of them cached (%.1f %%), %d prefilled\n",
		r.GeneratedTokens, r.TokensPerSecond, r.PromptTokens, r.CachedTokens, 100*r.HitRatio, r.PrefilledTokens)
	fmt.Fprintf(w, "steps        %d and %d granted repeats, %d preemptions, %d engine deaths, %d kills\n", r.Steps, r.Repeats, r.Preemptions, r.Deaths, r.Kills)
	for _, row := range []struct {
		name string
		p    Percentiles
	}{{"TTFT", r.TTFT}, {"ITL", r.ITL}, {"E2E", r.E2E}} {
		fmt.Fprintf(w, "%-12s p50 %.4f s, p90 %.4f s, p99 %.4f s, max %.4f s\n", row.name, row.p.P50, row.p.P90, row.p.P99, row.p.Max)
	}
	fmt.Fprintf(w, "utilisation  %.1f %%\n", 100*r.Utilisation)
	fmt.Fprintf(w, "simulated    %.1f s in %.2f s (%.0f×), %d facts\n", r.Simulated, r.Wall, r.Speed, r.Facts)
}
