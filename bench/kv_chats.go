package bench

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"ieg/bench/load"
	"ieg/bench/report"
	"ieg/bench/serve"
)

// The conversations of the KV rows: device memory for a quarter of them. Among
// all groups fewer turns are taken, and fewer of them are on the disk.
var (
	kvTalks      = talkForm{count: 16, turns: 6, start: 600, fresh: 100, output: 24}
	kvTalksShort = talkForm{count: 16, turns: 3, start: 600, fresh: 100, output: 24}
	kvDiskShort  = talkForm{count: 10, turns: 4, start: 600, fresh: 100, output: 24}
	kvTalksTiny  = talkForm{count: 6, turns: 4, start: 300, fresh: 40, output: 8}
)

const (
	kvSlots   = 4
	kvClients = 4
	// kvDiskTurns are taken with host memory for kvSlots conversations, before
	// the restart: the peer computes each prompt whole, so few of them, and
	// after the first one by kvDiskPeer conversations only. After the restart
	// ours takes two: the second one is warm, as the one before is.
	kvDiskTurns = 2
	kvDiskPeer  = 8
)

// kvShape has room for one conversation in each slot.
func kvShape(f talkForm) shape {
	return shape{slots: kvSlots, context: (f.length(f.turns)/64 + 2) * 64}
}

// talkForms are the forms of the conversations in host memory and on the disk.
func (e *Env) talkForms() (inHost, onDisk talkForm) {
	switch {
	case e.Tiny:
		return kvTalksTiny, kvTalksTiny
	case e.Whole:
		return kvTalks, kvTalks
	}
	return kvTalksShort, kvDiskShort
}

// kvChats: conversations that the device has no room for.
func kvChats(ctx context.Context, e *Env) ([]report.Row, error) {
	k := &kvRun{e: e, rows: []report.Row{
		{Name: "kv-host-ttft", Unit: "×", Bound: 0.8, Better: report.Lower, Against: "llama-server, same slots, --cache-ram for all: TTFT p50 from turn 2 on"},
		{Name: "kv-host-rate", Unit: "×", Bound: 1.2, Better: report.Higher, Against: "the same: all tokens/s"},
		{Name: "kv-prefilled", Unit: "×", Bound: 1.02, Better: report.Lower, Against: "tokens that were never computed before, whole run"},
		{Name: "kv-nvme-ttft", Unit: "×", Bound: 1. / 3, Better: report.Lower, Against: "llama-server with the same host memory: TTFT p50 from turn 2 on"},
		{Name: "kv-restart-ttft", Unit: "×", Bound: 0.2, Better: report.Lower, Against: "llama-server after a restart: TTFT p50 of the next turn"},
		{Name: "kv-restart-warm", Unit: "×", Bound: 1.5, Better: report.Lower, Against: "ours, the turns before and after that one"},
	}}
	inHost, onDisk := e.talkForms()
	for round := range e.long() {
		k.form = inHost
		if err := k.inHost(ctx, uint64(2*round)); err != nil {
			return k.rows, err
		}
		k.form = onDisk
		if err := k.onDisk(ctx, uint64(2*round+1)); err != nil {
			return k.rows, err
		}
	}
	return k.rows, nil
}

// kvRun is the conversations' group under way.
type kvRun struct {
	e    *Env
	form talkForm
	rows []report.Row
	got  [6]series
}

// series is what the rounds gave for a row: the value of each round, and the
// parts that show its spread.
type series struct{ whole, parts []float64 }

// add measures a row anew: the median over the rounds, the extremes over the
// parts of all.
func (k *kvRun) add(row int, whole float64, parts ...float64) {
	s := &k.got[row]
	s.whole, s.parts = append(s.whole, whole), append(s.parts, parts...)
	r := &k.rows[row]
	r.Measure(s.whole)
	for _, p := range s.parts {
		r.Low, r.High = math.Min(r.Low, p), math.Max(r.High, p)
	}
}

