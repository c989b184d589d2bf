package sched

import (
	"time"

	"ieg"
)

// Pace says how a step is shared between running streams and prompts.
type Pace struct {
	// ITL is the inter-token target per class; 0 is none.
	ITL [ieg.NumClasses]time.Duration
	// PrefillShare is the part of a step's time that prompts may take while
	// streams run and their target can't be met anyhow (0 … 1).
	PrefillShare float64
	// PrefillShareMin is the part they get even where the target could be met
	// without them.
	PrefillShareMin float64
}

// DefaultPace holds the targets of the specification: real-time chat 20 ms.
func DefaultPace() Pace {
	return Pace{
		ITL:             [ieg.NumClasses]time.Duration{ieg.P0: 20 * time.Millisecond, ieg.P1: 50 * time.Millisecond},
		PrefillShare:    0.68,
		PrefillShareMin: 0.5,
	}
}

// Chunk is the number of prefill tokens that may join a step of d decodes,
// the most urgent of them of class c, at the measured speed: all that fits
// the target time between tokens, or, where decoding alone leaves too little
// of it, the prompts' share of a longer step.
func (p Pace) Chunk(s *Speed, d int, c ieg.Class, most int) int {
	if d == 0 {
		return most
	}
	decode := s.DecodeStep(d)
	room := time.Duration(p.PrefillShare / (1 - p.PrefillShare) * float64(decode))
	if itl := p.ITL[c]; itl > 0 && decode*5/4 <= itl {
		least := time.Duration(p.PrefillShareMin / (1 - p.PrefillShareMin) * float64(decode))
		room = max(itl-decode, least)
	} else if itl == 0 {
		room = GapMax
	}
	room = min(room, max(GapMax-decode, decode))
	n := int(room / max(s.PrefillToken(ChunkTokensMin), 1))
	// Larger chunks are cheaper per token: settle on the size's own price.
	for range 3 {
		n = int(room / max(s.PrefillToken(n), 1))
	}
	return min(max(n, ChunkTokensMin), most)
}
