package bench

import (
	"fmt"
	"slices"
	"time"

	"ieg"
	"ieg/bench/report"
)

// idealTurn is the least time that one core takes for a turn of a conversation
// of past tokens: its new tokens in one pass, and its answer drawn with as many
// other streams as there are clients; nothing is copied, scheduled or sent.
func (e *Env) idealTurn(past, fresh, output int) (float64, error) {
	arena, err := newArena(kvTokenBytes * ieg.BlockTokens)
	if err != nil {
		return 0, err
	}
	raw, err := e.openRaw(arena, kvClients, past+fresh+output+64)
	if err != nil {
		return 0, err
	}
	defer raw.Close()
	text := make([]ieg.Token, past+fresh)
	for i := range text {
		text[i] = ieg.Token(1000 + mix(uint64(i+11))%20000)
	}
	if err := raw.Fill(0, text[:past]); err != nil {
		return 0, err
	}
	var fills []float64
	for range 3 {
		started := time.Now()
		if err := raw.Fill(0, text[past:]); err != nil {
			return 0, err
		}
		fills = append(fills, time.Since(started).Seconds())
		if _, err := raw.Ops(ieg.KVOp{Kind: ieg.KVTrim, To: 0, N: int32(past)}); err != nil {
			return 0, err
		}
	}
	var rows []ieg.Slot
	for s := range ieg.Slot(kvClients) {
		rows = append(rows, s)
		if s > 0 {
			if _, err := raw.Ops(ieg.KVOp{Kind: ieg.KVCopy, From: 0, To: s, N: int32(past)}); err != nil {
				return 0, err
			}
		}
	}
	var draws []float64
	for i := range output {
		started := time.Now()
		if _, err := raw.Next(rows, text[i:i+len(rows)]); err != nil {
			return 0, err
		}
		draws = append(draws, time.Since(started).Seconds())
	}
	// What is disturbed is no ideal.
	return slices.Min(fills) + slices.Min(draws)*float64(output)/float64(len(rows)), nil
}

// boundRate says whether the core is what bounds our rate, in tokens a second of
// turns from the first on. An ideal that either side exceeds is none.
func (k *kvRun) boundRate(row *report.Row, b both, ours, theirs float64) error {
	if row.OK {
		return nil
	}
	_, asked, fresh := b.ours.prefilled(1, k.form.turns)
	turns := (k.form.turns - 1) * k.form.count
	prompt := asked / turns
	seconds, err := k.e.idealTurn(prompt-fresh/turns, fresh/turns, k.form.output)
	if err != nil {
		return err
	}
	ideal := float64(prompt+k.form.output) / seconds
	row.Detail += fmt.Sprintf("; the raw loop alone would make %.0f", ideal)
	if ideal >= max(ours, theirs) && ours >= 0.9*ideal {
		row.BoundBy = "compute: one core for prompts and draws (docs/adr/0028)"
	}
	return nil
}
