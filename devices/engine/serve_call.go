package engine

import (
	"errors"
	"fmt"
	"sync"

	"ieg"
)

// question is a call and the type of its frame.
type question struct {
	typ byte
	call
}

// serveCalls answers the control plane until it is closed. That the node is
// gone is told by the step plane; here only broken frames count.
func (s *server) serveCalls() *sync.WaitGroup {
	work := make(chan question)
	wg := &sync.WaitGroup{}
	for range ctlWorkers {
		wg.Go(func() {
			for q := range work {
				if err := answer(&s.ctlOut, s.runner, &q); errors.Is(err, ieg.ErrProtocol) {
					s.cancel(err)
				}
			}
		})
	}
	wg.Go(func() {
		defer close(work)
		for {
			typ, body, err := s.ctlIn.next()
			var c call
			if err == nil {
				c, err = decodeCall(typ, body)
			}
			if err == nil {
				work <- question{typ, c}
				continue
			}
			if errors.Is(err, ieg.ErrProtocol) {
				s.cancel(err)
			}
			return
		}
	})
	return wg
}

// answer computes and sends the answer to one call.
func answer(out *frameWriter, r Runner, q *question) error {
	a := call{ID: q.ID}
	kind := byte(frameRefused)
	switch q.typ {
	case frameTokenize:
		for _, p := range q.Parts {
			var t []ieg.Token
			if t, a.Err = r.Tokenize(p.Text, p.Special); a.Err != nil {
				break
			}
			a.Tokens = append(a.Tokens, t...)
		}
		if a.Err == nil {
			kind = frameTokens
		}
	case frameDetokenize:
		if a.Text, a.Err = r.Detokenize(q.Tokens); a.Err == nil {
			kind = frameText
		}
	default:
		a.Err = fmt.Errorf("%w: frame of type %d is no question", ieg.ErrProtocol, q.typ)
	}
	if len(a.Text) > FrameBytes-64 {
		kind, a.Err = frameRefused, fmt.Errorf("%w: text of %d bytes", ieg.ErrContextLength, len(a.Text))
	}
	return out.send(kind, func(b []byte) []byte { return appendCall(b, kind, &a) })
}
