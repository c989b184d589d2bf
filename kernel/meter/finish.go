package meter

import "ieg"

// finished ends a choice or a request.
func (m *Meter) finished(f *ieg.Finish) {
	r := m.requests[f.Request]
	if r == nil {
		return
	}
	if f.Choice != ieg.AllChoices {
		if int(f.Choice) < len(r.seqs) {
			m.endChoice(r.seqs[f.Choice])
		}
		return
	}
	for _, s := range r.seqs {
		m.endChoice(s)
	}
	delete(m.requests, f.Request)
	c := &m.classes[r.spec.Class]
	c.Ended++
	if len(r.seqs) == 0 {
		m.rejected[reasonOf(f.Err)]++
		return
	}
	if f.Reason == ieg.StopCancel {
		c.Cancelled++
	}
	if m.met(r, f) {
		c.Met++
	}
	if r.engine != nil {
		m.account(r, f)
	}
}

// endChoice ends a sequence, once.
func (m *Meter) endChoice(s *seq) {
	if m.seqs[s.id] == s {
		m.forget(s)
	}
}

// account adds an ended request to the series of its engine.
func (m *Meter) account(r *request, f *ieg.Finish) {
	e := r.engine
	e.Finished[f.Reason]++
	lat, t := &e.Latency[r.spec.Class], &f.Times
	if t.Admitted != 0 {
		lat.Queue.span(t.Admitted.Sub(t.Arrived))
	}
	if !f.Reason.Success() {
		return
	}
	end := m.end(r, f)
	lat.E2E.span(end.Sub(r.from))
	lat.Inference.span(end.Sub(t.Admitted))
	e.PromptSize.add(float64(len(r.spec.Prompt)))
	e.Choices.add(float64(r.spec.N))
	if r.spec.Kind == ieg.Embed {
		lat.Prefill.span(end.Sub(t.Admitted))
		return
	}
	if t.FirstToken != 0 {
		lat.Prefill.span(t.FirstToken.Sub(t.Admitted))
		lat.Decode.span(end.Sub(t.FirstToken))
	}
	if tpot, ok := r.tpot(f); ok {
		lat.TPOT.add(tpot)
	}
	longest := int32(0)
	for _, s := range r.seqs {
		longest = max(longest, s.tokens)
	}
	e.OutputSize.add(float64(f.Usage.Generated))
	e.OutputSizeMax.add(float64(longest))
	e.MaxTokensAsked.add(float64(r.spec.MaxTokens))
}

// end is when the request's last token came; of an embedding, now.
func (m *Meter) end(r *request, f *ieg.Finish) ieg.Time {
	if f.Times.Last != 0 {
		return f.Times.Last
	}
	return m.now
}

// tpot is the mean gap of the request's choices in seconds: their tokens come
// side by side, so that they share the span.
func (r *request) tpot(f *ieg.Finish) (seconds float64, ok bool) {
	each := float64(f.Usage.Generated) / float64(max(r.spec.N, 1))
	if each <= 1 || f.Times.FirstToken == 0 {
		return 0, false
	}
	return f.Times.Last.Sub(f.Times.FirstToken).Seconds() / (each - 1), true
}

// met tells whether the request succeeded within the SLO of its class.
func (m *Meter) met(r *request, f *ieg.Finish) bool {
	if !f.Reason.Success() {
		return false
	}
	slo := m.cfg.SLO[r.spec.Class]
	e2e := m.end(r, f).Sub(r.from)
	ttft := e2e
	if f.Times.FirstToken != 0 {
		ttft = f.Times.FirstToken.Sub(r.from)
	}
	if slo.TTFT > 0 && ttft > slo.TTFT || slo.E2E > 0 && e2e > slo.E2E {
		return false
	}
	tpot, ok := r.tpot(f)
	return slo.TPOT == 0 || !ok || tpot <= slo.TPOT.Seconds()
}
