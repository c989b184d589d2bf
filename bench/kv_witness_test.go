package bench

import "testing"

func TestWitness(t *testing.T) {
	w := watchCopies()
	if err := pause(t.Context(), 4*witnessEach); err != nil {
		t.Fatal(err)
	}
	if w.stop() <= 0 {
		t.Error("no copy was seen")
	}
	if watchCopies().stop() != 0 {
		t.Error("a copy was seen before its time")
	}
}
