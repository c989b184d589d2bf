package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"ieg"
	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
)

// The load of kv-itl: chats that decode, and short visits to conversations: the
// prompt ends in another token each time, which is all that is computed. Visits
// to one kind find their row on the device; its last block, 239 tokens, is
// then another one and is copied down. Visits to the other kind are to more
// conversations than there are rows left: a block and a tail are brought up each
// time. Without tiers there are only as many of these as rows, so that
// both sides compute the same tokens for the same number of visits; what
// differs is the copies.
const (
	itlChats   = 8
	itlStay    = 4 // conversations with a row of their own
	itlRows    = 4 // rows for the others
	itlGuests  = 8 // the others, with tiers
	itlContext = 1024

	itlChatTokens  = 260
	itlStayTokens  = 512 + 238
	itlGuestTokens = 256 + 44

	// itlStayEach and itlGuestEach are the pauses between the visits.
	itlStayEach  = 150 * time.Millisecond
	itlGuestEach = 400 * time.Millisecond
	itlWindow    = 9 * time.Second

	// itlDown and itlUp are the blocks a second that each round is to move.
	itlDown, itlUp = 4, 2
)

// kvITL: what copies do to the gaps between the tokens of running chats.
func kvITL(ctx context.Context, e *Env) ([]report.Row, error) {
	rows := []report.Row{
		{Name: "kv-itl-p99", Unit: "×", Bound: 1.25, Better: report.Lower, Against: "the same requests without tiers, all rows on the device"},
		{Name: "kv-itl-p50", Unit: "×", Bound: 1.05, Better: report.Lower, Against: "the same"},
		{Name: "kv-longest-copy", Unit: "ms", Bound: 2, Better: report.Lower, Against: "the clock: the longest operation of a step"},
	}
	var p99, p50, longest, ran, downs, ups []float64
	for round := range e.Rounds {
		a, err := e.itlSide(ctx, uint64(round), "on", itlGuests, "--kv-host", "1GiB", "--kv-nvme", "4GiB")
		if err != nil {
			return rows, fmt.Errorf("with tiers: %w", err)
		}
		b, err := e.itlSide(ctx, uint64(round), "off", itlRows, "--kv-host", "0")
		if err != nil {
			return rows, fmt.Errorf("without: %w", err)
		}
		p99 = append(p99, a.percentile(99)/b.percentile(99))
		p50 = append(p50, a.percentile(50)/b.percentile(50))
		longest, ran = append(longest, a.after.LongestCopy.Seconds()*1e3), append(ran, a.after.LongestRun.Seconds()*1e3)
		down, up := a.blocks()
		rows[0].Detail = fmt.Sprintf("%.1f against %.1f ms in the last round; %.1f blocks/s go down, %.1f come up, in %d and %d visits",
			a.percentile(99)*1e3, b.percentile(99)*1e3, down, up, a.visits, b.visits)
		rows[1].Detail = fmt.Sprintf("%.1f against %.1f ms in the last round", a.percentile(50)*1e3, b.percentile(50)*1e3)
		e.logf("      round %d: p99 %s; p50 %s; longest copy %.2f ms, %.2f ms of processor time", round, rows[0].Detail, rows[1].Detail, longest[round], ran[round])
		downs, ups = append(downs, down), append(ups, up)
	}
	if down, up := slices.Min(downs), slices.Min(ups); down < itlDown || up < itlUp {
		rows[0].Detail += fmt.Sprintf("; too few blocks in a round, %.1f and %.1f: %d and %d are wanted", down, up, itlDown, itlUp)
	}
	rows[0].Measure(p99)
	rows[1].Measure(p50)
	// The longest is that of all rounds, as is what it is judged by.
	rows[2].Measure([]float64{slices.Max(longest)})
	rows[2].Low, rows[2].Rounds = slices.Min(longest), len(longest)
	work := slices.Max(ran)
	rows[2].Detail = fmt.Sprintf("no copy took more than %.2f ms of processor time", work)
	if !rows[2].OK && work <= rows[2].Bound {
		rows[2].BoundBy = "the host's scheduler, which puts the thread off (docs/adr/0030)"
	}
	return rows, nil
}

// itlSide is a round on a server of its own: the chats of an earlier round would
// have taken the conversations' rows.
func (e *Env) itlSide(ctx context.Context, seed uint64, name string, guests int, flags ...string) (*itlRound, error) {
	s, err := e.itlServer(ctx, fmt.Sprintf("%s-%d", name, seed), guests, flags...)
	if err != nil {
		return nil, err
	}
	defer s.srv.Stop()
	return s.round(ctx, seed)
}

// itlServer is a server with its conversations.
type itlServer struct {
	srv    *serve.Server
	c      *load.Client
	socket string
	stay   []*visited
	guests []*visited
}

// visited is a conversation, which ends in another token each time.
type visited struct {
	mu   sync.Mutex
	said []int
	end  int
}

