package bench

import (
	"context"
	"fmt"
	"math"

	"ieg"
	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/devices/engine"
	"ieg/devices/engine/llama"
)

const rawLoop = "the C API through the same binding, arg max, its fastest layout"

// probeTokens is the prompt with which the variants are tried.
const probeTokens = 384

// variants of the raw loop that are tried.
var variants = []struct {
	layout ieg.Layout
	flash  bool
}{{ieg.Streams, false}, {ieg.Streams, true}, {ieg.Unified, true}, {ieg.Unified, false}}

// raw opens the raw loop in one variant.
func (e *Env) raw(v int, prompts [][]int, context int) (*llama.Raw, error) {
	spec := llama.RawSpec{
		Load:   engine.LoadSpec{Path: e.Model, LibDir: e.LibDir, Threads: e.Threads},
		Layout: variants[v].layout, Flash: variants[v].flash, Context: int32(context),
	}
	for _, p := range prompts {
		t := make([]ieg.Token, len(p))
		for i, x := range p {
			t[i] = ieg.Token(x)
		}
		spec.Prompts = append(spec.Prompts, t)
	}
	return llama.OpenRaw(spec)
}

// fastest opens the variant of the raw loop for which try is least.
func (e *Env) fastest(prompts [][]int, context int, try func(*llama.Raw) (float64, error)) (*llama.Raw, string, error) {
	best, at := math.Inf(1), 0
	for v := range variants {
		r, err := e.raw(v, prompts, context)
		if err != nil {
			return nil, "", err
		}
		took, err := try(r)
		r.Close()
		if err != nil {
			return nil, "", err
		}
		if took < best {
			best, at = took, v
		}
	}
	r, err := e.raw(at, prompts, context)
	return r, fmt.Sprintf("raw loop in %s, flash attention %v", variants[at].layout, variants[at].flash), err
}

// decode: tokens/s of all streams together.
func decode(ctx context.Context, e *Env) ([]report.Row, error) {
	var rows []report.Row
	for _, c := range []struct {
		name              string
		seqs, prompt, out int
	}{
		{"decode-1", 1, 16, 128}, {"decode-4", 4, 16, 64}, {"decode-8", 8, 16, 48}, {"decode-16", 16, 16, 40},
	} {
		row := report.Row{Name: c.name, Unit: "×", Bound: 0.95, Better: report.Higher, Against: rawLoop}
		rounds, detail, err := e.decodeRounds(ctx, e.short(), c.seqs, c.prompt, c.out)
		if err != nil {
			return rows, err
		}
		row.Measure(rounds)
		row.Detail = detail
		e.logf("      %s", row.Line())
		rows = append(rows, row)
	}
	return rows, nil
}

// decodeLong: the same with 2,000 tokens of context in each of 8 sequences.
func decodeLong(ctx context.Context, e *Env) ([]report.Row, error) {
	row := report.Row{Name: "decode-8-2000", Unit: "×", Bound: 0.95, Better: report.Higher, Against: rawLoop}
	rounds, detail, err := e.decodeRounds(ctx, e.Rounds+1, 8, 2000, 48)
	if err == nil {
		row.Measure(rounds)
		row.Detail = detail
	}
	return []report.Row{row}, err
}

