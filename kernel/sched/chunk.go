package sched

import (
	"time"

	"ieg"
	"ieg/kernel/cost"
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
		PrefillShare:    0.69,
		PrefillShareMin: 0.5,
	}
}

// Load is what a step would hold without further prompt tokens.
type Load struct {
	cost.Step
	Class ieg.Class // the most urgent class among its decodes
	Past  int32     // context of the prompt that would be computed first
	// UBatch is the size of a pass inside a step: fewer tokens cost as much.
	UBatch int
}

// Chunk is the number of prompt tokens that may join the decodes of a step at
// the measured speed: all that fits the target time between tokens, or, where
// decoding alone leaves too little of it, the prompts' share of a longer step.
// Without decodes it is as many full passes as fit GapMax, one at least, so
// that whoever arrives meanwhile does not wait for long.
func (p Pace) Chunk(s cost.Speed, l Load, most int) int {
	if l.Seqs == 0 {
		return p.passes(s, l, most)
	}
	decode := Seconds(s.Step(l.Step))
	room := Share(p.PrefillShare, decode)
	if itl := p.ITL[l.Class]; itl > 0 && decode*5/4 <= itl {
		room = max(itl-decode, Share(p.PrefillShareMin, decode))
	} else if itl == 0 {
		room = GapMax
	}
	room = min(room, max(GapMax-decode, decode))
	// A pass over n tokens behind past ones sees n·past + n²/2 pairs; the
	// square is small beside the rest.
	token := s.Prefill + s.Attended*float64(l.Past)
	if token <= 0 {
		return most
	}
	n := int(room.Seconds() / token)
	return min(max(n, ChunkTokensMin), most)
}

// passes is the chunk of a step without decodes.
func (p Pace) passes(s cost.Speed, l Load, most int) int {
	token := s.Prefill + s.Attended*float64(l.Past)
	if token <= 0 || l.UBatch <= 0 {
		return most
	}
	n := int(min(max(GapMax.Seconds()-s.Base, 0)/token, float64(most)))
	return min(max(n/l.UBatch, 1)*l.UBatch, most)
}

// promptWeight is the streams that a prompt under way counts for: a batch of
// few streams is the dearest way to draw tokens, and it grows only when
// prompts end.
const promptWeight = 8

// StreamShare is the part of the time that streams get while prompts are
// computed in steps of their own: their part by number, a prompt counting for
// several streams, and at most what PrefillShare leaves.
func (p Pace) StreamShare(streams, prompts int) float64 {
	if streams == 0 {
		return 0
	}
	return min(1-p.PrefillShare, float64(streams)/float64(streams+promptWeight*prompts))
}

// Share is the time that makes up part f of a step whose rest takes d.
func Share(f float64, d time.Duration) time.Duration {
	return time.Duration(f / (1 - f) * float64(d))
}

// Seconds turns a prediction into a span.
func Seconds(s float64) time.Duration { return time.Duration(s * 1e9) }
