package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ieg"
	"ieg/kernel"
)

// story runs a script: commands are facts, the output is what the machine wants
// done. Prompts are spelled in letters; the n-th token that a sequence is given
// by the make-believe engine is the n-th capital letter.
type story struct {
	t     *testing.T
	m     *kernel.Machine
	now   ieg.Time
	epoch map[ieg.EngineID]ieg.Epoch
	steps map[ieg.EngineID]*flying
	drawn map[ieg.SeqID]int
	below below // see golden_tiers_test.go
	out   strings.Builder
}

// flying is a copy of the batch that an engine computes.
type flying struct {
	batch  ieg.Batch
	repeat int32
}

// args are the arguments that commands take.
type args struct {
	engine, id, n, max, slots, ctx, cells, step, ubatch, stop, wait, took, deadline, need, free, grant, waiting int
	model, device, class, prompt, tenant, layout, reason, kind                                                  string
	final, force                                                                                                bool
	tierArgs
}

func (s *story) args(d *datadriven.TestData) (a args) {
	a = args{engine: 1, n: 1, max: 4, slots: 2, ctx: 64, step: 32, took: 10, need: 1, free: 1000, grant: -1, model: "m", device: "cpu", class: "P0", layout: "streams"}
	for name, into := range map[string]any{
		"engine": &a.engine, "id": &a.id, "n": &a.n, "max": &a.max, "slots": &a.slots, "ctx": &a.ctx, "cells": &a.cells, "step": &a.step,
		"ubatch": &a.ubatch, "stop": &a.stop, "ms": &a.wait, "took": &a.took, "deadline": &a.deadline, "need": &a.need, "free": &a.free,
		"grant": &a.grant, "waiting": &a.waiting, "model": &a.model, "device": &a.device, "class": &a.class, "prompt": &a.prompt,
		"tenant": &a.tenant, "layout": &a.layout, "reason": &a.reason, "kind": &a.kind,
	} {
		d.MaybeScanArgs(s.t, name, into)
	}
	a.final, a.force = d.HasArg("final"), d.HasArg("force")
	a.tierArgs.scan(s.t, d)
	if a.cells == 0 {
		a.cells = a.slots * a.ctx
	}
	return a
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	a := s.args(d)
	id, req := ieg.EngineID(a.engine), ieg.RequestID(a.id)
	switch d.Cmd {
	case "new":
		s.reset(a)
	case "device":
		s.apply(kernel.DeviceUp{Spec: ieg.ResourceSpec{ID: a.device, Type: "CPU"}, Free: int64(a.free) * 1e6})
	case "load":
		s.apply(kernel.LoadEngine{Engine: id, Model: a.model, Device: a.device, Need: int64(a.need) * 1e6})
	case "unload":
		s.apply(kernel.UnloadEngine{Engine: id, Force: a.force})
	case "up":
		s.up(id, a)
	case "lost":
		delete(s.steps, id)
		s.apply(kernel.EngineLost{Engine: id, Epoch: s.epoch[id], Reason: a.reason, Final: a.final})
	case "arrive":
		s.arrive(req, a)
	case "done", "repeat", "failed", "aborted":
		s.report(d.Cmd, id, a)
	case "cancel":
		s.apply(kernel.Cancel{Request: req, Reason: ieg.StopCancel})
	case "pause":
		s.apply(kernel.Pause{Request: req})
	case "resume":
		s.apply(kernel.Resume{Request: req})
	case "drain":
		s.apply(kernel.Drain{})
	case "wait":
		s.now = s.now.Add(time.Duration(a.wait) * time.Millisecond)
	case "tick":
		s.tick()
	case "status":
		s.status()
	default:
		if !s.tiers(d.Cmd, a) {
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
		}
	}
	if err := s.m.Check(); err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	if s.out.Len() == 0 {
		return "nothing\n"
	}
	return s.out.String()
}

