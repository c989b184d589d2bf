package kernel

import "ieg"

// life is the story of a request, told by its graph.
type life struct{}

type history struct{}

func (m *Machine) bear(r *request)                                   {}
func (m *Machine) entered(s *seq)                                    {}
func (m *Machine) started(s *seq)                                    {}
func (m *Machine) sampled(s *seq)                                    {}
func (m *Machine) settle(s *seq, reason ieg.StopReason, err error)   {}
func (m *Machine) relive(s *seq, why string)                         {}
func (m *Machine) bury(r *request, reason ieg.StopReason, err error) {}
func (m *Machine) delivered(id ieg.RequestID, span ieg.Span)         {}
func (m *Machine) Explain(id ieg.RequestID, name string) (ieg.Explain, bool) {
	return ieg.Explain{}, false
}
