package bench

import (
	"fmt"
	"time"

	"ieg/bench/load"
)

// failed is the first error of the traces.
func failed(ts []*load.Trace) error {
	for i, t := range ts {
		if t.Err != nil {
			return fmt.Errorf("request %d: %w", i, t.Err)
		}
		if len(t.Tokens) == 0 {
			return fmt.Errorf("request %d gave no output", i)
		}
	}
	return nil
}

// decodeRate is the tokens per second of all streams together, in the window
// where all of them decode: from the last first token to the first end.
func decodeRate(ts []*load.Trace) (float64, error) {
	if err := failed(ts); err != nil {
		return 0, err
	}
	from, to := ts[0].Tokens[0], ts[0].End
	for _, t := range ts {
		if t.Tokens[0].After(from) {
			from = t.Tokens[0]
		}
		if t.End.Before(to) {
			to = t.End
		}
	}
	span := to.Sub(from)
	if span <= 0 {
		return 0, fmt.Errorf("the streams did not overlap")
	}
	var sum float64
	for _, t := range ts {
		sum += tokensBetween(t, from, to)
	}
	return sum / span.Seconds(), nil
}

// tokensBetween counts the tokens of a stream in (from, to]; chunks without
// text are made up for by the usage that the server reports.
func tokensBetween(t *load.Trace, from, to time.Time) float64 {
	n := 0
	for _, at := range t.Tokens {
		if at.After(from) && !at.After(to) {
			n++
		}
	}
	if t.Usage.CompletionTokens == 0 {
		return float64(n)
	}
	return float64(n) * float64(t.Usage.CompletionTokens) / float64(len(t.Tokens))
}

// totalRate is prompt and generated tokens per second of wall time.
func totalRate(ts []*load.Trace) (float64, error) {
	if err := failed(ts); err != nil {
		return 0, err
	}
	tokens, seconds := total(ts)
	return float64(tokens) / seconds, nil
}

// total counts prompt and generated tokens, and the seconds from the first
// request's start to the last one's end.
func total(ts []*load.Trace) (tokens int, seconds float64) {
	from, to, sum := ts[0].Start, ts[0].End, 0
	for _, t := range ts {
		if t.Start.Before(from) {
			from = t.Start
		}
		if t.End.After(to) {
			to = t.End
		}
		sum += t.Usage.PromptTokens + t.Usage.CompletionTokens
	}
	return sum, to.Sub(from).Seconds()
}

// ttfts are the times to first token in seconds.
func ttfts(ts []*load.Trace) []float64 {
	out := make([]float64, len(ts))
	for i, t := range ts {
		out[i] = t.TTFT().Seconds()
	}
	return out
}