// both are one conversation set on our server and on the peer's.
type both struct{ ours, theirs *talks }

// ratios are ours ÷ theirs by turn, and of turns [from, to) together.
func (b both) ratios(from, to int) (whole float64, turns []float64) {
	for turn := from; turn < to; turn++ {
		turns = append(turns, b.ours.median(turn, turn+1)/b.theirs.median(turn, turn+1))
	}
	return b.ours.median(from, to) / b.theirs.median(from, to), turns
}

// inHost: host memory for all conversations on both sides, which take each turn
// one after the other.
func (k *kvRun) inHost(ctx context.Context, seed uint64) error {
	e, s := k.e, kvShape(k.form)
	s.data = filepath.Join(e.dir, "kv-host-"+strconv.FormatUint(seed, 10))
	s.extra = []string{"--kv-host", "1GiB", "--kv-nvme", "0"}
	our, c, err := e.ours(ctx, s)
	if err != nil {
		return err
	}
	defer our.Stop()
	their, d, err := e.peer(ctx, s, "--cache-ram", "8192")
	if err != nil {
		return err
	}
	defer their.Stop()
	best, err := e.newIdeal(k.form)
	if err != nil {
		return err
	}
	defer best.raw.Close()
	b := both{}
	if b.ours, err = newTalks(ctx, c, k.form, kvClients, seed); err != nil {
		return err
	}
	b.theirs = b.ours.again()
	for turn := range k.form.turns {
		if err := b.turn(ctx, turn%2 == 1, oursBy(c), theirsBy(d)); err != nil {
			return err
		}
		if err := best.sample(); err != nil {
			return err
		}
	}
	k.hostRows(b, best)
	return nil
}

