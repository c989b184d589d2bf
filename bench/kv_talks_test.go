package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"ieg/bench/load"
)

// echo answers with the length of the prompt, and claims to have cached what
// it could have.
func echo(_ context.Context, prompt []int, output int) *load.Trace {
	tr := &load.Trace{Tokens: []time.Time{time.Now()}, Usage: load.Usage{PromptTokens: len(prompt), CompletionTokens: output}}
	for range output {
		tr.IDs = append(tr.IDs, -len(prompt))
	}
	if len(prompt) > 12 {
		tr.Usage.Details.Cached = len(prompt) - 4
	}
	return tr
}

func someTalks(f talkForm) *talks {
	t := &talks{form: f, clients: 2}
	for i := range f.count {
		var tokens []int
		for k := range f.start + f.turns*f.fresh {
			tokens = append(tokens, 1000*(i+1)+k)
		}
		t.list = append(t.list, newTalk(f, tokens))
	}
	return t
}

func TestTalksExtendTheirHistory(t *testing.T) {
	f := talkForm{count: 5, turns: 3, start: 9, fresh: 3, output: 2}
	ts := someTalks(f)
	var mu sync.Mutex
	var prompts [][]int
	ask := func(ctx context.Context, p []int, n int) *load.Trace {
		mu.Lock()
		defer mu.Unlock()
		prompts = append(prompts, slices.Clone(p))
		return echo(ctx, p, n)
	}
	for _, turns := range []int{2, 1} {
		if err := ts.run(t.Context(), turns, f.count, ask); err != nil {
			t.Fatal(err)
		}
	}
	if len(prompts) != 15 || len(ts.traces) != 3 {
		t.Fatalf("%d prompts in %d turns", len(prompts), len(ts.traces))
	}
	for i, k := range ts.list {
		if len(k.said) != f.length(3) || k.used != len(k.fresh) {
			t.Errorf("conversation %d has %d tokens, %d left", i, len(k.said), len(k.fresh)-k.used)
		}
		if want := []int{1000*(i+1) + 12, 1000*(i+1) + 13, 1000*(i+1) + 14}; !slices.Equal(k.said[14:17], want) || k.said[12] != -12 {
			t.Errorf("conversation %d: %v", i, k.said)
		}
		for _, p := range prompts {
			if p[0] == k.said[0] && !slices.Equal(p, k.said[:len(p)]) {
				t.Errorf("prompt %v is no start of %v", p, k.said)
			}
		}
	}
	computed, asked, ideal := ts.prefilled(1, 3)
	if computed != 5*2*4 || ideal != computed || asked != 5*(17+22) {
		t.Errorf("%d of %d computed, %d ideal", computed, asked, ideal)
	}
	if err := ts.run(t.Context(), 1, 1, echo); err == nil {
		t.Error("a turn too many is taken")
	}
	n := ts.again()
	if err := n.run(t.Context(), 1, 2, echo); err != nil || len(n.traces[0]) != 2 || n.list[1].used == n.list[2].used {
		t.Errorf("%d of the first two conversations took a turn, %v", len(n.traces[0]), err)
	}
	if n := ts.again(); !slices.Equal(n.list[1].said, someTalks(f).list[1].said) {
		t.Errorf("again: %v", n.list[1].said)
	}
}

func TestTalksRefuseOtherAnswers(t *testing.T) {
	f := talkForm{count: 1, turns: 1, start: 2, fresh: 1, output: 2}
	for name, spoil := range map[string]func(*load.Trace){
		"short":   func(tr *load.Trace) { tr.IDs = tr.IDs[:1] },
		"another": func(tr *load.Trace) { tr.Usage.PromptTokens++ },
		"error":   func(tr *load.Trace) { tr.Err = fmt.Errorf("gone") },
	} {
		ask := func(ctx context.Context, p []int, n int) *load.Trace {
			tr := echo(ctx, p, n)
			spoil(tr)
			return tr
		}
		if err := someTalks(f).run(t.Context(), 1, 1, ask); err == nil {
			t.Errorf("an answer is taken that is %s", name)
		}
	}
}
