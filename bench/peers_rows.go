package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"ieg/bench/load"
	"ieg/bench/report"
)

const llamaServer = "llama-server, same slots, threads and instruction set"

// chats: concurrent chats of unlike lengths, total tokens/s.
func chats(ctx context.Context, e *Env) ([]report.Row, error) {
	var rows []report.Row
	for _, n := range []int{8, 16} {
		p, err := e.pair(ctx, shape{slots: n, context: 1536})
		if err != nil {
			return rows, err
		}
		row := report.Row{Name: fmt.Sprintf("chats-%d", n), Unit: "×", Bound: 1, Better: report.Higher, Against: llamaServer}
		rounds, err := e.ratios(e.Rounds, func(round int) (float64, float64, error) {
			bodies := unlike(uint64(100*n+round), n+8)
			a, err := totalRate(p.ours.Clients(ctx, n, "/v1/chat/completions", bodies))
			if err != nil {
				return 0, 0, fmt.Errorf("ieg: %w", err)
			}
			b, err := totalRate(p.theirs.Clients(ctx, n, "/v1/chat/completions", bodies))
			if err != nil {
				return 0, 0, fmt.Errorf("llama-server: %w", err)
			}
			row.Detail = fmt.Sprintf("%.1f against %.1f tokens/s in the last round", a, b)
			return a, b, nil
		})
		p.stop()
		if err != nil {
			return rows, err
		}
		row.Measure(rounds)
		rows = append(rows, row)
	}
	return rows, nil
}

// unlike makes chats whose prompts have 20 to 300 words and whose outputs
// have 16 to 112 tokens.
func unlike(seed uint64, n int) []load.Body {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]load.Body, n)
	for i := range out {
		out[i] = chat("", prose(seed*1000+uint64(i), 20+r.IntN(280)), 16+r.IntN(96))
	}
	return out
}

// longPrompt: seven chats decode, then a prompt of 4,000 tokens arrives.
func longPrompt(ctx context.Context, e *Env) ([]report.Row, error) {
	p, err := e.pair(ctx, shape{slots: 8, context: 4608})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	rows := []report.Row{
		{Name: "long-prompt-gap", Unit: "×", Bound: 0.05, Better: report.Lower, Against: "llama-server's worst gap"},
		{Name: "long-prompt-ttft", Unit: "×", Bound: 1.25, Better: report.Lower, Against: "llama-server's TTFT of the prompt"},
		{Name: "long-prompt-rate", Unit: "×", Bound: 0.3, Better: report.Higher, Against: "the chats' own undisturbed rate"},
	}
	var gaps, ttft, rates, mine []float64
	for round := range e.Rounds {
		long, err := tokensOf(ctx, p.ours, 9000+uint64(round), 4000)
		if err != nil {
			return rows, err
		}
		a, err := intrude(ctx, p.ours, long, uint64(round))
		if err != nil {
			return rows, fmt.Errorf("ieg: %w", err)
		}
		b, err := intrude(ctx, p.theirs, long, uint64(round))
		if err != nil {
			return rows, fmt.Errorf("llama-server: %w", err)
		}
		gaps = append(gaps, a.gap.Seconds()/b.gap.Seconds())
		ttft = append(ttft, a.ttft.Seconds()/b.ttft.Seconds())
		rates = append(rates, a.rate)
		mine = append(mine, a.ttft.Seconds())
		detail := fmt.Sprintf("round %d: gap %.0f against %.0f ms, TTFT %.1f against %.1f s, rate %.2f against %.2f of undisturbed",
			round, a.gap.Seconds()*1e3, b.gap.Seconds()*1e3, a.ttft.Seconds(), b.ttft.Seconds(), a.rate, b.rate)
		e.logf("      %s", detail)
		rows[0].Detail = detail
	}
	rows[0].Measure(gaps)
	rows[1].Measure(ttft)
	rows[2].Measure(rates)
	return rows, e.boundLong(ctx, p.ours, &rows[1], mine)
}