// decodeRounds measures one size; the prompts are computed once on each side.
func (e *Env) decodeRounds(ctx context.Context, rounds, seqs, prompt, out int) (ratios []float64, detail string, err error) {
	size := prompt + out + 64
	srv, c, err := e.ours(ctx, shape{slots: seqs, context: size})
	if err != nil {
		return nil, "", err
	}
	defer srv.Stop()
	prompts := make([][]int, seqs)
	bodies := make([]load.Body, seqs)
	for i := range prompts {
		if prompts[i], err = tokensOf(ctx, c, uint64(100*seqs+prompt+i), prompt); err != nil {
			return nil, "", err
		}
		if prompt > probeTokens { // long prompts begin alike, to be there sooner
			copy(prompts[i], prompts[0][:prompt-probeTokens])
		}
		bodies[i] = completion(prompts[i], out)
	}
	probe := make([][]int, seqs)
	for i := range probe {
		probe[i] = prompts[i][max(0, prompt-probeTokens):]
	}
	tried, how, err := e.fastest(probe, size, func(r *llama.Raw) (float64, error) {
		if _, err := r.Prefill(); err != nil {
			return 0, err
		}
		took, err := r.Decode(12, nil)
		return took.Seconds(), err
	})
	if err != nil {
		return nil, "", err
	}
	tried.Close()
	raw, err := e.raw(variantOf(how), prompts, size)
	if err != nil {
		return nil, "", err
	}
	defer raw.Close()
	if _, err := raw.Prefill(); err != nil {
		return nil, "", err
	}
	if err := failed(c.All(ctx, "/v1/completions", bodies)); err != nil { // warm: prompts computed
		return nil, "", err
	}
	ratios, err = e.ratios(rounds, func(int) (float64, float64, error) {
		raw.Rewind()
		took, err := raw.Decode(out, nil)
		if err != nil {
			return 0, 0, err
		}
		theirs := float64(out*seqs) / took.Seconds()
		ours, err := decodeRate(c.All(ctx, "/v1/completions", bodies))
		detail = fmt.Sprintf("%.1f against %.1f tokens/s in the last round; %s", ours, theirs, how)
		return ours, theirs, err
	})
	return ratios, detail, err
}

// variantOf finds the variant by its description.
func variantOf(how string) int {
	for v := range variants {
		if how == fmt.Sprintf("raw loop in %s, flash attention %v", variants[v].layout, variants[v].flash) {
			return v
		}
	}
	return 0
}

// prefill: prompt tokens/s of one prompt.
func prefill(ctx context.Context, e *Env) ([]report.Row, error) {
	var rows []report.Row
	for _, n := range []int{512, 2048} {
		row := report.Row{Name: fmt.Sprintf("prefill-%d", n), Unit: "×", Bound: 0.95, Better: report.Higher, Against: rawLoop}
		srv, c, err := e.ours(ctx, shape{slots: 1, context: n + 64})
		if err != nil {
			return rows, err
		}
		rounds, detail, err := e.prefillRounds(ctx, c, n)
		srv.Stop()
		if err != nil {
			return rows, err
		}
		row.Measure(rounds)
		row.Detail = detail
		rows = append(rows, row)
	}
	return rows, nil
}

func (e *Env) prefillRounds(ctx context.Context, c *load.Client, n int) (ratios []float64, detail string, err error) {
	first, err := tokensOf(ctx, c, 1, n)
	if err != nil {
		return nil, "", err
	}
	try := func(r *llama.Raw) (float64, error) {
		took, err := r.Prefill()
		return took.Seconds(), err
	}
	probe, how, err := e.fastest([][]int{first[:min(n, probeTokens)]}, n+64, try)
	if err != nil {
		return nil, "", err
	}
	probe.Close()
	raw, err := e.raw(variantOf(how), [][]int{first}, n+64)
	if err != nil {
		return nil, "", err
	}
	defer raw.Close()
	round := uint64(0)
	measure := func(int) (float64, float64, error) {
		round++
		prompt, err := tokensOf(ctx, c, 1000+round, n) // never seen: nothing is cached
		if err != nil {
			return 0, 0, err
		}
		took, err := raw.Prefill()
		if err != nil {
			return 0, 0, err
		}
		t := c.Stream(ctx, "/v1/completions", completion(prompt, 1))
		if err := failed([]*load.Trace{t}); err != nil {
			return 0, 0, err
		}
		ours, theirs := float64(n)/t.TTFT().Seconds(), float64(n)/took.Seconds()
		detail = fmt.Sprintf("%.1f against %.1f tokens/s in the last round; %s", ours, theirs, how)
		return ours, theirs, nil
	}
	if _, _, err := measure(0); err != nil { // warm
		return nil, "", err
	}
	ratios, err = e.ratios(e.short(), measure)
	return ratios, detail, err
}
