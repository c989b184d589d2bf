package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"ieg/bench/load"
	"ieg/bench/report"
)

// talks are conversations that take turns: each turn's prompt is all that was
// said so far, the answers included, and new tokens.
type talks struct {
	form    talkForm
	list    []*talk
	traces  [][]*load.Trace // by turn, then conversation
	clients int
}

// talkForm is the shape of conversations, in tokens.
type talkForm struct {
	count, turns         int
	start, fresh, output int
}

// length is the tokens of a conversation after so many turns.
func (f talkForm) length(turns int) int { return f.start + turns*(f.fresh+f.output) }

// uncached is what a turn's prompt has that was never computed: turn 0 is all
// new, later ones have their new tokens and the last one of the answer, which
// was drawn but not computed.
func (f talkForm) uncached(turn int) int {
	if turn == 0 {
		return f.start + f.fresh
	}
	return f.fresh + 1
}

// talk is one conversation.
type talk struct {
	mu    sync.Mutex // held by its turn, from when that is due: turns keep their order
	said  []int      // so far
	fresh []int      // the start and the new tokens of all turns
	used  int        // of them
}

func newTalk(f talkForm, fresh []int) *talk {
	return &talk{said: slices.Clone(fresh[:f.start]), fresh: fresh, used: f.start}
}

// newTalks makes conversations of seeded text.
func newTalks(ctx context.Context, c *load.Client, f talkForm, clients int, seed uint64) (*talks, error) {
	t := &talks{form: f, clients: clients}
	for i := range f.count {
		tokens, err := tokensOf(ctx, c, 90_000+1000*seed+uint64(i), f.start+f.turns*f.fresh)
		if err != nil {
			return nil, err
		}
		t.list = append(t.list, newTalk(f, tokens))
	}
	return t, nil
}

// again are the same conversations before they began.
func (t *talks) again() *talks {
	n := &talks{form: t.form, clients: t.clients}
	for _, k := range t.list {
		n.list = append(n.list, newTalk(t.form, k.fresh))
	}
	return n
}

// asker sends a prompt and returns the trace of an answer of so many tokens,
// with its IDs.
type asker func(ctx context.Context, prompt []int, output int) *load.Trace

// oursBy and theirsBy ask our server and llama-server.
func oursBy(c *load.Client) asker {
	return func(ctx context.Context, prompt []int, output int) *load.Trace {
		b := completion(prompt, output)
		b["return_token_ids"] = true
		return c.Stream(ctx, "/v1/completions", b)
	}
}

func theirsBy(c *load.Client) asker {
	return func(ctx context.Context, prompt []int, output int) *load.Trace {
		return c.Native(ctx, load.Body{"prompt": prompt, "n_predict": output, "temperature": 0, "ignore_eos": true, "cache_prompt": true})
	}
}

// run takes turns of the first count conversations, all of them one turn
// before the next one begins, with the clients of them under way at a time.
func (t *talks) run(ctx context.Context, turns, count int, ask asker) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	jobs := make(chan [2]int)
	var wg sync.WaitGroup
	for range t.clients {
		wg.Go(func() {
			for j := range jobs {
				tr := t.list[j[1]].turn(ctx, t.form, ask)
				t.list[j[1]].mu.Unlock()
				if t.traces[j[0]][j[1]] = tr; tr.Err != nil {
					stop()
				}
			}
		})
	}
	first := len(t.traces)
	for turn := first; turn < first+turns; turn++ {
		t.traces = append(t.traces, make([]*load.Trace, count))
	}
	for turn := first; turn < first+turns; turn++ {
		for i := range count {
			t.list[i].mu.Lock()
			jobs <- [2]int{turn, i}
		}
	}
	close(jobs)
	wg.Wait()
	for turn := first; turn < first+turns; turn++ {
		if err := failed(t.traces[turn]); err != nil {
			return fmt.Errorf("turn %d: %w", turn+1, err)
		}
	}
	return nil
}

// turn says the next new tokens and takes in the answer, by who holds mu.
func (k *talk) turn(ctx context.Context, f talkForm, ask asker) *load.Trace {
	if k.used+f.fresh > len(k.fresh) {
		return &load.Trace{Err: fmt.Errorf("the conversation has no turn left")}
	}
	k.said = append(k.said, k.fresh[k.used:k.used+f.fresh]...)
	k.used += f.fresh
	tr := ask(ctx, k.said, f.output)
	switch {
	case tr.Err != nil:
	case len(tr.IDs) != f.output:
		tr.Err = fmt.Errorf("the answer has %d tokens, not %d", len(tr.IDs), f.output)
	case tr.Usage.PromptTokens != len(k.said):
		tr.Err = fmt.Errorf("the server counts %d prompt tokens, not %d", tr.Usage.PromptTokens, len(k.said))
	}
	k.said = append(k.said, tr.IDs...)
	return tr
}

// rate is all tokens of turns [from, to) a second of the time in which they were
// taken.
func (t *talks) rate(from, to int) float64 {
	tokens, seconds := 0, 0.0
	for _, ts := range t.traces[from:to] {
		n, s := total(ts)
		tokens, seconds = tokens+n, seconds+s
	}
	return float64(tokens) / seconds
}

// median is the median time to first token of some turns, in seconds.
func (t *talks) median(from, to int) float64 {
	var all []float64
	for _, ts := range t.traces[from:to] {
		all = append(all, ttfts(ts)...)
	}
	return report.Percentile(all, 50)
}

// prefilled is the prompt tokens that were computed in turns [from, to), asked
// those of all prompts, and ideal those that were never computed before.
func (t *talks) prefilled(from, to int) (computed, asked, ideal int) {
	for turn := from; turn < to; turn++ {
		for _, tr := range t.traces[turn] {
			asked += tr.Usage.PromptTokens
			computed += tr.Usage.PromptTokens - tr.Usage.Details.Cached
			ideal += t.form.uncached(turn)
		}
	}
	return computed, asked, ideal
}
