package kernel

import (
	"testing"
	"time"

	"ieg"
)

// A chat from arrival to its story.
func TestOneChat(t *testing.T) {
	m, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	now := ieg.Time(0)
	apply := func(ev Event) *Ready {
		now += 1000
		m.Apply(now, ev)
		if err := m.Check(); err != nil {
			t.Fatalf("after %T: %v", ev, err)
		}
		return m.Ready()
	}
	apply(DeviceUp{Spec: ieg.ResourceSpec{ID: "cpu"}, Free: 1 << 30})
	if r := apply(LoadEngine{Engine: 1, Model: "m", Device: "cpu", Need: 1}); len(r.Loads) != 1 {
		t.Fatal("the engine is not loaded")
	}
	apply(EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: 1, Device: "cpu", Layout: ieg.Streams, Slots: 2, SlotTokens: 64, Cells: 128, StepTokens: 32, Prefixes: true}})
	r := apply(Arrived{Request: &ieg.Request{ID: 7, Name: "chat-7", Model: "m", N: 1, Prompt: []ieg.Token{1, 2, 3}, MaxTokens: 2, Deadline: ieg.Never}})
	if len(r.Batches) != 1 || len(r.Batches[0].New) != 1 || !r.Batches[0].Work[0].Sample {
		t.Fatalf("no first step: %+v", r)
	}
	b := *r.Batches[0]
	seq := b.New[0].Seq
	done := &ieg.StepDone{Engine: 1, Epoch: 1, Step: b.Step, Last: true, Took: time.Millisecond,
		Results: []ieg.SeqResult{{Seq: seq, Computed: 3, Sampled: true, Token: 9, Text: []byte("a")}}}
	r = apply(StepDone{Done: done})
	if len(r.Emits) != 1 || len(r.Batches) != 1 || r.Batches[0].Work[0].Start != 3 {
		t.Fatalf("no second step: %+v", r)
	}
	done = &ieg.StepDone{Engine: 1, Epoch: 1, Step: r.Batches[0].Step, Last: true, Took: time.Millisecond,
		Results: []ieg.SeqResult{{Seq: seq, Computed: 1, Sampled: true, Token: 10, Stop: ieg.StopLength}}}
	r = apply(StepDone{Done: done})
	if len(r.Finishes) != 2 || r.Finishes[1].Choice != ieg.AllChoices || r.Finishes[1].Usage.Generated != 2 {
		t.Fatalf("not finished: %+v", r.Finishes)
	}
	apply(Delivered{Request: 7, Span: ieg.Span{Start: now, End: now + 5}})
	x, ok := m.Explain(0, "chat-7")
	if !ok || len(x.Nodes) != 4 {
		t.Fatalf("no story: %+v", x)
	}
	for _, n := range x.Nodes {
		if n.State != ieg.NodeCompleted {
			t.Errorf("%s is %v", n.Label, n.State)
		}
	}
}
