package kernel

import (
	"ieg"
	"ieg/kernel/graph"
)

// tale is what is kept of a finished request.
type tale struct {
	ID     ieg.RequestID
	Name   string
	Model  string
	Class  ieg.Class
	Finish string
	Err    string
	Times  ieg.RequestTimes
	Usage  ieg.Usage
	ITLMax ieg.Time
	Graph  *graph.Graph
	Tiers  [ieg.NumTiers]int32
	Notes  []string
}

// history is a ring of the last HistoryRequests tales.
type history struct {
	ring []tale
	next int
}

func (h *history) add(t tale) {
	if len(h.ring) < HistoryRequests {
		h.ring = append(h.ring, t)
		return
	}
	h.ring[h.next] = t
	h.next = (h.next + 1) % HistoryRequests
}

// find looks for a number or a name, the newest first.
func (h *history) find(id ieg.RequestID, name string) *tale {
	for i := range h.ring {
		t := &h.ring[(h.next+len(h.ring)-1-i)%len(h.ring)]
		if id != 0 && t.ID == id || name != "" && t.Name == name {
			return t
		}
	}
	return nil
}

// Explain tells the story of a request by its number or the name that its
// client got: a live one, or one of the last HistoryRequests that ended.
func (m *Machine) Explain(id ieg.RequestID, name string) (ieg.Explain, bool) {
	for _, r := range m.order {
		if r.spec.ID == id || name != "" && r.spec.Name == name {
			t := tale{ID: r.spec.ID, Name: r.spec.Name, Model: r.spec.Model, Class: r.spec.Class,
				Times: r.times, Usage: r.usage, ITLMax: r.itlMax, Graph: r.graph, Tiers: r.tiers, Notes: r.notes}
			x := t.explain(m.now)
			x.State = r.state()
			return x, true
		}
	}
	if t := m.history.find(id, name); t != nil {
		x := t.explain(m.now)
		x.State = "finished"
		return x, true
	}
	return ieg.Explain{}, false
}

func (t *tale) explain(now ieg.Time) ieg.Explain {
	x := ieg.Explain{
		ID: t.ID, Name: t.Name, Model: t.Model, Class: t.Class, Finish: t.Finish, Error: t.Err,
		Prompt: t.Usage.Prompt, Cached: t.Usage.Cached, Output: t.Usage.Generated,
		Nodes: t.Graph.Explain(now), Limits: t.Graph.LimitsText(), Journal: t.Graph.History(),
		Tiers: t.Tiers, KV: t.Notes,
	}
	if t.Times.Admitted != 0 {
		x.Queue = t.Times.Admitted.Sub(t.Times.Arrived)
	}
	if t.Times.FirstToken != 0 {
		x.TTFT = t.Times.FirstToken.Sub(t.Times.Received)
		x.E2E = t.Times.Last.Sub(t.Times.Received)
		x.ITLMax = t.ITLMax.Sub(0)
	}
	return x
}
