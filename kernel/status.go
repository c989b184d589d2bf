package kernel

import (
	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// Status describes the machine for people. It copies: the caller keeps it.
func (m *Machine) Status() ieg.Status {
	st := ieg.Status{Now: m.now, Draining: m.draining, Totals: m.totals}
	st.KV = m.kv.status()
	for _, e := range m.engines {
		row := ieg.EngineStatus{
			Info: e.info, State: e.state, Reason: e.reason,
			Running: len(e.running), Waiting: e.waiting.Len(), Steps: e.steps, LastStep: e.last,
			PrefillTPS: e.profile.Speed().PrefillTPS(), StepTime: sched.Seconds(e.profile.Speed().Step(cost.Step{Seqs: 1})),
		}
		row.Info.ID = e.id
		if row.Info.Model.Name == "" {
			row.Info.Model.Name, row.Info.Device = e.model, e.device
		}
		if e.pool != nil {
			owned, idle := e.pool.Counts()
			row.SlotsUsed, row.SlotsIdle = owned, idle
			row.CellsIdle = int64(e.pool.Idle())
			row.CellsUsed = max(int64(e.pool.Used())-row.CellsIdle, 0)
		}
		if m.below(e) {
			row.SaveRate, row.LoadRate = e.saveRate.perSecond(), e.loadRate.perSecond()
		}
		st.Engines = append(st.Engines, row)
	}
	for _, r := range m.order {
		st.Requests = append(st.Requests, r.row(m.now))
	}
	return st
}

func (t *tiers) status() ieg.KVStatus {
	st := ieg.KVStatus{NVMe: t.nvme, NVMeWhy: t.why, Moves: len(t.moves), Queued: t.queued(),
		ReadRate: t.read.perSecond(), WriteRate: t.write.perSecond(), Counts: t.counts}
	if h := t.host; h != nil {
		st.Pages, st.FreePages, st.PageBytes, st.Blocks = h.Pages(), h.Free(), t.spec.PageBytes, h.Resident()
		st.Evicted, st.Lost = h.Evicted, h.Lost
		for k := range st.Leases {
			st.Leases[k] = h.Leases(kv.LeaseKind(k))
		}
	}
	return st
}

func (r *request) row(now ieg.Time) ieg.RequestRow {
	row := ieg.RequestRow{ID: r.spec.ID, Name: r.spec.Name, Model: r.spec.Model, Class: r.spec.Class,
		State: r.state(), Prompt: r.usage.Prompt, Cached: r.usage.Cached, Generated: r.usage.Generated,
		Age: now.Sub(r.times.Arrived)}
	return row
}

// state is the most advanced state of the request's sequences.
func (r *request) state() string {
	state := "finished"
	for _, s := range r.seqs {
		switch {
		case s.state == seqRunning && r.paused:
			return "paused"
		case s.state == seqRunning:
			return "running"
		case s.state == seqWaiting && s.preempted > 0:
			state = "preempted"
		case s.state == seqWaiting:
			state = "waiting"
		}
	}
	return state
}
