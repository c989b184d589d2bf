package bench

import (
	"fmt"
	"time"

	"ieg"
	"ieg/bench/report"
	"ieg/devices/engine/llama"
)

// ideal is what one core takes for a turn of a conversation, in the middle of
// the run: its new tokens in one pass, and its answer drawn with as many other
// streams as there are clients; nothing is copied, scheduled or sent. It is
// measured again after each turn, since the machine is not always as fast.
type ideal struct {
	raw                 *llama.RawKV
	past, fresh, output int
	text                []ieg.Token
	rows                []ieg.Slot
	fills, draws        []float64 // seconds
}

func (e *Env) newIdeal(f talkForm) (*ideal, error) {
	i := &ideal{fresh: f.uncached(1), output: f.output}
	i.past = (f.length(1)+f.length(f.turns-1))/2 + f.fresh - i.fresh
	arena, err := newArena(kvTokenBytes * ieg.BlockTokens)
	if err != nil {
		return nil, err
	}
	if i.raw, err = e.openRaw(arena, kvClients, i.past+i.fresh+64); err != nil {
		return nil, err
	}
	for k := range i.past + i.fresh {
		i.text = append(i.text, ieg.Token(1000+mix(uint64(k+11))%20000))
	}
	err = i.raw.Fill(0, i.text[:i.past])
	for s := range ieg.Slot(kvClients) {
		i.rows = append(i.rows, s)
		if s > 0 && err == nil {
			_, err = i.raw.Ops(ieg.KVOp{Kind: ieg.KVCopy, From: 0, To: s, N: int32(i.past)})
		}
	}
	if err != nil {
		i.raw.Close()
		return nil, err
	}
	return i, nil
}

// sample measures the parts of a turn.
func (i *ideal) sample() error {
	started := time.Now()
	if err := i.raw.Fill(0, i.text[i.past:]); err != nil {
		return err
	}
	i.fills = append(i.fills, time.Since(started).Seconds())
	if err := i.back(0); err != nil {
		return err
	}
	for k := range i.output {
		started := time.Now()
		if _, err := i.raw.Next(i.rows, i.text[k:k+len(i.rows)]); err != nil {
			return err
		}
		i.draws = append(i.draws, time.Since(started).Seconds())
	}
	return i.back(i.rows...)
}

// back takes what was computed out of rows again.
func (i *ideal) back(rows ...ieg.Slot) error {
	var ops []ieg.KVOp
	for _, s := range rows {
		ops = append(ops, ieg.KVOp{Kind: ieg.KVTrim, To: s, N: int32(i.past)})
	}
	_, err := i.raw.Ops(ops...)
	return err
}

// rate is all tokens of a turn a second.
func (i *ideal) rate() float64 {
	turn := mean(i.fills) + mean(i.draws)*float64(i.output)/float64(len(i.rows))
	return float64(i.past+i.fresh+i.output) / turn
}

func mean(v []float64) (m float64) {
	for _, x := range v {
		m += x / float64(len(v))
	}
	return m
}

// bound says whether the core is what bounds our rate. An ideal that either side
// exceeds, by more than the machine's own unrest, is none.
func (i *ideal) bound(row *report.Row, ours, theirs float64) {
	best := i.rate()
	row.Detail += fmt.Sprintf("; the raw loop alone, meanwhile, %.0f: ours is %.2f of it", best, ours/best)
	if !row.OK && best >= 0.95*max(ours, theirs) && ours >= boundShare*best {
		row.BoundBy = "compute: one core for prompts and draws (docs/adr/0028)"
	}
}
