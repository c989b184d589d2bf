package bench

import "testing"

func TestSteadyMachineDecodesAllSequences(t *testing.T) {
	s, err := newSteady(32, 256)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		s.step()
	}
	if err := s.m.Check(); err != nil {
		t.Fatal(err)
	}
	if got := len(s.done.Results); got != 32 {
		t.Fatalf("%d sequences in the last step, 32 expected", got)
	}
}