// boundLong measures what bounds the prompt's TTFT: the raw loop's time for the
// prompt alone, and what is left of the engine's core beside the chats' 0.3.
func (e *Env) boundLong(ctx context.Context, c *load.Client, row *report.Row, mine []float64) error {
	long, err := tokensOf(ctx, c, 9000, 4000)
	if err != nil {
		return err
	}
	raw, err := e.raw(1, [][]int{long}, 4608) // flash attention: the fastest for long prompts
	if err != nil {
		return err
	}
	defer raw.Close()
	alone, err := raw.Prefill()
	if err != nil {
		return err
	}
	ideal := alone.Seconds() / (1 - 0.3)
	row.Detail = fmt.Sprintf("%.1f s; the prompt alone takes the raw loop %.1f s, beside 0.3 of the core for the chats %.1f s", report.Median(mine), alone.Seconds(), ideal)
	if !row.OK && ideal >= boundShare*report.Median(mine) {
		row.BoundBy = "compute: one core for prompt and chats (docs/adr/0016)"
	}
	return nil
}

type intrusion struct {
	gap, ttft time.Duration
	rate      float64 // of the undisturbed rate
}

// intrude lets seven chats run for a while, sends the long prompt, and ends
// the chats when it has been answered.
func intrude(ctx context.Context, c *load.Client, long []int, seed uint64) (intrusion, error) {
	chatCtx, stop := context.WithCancel(ctx)
	defer stop()
	bodies := make([]load.Body, 7)
	for i := range bodies {
		bodies[i] = chat("", prose(7000+10*seed+uint64(i), 30), 3500)
	}
	done := make(chan []*load.Trace)
	go func() { done <- c.All(chatCtx, "/v1/chat/completions", bodies) }()
	if err := pause(ctx, 10*time.Second); err != nil {
		return intrusion{}, err
	}
	start := time.Now()
	t := c.Stream(ctx, "/v1/completions", completion(long, 1))
	if t.Err == nil && len(t.Tokens) == 0 {
		t.Err = fmt.Errorf("the long prompt gave no output")
	}
	stop()
	chats := <-done
	if t.Err != nil {
		return intrusion{}, t.Err
	}
	return judge(chats, start, t.Tokens[0]), nil
}