func (s *story) reset(a args) {
	cfg := kernel.DefaultConfig()
	if a.grant >= 0 {
		cfg.GrantSteps = int32(a.grant)
	}
	if a.waiting > 0 {
		cfg.WaitingMax = a.waiting
	}
	m, err := kernel.New(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	*s = story{t: s.t, m: m, epoch: map[ieg.EngineID]ieg.Epoch{}, steps: map[ieg.EngineID]*flying{}, drawn: map[ieg.SeqID]int{}}
}

func (s *story) up(id ieg.EngineID, a args) {
	s.epoch[id]++
	info := ieg.EngineInfo{ID: id, Epoch: s.epoch[id], Device: a.device, Slots: int32(a.slots), SlotTokens: int32(a.ctx), Cells: int32(a.cells),
		StepTokens: int32(a.step), UBatch: int32(max(a.ubatch, a.step)), Prefixes: true}
	info.Model = ieg.ModelInfo{Name: a.model, Generative: true, Embedding: true}
	if err := info.Layout.UnmarshalText([]byte(a.layout)); err != nil {
		s.t.Fatal(err)
	}
	info.KVToken, info.KVName, info.KVPieces = int64(a.kv), "kv", !a.blocks
	s.apply(kernel.EngineReady{Info: info})
}

func (s *story) arrive(id ieg.RequestID, a args) {
	r := &ieg.Request{ID: id, Model: a.model, N: a.n, MaxTokens: int32(a.max), Tenant: a.tenant, Deadline: ieg.Never, Received: s.now}
	r.Class = ieg.Class(a.class[1] - '0')
	if a.kind == "embed" {
		r.Kind = ieg.Embed
	}
	for _, c := range []byte(a.prompt) {
		r.Prompt = append(r.Prompt, ieg.Token(c))
	}
	s.words(r, a)
	if a.deadline > 0 {
		r.Deadline = s.now.Add(time.Duration(a.deadline) * time.Millisecond)
	}
	s.apply(kernel.Arrived{Request: r})
}

// report is what the engine says of the step in flight: that it is done, or a
// repeat of it that is not the last. stop names the sequence that ends.
func (s *story) report(cmd string, id ieg.EngineID, a args) {
	for other := range s.steps {
		if s.steps[id] == nil && len(s.steps) == 1 {
			id = other // the only one that computes
		}
	}
	f := s.steps[id]
	if f == nil {
		s.t.Fatalf("engine %d has no step in flight", id)
	}
	took := time.Duration(a.took) * time.Millisecond
	s.now = s.now.Add(took)
	d := &ieg.StepDone{Engine: id, Epoch: f.batch.Epoch, Step: f.batch.Step, Repeat: f.repeat, Took: took, Last: cmd != "repeat"}
	switch cmd {
	case "failed":
		d.Outcome, d.Err = ieg.StepFailed, "no"
	case "aborted":
		d.Outcome = ieg.StepAborted
	default:
		for i := range f.batch.Work {
			d.Results = append(d.Results, s.result(&f.batch.Work[i], a))
		}
	}
	s.copies(d, f, a)
	if f.repeat++; d.Last {
		delete(s.steps, id)
	}
	s.apply(kernel.StepDone{Done: d})
}

func (s *story) result(w *ieg.Work, a args) ieg.SeqResult {
	r := ieg.SeqResult{Seq: w.Seq, Computed: w.N, Sampled: w.Sample}
	if w.Sample {
		r.Token = 'A' + ieg.Token(s.drawn[w.Seq]%26)
		s.drawn[w.Seq]++
	} else if a.kind == "embed" {
		r.Vector, r.Stop = []float32{1}, ieg.StopEnd
	}
	if int(w.Seq) == a.stop {
		r.Stop = ieg.StopEnd
	}
	w.Start, w.N = w.Start+w.N, 1
	return r
}

// tick applies a Tick if the machine's deadline has come.
func (s *story) tick() {
	if d := s.m.Deadline(); d > s.now {
		if d == ieg.Never {
			fmt.Fprintln(&s.out, "no deadline")
		} else {
			fmt.Fprintf(&s.out, "the deadline is %s away\n", d.Sub(s.now).Round(time.Millisecond))
		}
		return
	}
	s.apply(kernel.Tick{})
}

func (s *story) apply(ev kernel.Event) {
	s.m.Apply(s.now, ev)
	s.show(s.m.Ready())
}

func (s *story) show(r *kernel.Ready) {
	w := &s.out
	for _, a := range r.Admits {
		fmt.Fprintf(w, "sequence %d speaks for request %d, choice %d\n", a.Seq, a.Request, a.Choice)
	}
	for _, e := range r.Emits {
		fmt.Fprintf(w, "emit %d/%d:", e.Request, e.Choice)
		if e.Result.Sampled {
			fmt.Fprintf(w, " %c", byte(e.Result.Token))
		}
		if e.Result.Vector != nil {
			fmt.Fprint(w, " a vector")
		}
		fmt.Fprintln(w)
	}
	for _, f := range r.Finishes {
		choice := fmt.Sprint(f.Choice)
		if f.Choice == ieg.AllChoices {
			choice = "all"
		}
		fmt.Fprintf(w, "finish %d/%s: %s, prompt %d, cached %d, generated %d", f.Request, choice, f.Reason, f.Usage.Prompt, f.Usage.Cached, f.Usage.Generated)
		if f.Err != nil {
			fmt.Fprintf(w, " (%v)", f.Err)
		}
		fmt.Fprintln(w)
	}
	for _, x := range r.Aborts {
		fmt.Fprintf(w, "abort step %d of engine %d\n", x.Step, x.Engine)
	}
	for _, x := range r.Halts {
		fmt.Fprintf(w, "halt step %d of engine %d\n", x.Step, x.Engine)
	}
	for _, k := range r.Kills {
		fmt.Fprintf(w, "kill engine %d: %s\n", k.Engine, k.Reason)
	}
	for _, id := range r.Loads {
		fmt.Fprintf(w, "load engine %d\n", id)
	}
	for _, id := range r.Unloads {
		fmt.Fprintf(w, "unload engine %d\n", id)
	}
	for _, x := range r.Refusals {
		fmt.Fprintf(w, "refuse engine %d: %v\n", x.Engine, x.Err)
	}
	s.showMoves(r.Moves)
	for _, b := range r.Batches {
		s.batch(b)
	}
}

func (s *story) batch(b *ieg.Batch) {
	w := &s.out
	fmt.Fprintf(w, "step %d of engine %d", b.Step, b.Engine)
	if b.Grant > 0 {
		fmt.Fprintf(w, " and up to %d more", b.Grant)
	}
	fmt.Fprintln(w)
	for _, id := range b.Drop {
		fmt.Fprintf(w, "  drop sequence %d\n", id)
	}
	for _, n := range b.New {
		fmt.Fprintf(w, "  new sequence %d in slot %d: %d tokens known, %d of them prompt\n", n.Seq, n.Slot, len(n.Tokens), n.Prompt)
	}
	for _, op := range b.Ops {
		switch op.Kind {
		case ieg.KVCopy:
			fmt.Fprintf(w, "  copy %d tokens of slot %d to slot %d\n", op.N, op.From, op.To)
		case ieg.KVTrim:
			fmt.Fprintf(w, "  trim slot %d to %d tokens\n", op.To, op.N)
		case ieg.KVSave:
			fmt.Fprintf(w, "  save [%d, %d) of slot %d to pages %v", op.Start, op.Start+op.N, op.From, op.Extents[0].Pages)
			if op.Next {
				fmt.Fprint(w, ", next")
			}
			fmt.Fprintln(w)
		case ieg.KVLoad:
			fmt.Fprintf(w, "  load [%d, %d) into slot %d from %d blocks", op.Start, op.Start+op.N, op.To, len(op.Extents))
			if op.Sum != 0 {
				fmt.Fprintf(w, " after digest %d", op.Sum)
			}
			if op.Next {
				fmt.Fprint(w, ", next")
			}
			if op.Open {
				fmt.Fprint(w, ", open")
			}
			fmt.Fprintln(w)
		}
	}
	for _, x := range b.Work {
		fmt.Fprintf(w, "  compute [%d, %d) of sequence %d in slot %d", x.Start, x.Start+x.N, x.Seq, x.Slot)
		if x.Sample {
			fmt.Fprint(w, ", sample")
		}
		fmt.Fprintln(w)
	}
	f := &flying{batch: *b}
	f.batch.Work, f.batch.Ops = append([]ieg.Work(nil), b.Work...), append([]ieg.KVOp(nil), b.Ops...)
	s.steps[b.Engine] = f
}

func (s *story) status() {
	st := s.m.Status()
	for _, e := range st.Engines {
		fmt.Fprintf(&s.out, "engine %d %s: %d running, %d waiting, slots %d used %d idle, cells %d used %d idle", e.Info.ID, e.State, e.Running, e.Waiting, e.SlotsUsed, e.SlotsIdle, e.CellsUsed, e.CellsIdle)
		if e.Reason != "" {
			fmt.Fprintf(&s.out, " (%s)", e.Reason)
		}
		fmt.Fprintln(&s.out)
	}
	for _, r := range st.Requests {
		fmt.Fprintf(&s.out, "request %d %s %s: prompt %d, cached %d, generated %d\n", r.ID, r.Class, r.State, r.Prompt, r.Cached, r.Generated)
	}
}

func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &story{t: t}
		datadriven.RunTest(t, path, s.run)
	})
}
