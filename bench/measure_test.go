package bench

import (
	"testing"
	"time"

	"ieg/bench/load"
)

func trace(prompt, cached int) *load.Trace {
	t := &load.Trace{}
	t.Usage.PromptTokens = prompt
	t.Usage.Details.Cached = cached
	return t
}

func TestExcessCountsTheCommonStartOnce(t *testing.T) {
	// 1,000 common tokens and 20 of each own; the first computes all but a few
	// that an older prompt left behind.
	ts := []*load.Trace{trace(1020, 24), trace(1020, 1000), trace(1020, 1000), trace(1020, 1000), trace(1020, 1000), trace(1020, 1000)}
	if got := excess(ts); got < 0.9 || got > 1 {
		t.Errorf("%.3f of the unique tokens, just below 1 expected", got)
	}
	ts[2] = trace(1020, 0)
	if got := excess(ts); got < 1.8 {
		t.Errorf("%.3f of the unique tokens where one chat computed all again", got)
	}
}

func TestDecodeRateCountsTheCommonWindow(t *testing.T) {
	start := time.Unix(100, 0)
	stream := func(first, gap time.Duration, n int) *load.Trace {
		tr := &load.Trace{Start: start}
		for i := range n {
			tr.Tokens = append(tr.Tokens, start.Add(first+time.Duration(i)*gap))
		}
		tr.End = tr.Tokens[n-1]
		tr.Usage.CompletionTokens = n
		return tr
	}
	got, err := decodeRate([]*load.Trace{stream(0, 10*time.Millisecond, 100), stream(200*time.Millisecond, 10*time.Millisecond, 100)})
	if err != nil || got < 198 || got > 202 {
		t.Errorf("%.1f tokens/s, %v; two streams of 100 tokens/s", got, err)
	}
}

func TestGapsBetweenAreThoseInside(t *testing.T) {
	at := time.Now()
	tr := &load.Trace{}
	for _, ms := range []int{0, 10, 30, 60, 100} {
		tr.Tokens = append(tr.Tokens, at.Add(time.Duration(ms)*time.Millisecond))
	}
	got := gapsBetween(tr, at.Add(10*time.Millisecond), at.Add(60*time.Millisecond))
	if len(got) != 2 || got[0] != 0.02 || got[1] != 0.03 {
		t.Errorf("gaps %v", got)
	}
}