// judge compares the five seconds before the prompt with its prefill.
func judge(chats []*load.Trace, start, first time.Time) intrusion {
	in := intrusion{ttft: first.Sub(start)}
	const calm = 5 * time.Second
	var before, during float64
	for _, t := range chats {
		in.gap = max(in.gap, t.MaxGap(start, first))
		if n := len(t.Tokens); n > 0 && t.Tokens[n-1].Before(first) {
			in.gap = max(in.gap, first.Sub(t.Tokens[n-1])) // nothing came to the end
		}
		before += tokensBetween(t, start.Add(-calm), start)
		during += tokensBetween(t, start, first)
	}
	in.rate = (during / in.ttft.Seconds()) / (before / calm.Seconds())
	return in
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// shared: 64 chats at once with the same system prompt of 1,000 tokens.
func shared(ctx context.Context, e *Env) ([]report.Row, error) {
	const n = 64
	s := shape{slots: n, context: 1280}
	our, ours, err := e.ours(ctx, s)
	if err != nil {
		return nil, err
	}
	defer our.Stop()
	their, theirs, err := e.peer(ctx, shape{})
	if err != nil {
		return nil, err
	}
	defer their.Stop()
	wide, wides, err := e.peer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer wide.Stop()
	rows := []report.Row{
		{Name: "shared-ttft", Unit: "×", Bound: 0.5, Better: report.Lower, Against: "llama-server, the better of its defaults and 64 slots"},
		{Name: "shared-prefill", Unit: "×", Bound: 1.02, Better: report.Lower, Against: "the set's unique tokens"},
	}
	var ratio, prefilled []float64
	for round := range e.Rounds {
		bodies := sharing(uint64(round), n)
		a := ours.All(ctx, "/v1/chat/completions", bodies)
		if err := failed(a); err != nil {
			return rows, fmt.Errorf("ieg: %w", err)
		}
		mine := report.Percentile(ttfts(a), 50)
		prefilled = append(prefilled, excess(a))
		best, err := halfTTFT(ctx, theirs, bodies, 0)
		if err != nil {
			return rows, fmt.Errorf("llama-server: %w", err)
		}
		// The wide variant is given up once half of its chats are later than
		// the default's median: it can't be the better one then.
		if w, err := halfTTFT(ctx, wides, bodies, best); err == nil && w < best {
			best = w
		}
		ratio = append(ratio, mine/best)
		rows[0].Detail = fmt.Sprintf("%.2f against %.2f s in the last round", mine, best)
		e.logf("      round %d: %.2f against %.2f s, %.3f of the unique tokens prefilled", round, mine, best, prefilled[round])
	}
	rows[0].Measure(ratio)
	rows[1].Measure(prefilled)
	return rows, nil
}

// sharing makes n chats with one system prompt of about 1,000 tokens.
func sharing(seed uint64, n int) []load.Body {
	system := prose(4000+seed, 860)
	out := make([]load.Body, n)
	for i := range out {
		out[i] = chat(system, prose(seed*100+uint64(i)+50_000, 12), 16)
	}
	return out
}

// excess is tokens prefilled ÷ unique tokens: the common start once, which is
// what the median chat did not compute, and of each chat what follows it.
func excess(ts []*load.Trace) float64 {
	var computed, unique float64
	var cached []float64
	for _, t := range ts {
		computed += float64(t.Usage.PromptTokens - t.Usage.Details.Cached)
		cached = append(cached, float64(t.Usage.Details.Cached))
	}
	common := report.Median(cached)
	for _, t := range ts {
		unique += float64(t.Usage.PromptTokens) - common
	}
	return computed / (unique + common)
}

// halfTTFT is the median time to first token in seconds. With a limit the
// chats are cancelled once the median is certain to exceed it.
func halfTTFT(ctx context.Context, c *load.Client, bodies []load.Body, limit float64) (float64, error) {
	run, cancel := context.WithCancel(ctx)
	defer cancel()
	if limit > 0 {
		run, cancel = context.WithTimeout(ctx, time.Duration(limit*1.05*float64(time.Second)))
		defer cancel()
	}
	ts := c.All(run, "/v1/chat/completions", bodies)
	late := make([]float64, 0, len(ts))
	for _, t := range ts {
		if len(t.Tokens) == 0 {
			if limit == 0 {
				return 0, t.Err
			}
			late = append(late, limit*2)
			continue
		}
		late = append(late, t.TTFT().Seconds())
	}
	return report.Percentile(late, 50), nil
}

// startUp: from exec to the first token, the model in the page cache.
func startUp(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "start", Unit: "×", Bound: 1.2, Better: report.Lower, Against: "llama-server from exec to first token"},
		{Name: "start-seconds", Unit: "s", Bound: 1.5, Better: report.Lower, Against: "the clock"},
	}
	var ratio, secs []float64
	body := chat("", "Hello", 1)
	for range max(e.Rounds, 5) {
		our, c, err := e.ours(ctx, shape{slots: 4, context: 2048})
		if err != nil {
			return rows, err
		}
		t := c.Stream(ctx, "/v1/chat/completions", body)
		our.Stop()
		their, d, err := e.peer(ctx, shape{slots: 4, context: 2048})
		if err != nil {
			return rows, err
		}
		u := d.Stream(ctx, "/v1/chat/completions", body)
		their.Stop()
		if err := failed([]*load.Trace{t, u}); err != nil {
			return rows, err
		}
		a, b := t.Tokens[0].Sub(our.Started).Seconds(), u.Tokens[0].Sub(their.Started).Seconds()
		ratio, secs = append(ratio, a/b), append(secs, a)
		rows[0].Detail = fmt.Sprintf("%.3f against %.3f s in the last round", a, b)
	}
	rows[0].Measure(ratio[1:])
	rows[1].Measure(secs[1:])
	return rows, nil
}

// short is the number of rounds where a round takes seconds: the machine's
// speed changes within less.
func (e *Env) short() int { return 2*e.Rounds + 1 }

// long is the number of rounds where a round takes minutes.
func (e *Env) long() int { return max(e.Rounds/Rounds, 1) }

// ratios runs the rounds and gives ours ÷ theirs.
func (e *Env) ratios(rounds int, f func(round int) (ours, theirs float64, err error)) ([]float64, error) {
	var out []float64
	for round := range rounds {
		a, b, err := f(round)
		if err != nil {
			return out, err
		}
		e.logf("      round %d: %.4g against %.4g", round, a, b)
		out = append(out, a/b)
	}
	return out, nil
}