// itlServer starts a server and computes the conversations.
func (e *Env) itlServer(ctx context.Context, name string, guests int, flags ...string) (*itlServer, error) {
	dir := filepath.Join(e.dir, "kv-itl-"+name)
	s := &itlServer{socket: dir + ".sock"}
	var err error
	s.srv, s.c, err = e.ours(ctx, shape{slots: itlChats + itlStay + itlRows, context: itlContext, extra: flags, data: dir, admin: s.socket})
	if err != nil {
		return nil, err
	}
	make := func(seed uint64, n, tokens int) (list []*visited) {
		for i := range n {
			text, failed := tokensOf(ctx, s.c, seed+uint64(i), tokens)
			if err == nil {
				err = failed
			}
			list = append(list, &visited{said: text})
		}
		return list
	}
	s.stay, s.guests = make(120_000, itlStay, itlStayTokens), make(121_000, guests, itlGuestTokens)
	for _, list := range [][]*visited{s.guests, s.stay} {
		for _, v := range list {
			if err == nil {
				err = v.visit(ctx, s.c)
			}
		}
	}
	if err != nil {
		s.srv.Stop()
		return nil, err
	}
	return s, nil
}

// visit asks for one token.
func (v *visited) visit(ctx context.Context, c *load.Client) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.end++
	return c.Stream(ctx, "/v1/completions", completion(append(slices.Clip(v.said), 2000+v.end), 1)).Err
}

// itlRound is what one round gave.
type itlRound struct {
	gaps          []float64 // seconds
	before, after ieg.KVCounts
	took          time.Duration
	visits        int
}

func (r *itlRound) percentile(p float64) float64 { return report.Percentile(r.gaps, p) }

// blocks are those a second that went down and came up, as full ones.
func (r *itlRound) blocks() (down, up float64) {
	of := func(a, b int64) float64 { return float64(a-b) / diskBlock / r.took.Seconds() }
	return of(r.after.SavedBytes, r.before.SavedBytes), of(r.after.LoadedBytes, r.before.LoadedBytes)
}

// round lets the chats run, visits the conversations, and measures the gaps
// meanwhile.
func (s *itlServer) round(ctx context.Context, seed uint64) (*itlRound, error) {
	chats, stop := context.WithCancel(ctx)
	defer stop()
	var bodies []load.Body
	for i := range itlChats {
		text, err := tokensOf(ctx, s.c, 122_000+100*seed+uint64(i), itlChatTokens)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, completion(text, itlContext-itlChatTokens-1))
	}
	done, err := s.start(chats, bodies)
	if err != nil {
		return nil, err
	}
	r := &itlRound{}
	err = s.visits(ctx, r)
	from, to := time.Now().Add(-r.took), time.Now()
	stop()
	traces := <-done
	if err != nil {
		return nil, err
	}
	for _, t := range traces {
		n := len(r.gaps)
		if r.gaps = append(r.gaps, gapsBetween(t, from, to)...); len(r.gaps) == n {
			return nil, fmt.Errorf("a chat gave nothing: %w", t.Err)
		}
	}
	return r, nil
}

// start streams the chats and waits until each has given a few tokens.
func (s *itlServer) start(ctx context.Context, bodies []load.Body) (chan []*load.Trace, error) {
	given := make(chan struct{}, len(bodies))
	traces := make([]*load.Trace, len(bodies))
	done := make(chan []*load.Trace, 1)
	var wg sync.WaitGroup
	for i, b := range bodies {
		c, n := load.New(s.c.Base), 0
		c.OnToken = func() {
			if n++; n == 3 {
				given <- struct{}{}
			}
		}
		wg.Go(func() { traces[i] = c.Stream(ctx, "/v1/completions", b) })
	}
	go func() {
		wg.Wait()
		done <- traces
	}()
	for range bodies {
		select {
		case <-given:
		case t := <-done:
			return nil, fmt.Errorf("the chats ended before they all had begun: %w", failed(t))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return done, nil
}

// visits makes the visits of a window.
func (s *itlServer) visits(ctx context.Context, r *itlRound) error {
	st, err := serve.Status(ctx, s.socket)
	if err != nil {
		return err
	}
	r.before = st.KV.Counts
	began := time.Now()
	run, stop := context.WithTimeout(ctx, itlWindow)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, kind := range []struct {
		list []*visited
		each time.Duration
	}{{s.stay, itlStayEach}, {s.guests, itlGuestEach}} {
		wg.Go(func() {
			for i := 0; pause(run, kind.each) == nil; i++ {
				wg.Go(func() {
					failed := kind.list[i%len(kind.list)].visit(ctx, s.c)
					mu.Lock()
					defer mu.Unlock()
					r.visits++
					if err == nil {
						err = failed
					}
				})
			}
		})
	}
	wg.Wait()
	r.took = time.Since(began)
	st, failed := serve.Status(ctx, s.socket)
	if err == nil {
		err = failed
	}
	r.after = st.KV.Counts
	return err
}

// gapsBetween are the gaps between a stream's tokens in a window, in seconds.
func gapsBetween(t *load.Trace, from, to time.Time) (out []float64) {
	for i := 1; i < len(t.Tokens); i++ {
		if a, b := t.Tokens[i-1], t.Tokens[i]; !a.Before(from) && !b.After(to) {
			out = append(out, b.Sub(a).Seconds())
		}
	}
	return out
}