// turn lets both sides take a turn of all conversations.
func (b both) turn(ctx context.Context, theirsFirst bool, ours, theirs asker) error {
	sides := []struct {
		name string
		t    *talks
		ask  asker
	}{{"ieg", b.ours, ours}, {"llama-server", b.theirs, theirs}}
	if theirsFirst {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		if err := s.t.run(ctx, 1, s.t.form.count, s.ask); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// hostRows fills the rows of conversations in host memory.
func (k *kvRun) hostRows(b both, best *ideal) {
	turns := k.form.turns
	whole, parts := b.ratios(1, turns)
	k.add(0, whole, parts...)
	k.rows[0].Detail = b.detail(1, turns)
	parts = nil
	for turn := 1; turn < turns; turn++ {
		parts = append(parts, b.ours.rate(turn, turn+1)/b.theirs.rate(turn, turn+1))
	}
	x, y := b.ours.rate(1, turns), b.theirs.rate(1, turns)
	k.add(1, x/y, parts...)
	k.rows[1].Detail = fmt.Sprintf("%.0f against %.0f tokens/s", x, y)
	best.bound(&k.rows[1], x, y)
	computed, asked, unique := b.ours.prefilled(0, turns)
	k.add(2, float64(computed)/float64(unique))
	k.rows[2].Detail = fmt.Sprintf("%d of %d prompt tokens computed, %d were never computed before", computed, asked, unique)
	k.e.logf("      host memory for all: %s; %s", k.rows[0].Detail, k.rows[1].Detail)
}

// detail tells the times and what was computed.
func (b both) detail(from, to int) string {
	o, asked, ideal := b.ours.prefilled(from, to)
	t, theirAsked, _ := b.theirs.prefilled(from, to)
	return fmt.Sprintf("%.3f against %.3f s; computed of the prompts: ideal %.1f %%, ours %.1f %%, theirs %.1f %%",
		b.ours.median(from, to), b.theirs.median(from, to), percent(ideal, asked), percent(o, asked), percent(t, theirAsked))
}

func percent(a, b int) float64 { return 100 * float64(a) / float64(b) }

// onDisk: host memory for as many conversations as there are slots; then both
// servers are restarted.
func (k *kvRun) onDisk(ctx context.Context, seed uint64) error {
	e, s := k.e, kvShape(k.form)
	s.admin = filepath.Join(e.dir, "kv-disk.sock")
	mib := kvSlots * k.form.length(k.form.turns) * kvTokenBytes >> 20
	s.data = filepath.Join(e.dir, "kv-disk-"+strconv.FormatUint(seed, 10))
	s.extra = []string{"--kv-host", strconv.Itoa(mib) + "MiB", "--kv-nvme", "8GiB"}
	b := both{}
	oursUp := func() (*serve.Server, *load.Client, error) { return e.ours(ctx, s) }
	all := k.form.count
	if err := restarted(ctx, oursUp, []int{all, all, all, all}, func(c *load.Client) (t *talks, a asker, err error) {
		if b.ours == nil {
			b.ours, err = newTalks(ctx, c, k.form, kvClients, seed)
		}
		return b.ours, oursBy(c), err
	}, func() { e.logCounts(ctx, s.admin) }); err != nil {
		return fmt.Errorf("ieg: %w", err)
	}
	b.theirs = b.ours.again()
	theirsUp := func() (*serve.Server, *load.Client, error) {
		return e.peer(ctx, s, "--cache-ram", strconv.Itoa(mib))
	}
	few := min(all, kvDiskPeer)
	if err := restarted(ctx, theirsUp, []int{all, few, few}, func(c *load.Client) (*talks, asker, error) {
		return b.theirs, theirsBy(c), nil
	}, func() {}); err != nil {
		return fmt.Errorf("llama-server: %w", err)
	}
	whole, parts := b.ratios(1, kvDiskTurns)
	k.add(3, whole, parts...)
	k.rows[3].Detail = b.detail(1, kvDiskTurns)
	whole, _ = b.ratios(kvDiskTurns, kvDiskTurns+1)
	k.add(4, whole)
	k.rows[4].Detail = b.detail(kvDiskTurns, kvDiskTurns+1)
	before, cold, after := b.ours.median(kvDiskTurns-1, kvDiskTurns), b.ours.median(kvDiskTurns, kvDiskTurns+1), b.ours.median(kvDiskTurns+1, kvDiskTurns+2)
	k.add(5, cold/((before+after)/2), cold/before, cold/after)
	k.rows[5].Detail = fmt.Sprintf("%.3f s against %.3f and %.3f s", cold, before, after)
	e.logf("      host memory for %d: %s\n      after a restart: %s", kvSlots, k.rows[3].Detail, k.rows[4].Detail)
	return nil
}

// restarted takes kvDiskTurns turns, starts the server anew and takes the
// others, of as many conversations as counts tells for each turn.
func restarted(ctx context.Context, up func() (*serve.Server, *load.Client, error), counts []int, with func(*load.Client) (*talks, asker, error), after func()) error {
	for _, part := range [][]int{counts[:kvDiskTurns], counts[kvDiskTurns:]} {
		srv, c, err := up()
		if err != nil {
			return err
		}
		t, ask, err := with(c)
		for _, count := range part {
			if err == nil {
				err = t.run(ctx, 1, count, ask)
			}
		}
		after()
		srv.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// logCounts prints what our node did below the device.
func (e *Env) logCounts(ctx context.Context, socket string) {
	st, err := serve.Status(ctx, socket)
	if err != nil {
		e.logf("      status: %v", err)
		return
	}
	n := st.KV.Counts
	e.logf("      hits by tier %v; %d saves, %d loads, %d stores, %d fetches (%d failed, %d declined, %d late), %d bringings declined, %d saves refused",
		n.Hits, n.Saves, n.Loads, n.Stores, n.Fetches, n.FetchesFailed, n.FetchesDeclined, n.FetchesLate, n.BringsDeclined, n.SavesRefused)
}
