package sim

import (
	"fmt"

	"ieg"
	"ieg/devices/engine/synth"
)

// text is what an engine says to one sequence when nobody else is there.
type text struct {
	tokens []ieg.Token
	text   []byte
	reason ieg.StopReason
}

// reference runs one choice of a request on a fresh engine of its model, alone
// and in one piece.
func (w *World) reference(r *ieg.Request, choice int) (text, error) {
	var t text
	if r.Kind == ieg.Embed {
		return t, nil
	}
	var e *Engine
	for i := range w.cfg.Engines {
		if w.cfg.Engines[i].Spec.Name == r.Model {
			e = &w.cfg.Engines[i]
			break
		}
	}
	if e == nil {
		return t, nil
	}
	spec := e.Spec
	spec.Slots = 1
	if s := spec.Synth; s != nil {
		alone := *s
		alone.Cells = 0
		spec.Synth = &alone
	}
	run, err := synth.New(spec)
	if err != nil {
		return t, err
	}
	if len(r.Prompt) >= int(run.Info().SlotTokens) {
		return t, nil
	}
	sampling := r.Sampling
	sampling.Choice = int32(choice)
	b := ieg.Batch{New: []ieg.SeqStart{{Seq: 1, Tokens: r.Prompt, Prompt: int32(len(r.Prompt)), MaxTokens: r.MaxTokens, Sampling: sampling}}}
	at, known := int32(0), int32(len(r.Prompt))
	for t.reason == ieg.NotStopped {
		n := min(known-at, run.Info().StepTokens)
		b.Work = []ieg.Work{{Seq: 1, Start: at, N: n, Sample: at+n == known}}
		var d ieg.StepDone
		if run.Step(&b, &d); d.Outcome != ieg.StepOK {
			return t, fmt.Errorf("the engine refuses a lone sequence: %s", d.Err)
		}
		b.New = nil
		at += n
		res := &d.Results[0]
		t.text = append(t.text, res.Text...)
		if res.Sampled {
			known++
			t.tokens = append(t.tokens, res.Token)
		}
		t.reason = res.Stop
	}
	return t, nil
}
