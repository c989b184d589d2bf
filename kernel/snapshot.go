package kernel

import (
	"slices"
	"time"

	"ieg"
	"ieg/kernel/cost"
	"ieg/kernel/graph"
	"ieg/kernel/sched"
	"ieg/memory/kv"
)

// Snapshot is a machine between two events, as plain data. A machine restored
// from it decides as the original would: the same events at the same times
// give the same Ready. It can be encoded with encoding/gob; equal machines
// give equal bytes.
//
// The stories of requests that have ended are left out: nothing is decided by
// them.
type Snapshot struct {
	Config   Config
	Now      ieg.Time
	Draining bool
	Devices  []SavedDevice
	Engines  []SavedEngine
	Requests []SavedRequest // live ones, in order of arrival
	NextSeq  ieg.SeqID
	NextStep ieg.StepID
	Totals   ieg.Totals
	KV       SavedKV
}

// SavedKV is what is known below the device.
type SavedKV struct {
	Host   *kv.HostLedger // nil: no arena
	Spec   HostUp
	NVMe   bool
	Why    string
	Dirty  [2][]ieg.BlockHash
	Moves  []SavedMove
	Next   ieg.MoveID
	Expiry ieg.Time
	Read   float64
	Write  float64
	Counts ieg.KVCounts
	Since  ieg.Time
	Long   [2]time.Duration
	Ran    [2]time.Duration
	// Fetchers are in the order in which they began to wait.
	Fetchers []ieg.SeqID
}

// SavedMove is a move in flight.
type SavedMove struct {
	ID    ieg.MoveID
	Kind  ieg.MoveKind
	Block ieg.BlockHash
	Lease kv.LeaseID
}

// SavedSaving is a block on its way from a row to the arena.
type SavedSaving struct {
	Block ieg.BlockHash
	Slot  ieg.Slot
	Done  int32
	Made  int32
	Lease kv.LeaseID
}

// SavedCopy is a copy in flight: of a saving, or for a sequence.
type SavedCopy struct {
	Op, N  int32
	Bytes  int64
	Open   bool
	More   bool
	Save   *SavedSaving
	Seq    ieg.SeqID
	Slot   ieg.Slot
	Blocks []ieg.BlockHash
	Lease  kv.LeaseID
}

// SavedDevice is a device.
type SavedDevice struct {
	Spec ieg.ResourceSpec
	Free int64
	Turn time.Duration
}

// SavedEngine is an engine; its sequences are with their requests.
type SavedEngine struct {
	ID            ieg.EngineID
	Model, Device string
	Need          int64
	State         ieg.EngineState
	Reason        string
	Final         bool
	Info          ieg.EngineInfo
	// Pool is nil without an incarnation. The tokens of owned rows are their
	// owner's and left out.
	Pool    *kv.State
	Profile cost.Profile
	Flight  SavedFlight
	Drop    []ieg.SeqID
	Served  time.Duration
	Steps   int64
	Young   int
	Failed  int
	Aborts  int
	Last    ieg.Time
	Doomed  bool
	Idle    bool
	Solo    bool
	Due     time.Duration
	Tiled   bool
	Passes  sched.Passes
	Blocked ieg.SeqID
	Rent    float64
	Closing bool
	Expect  [ieg.NumClasses]float64
	// Saving is the block that is copied piece by piece, if there is one.
	Saving             *SavedSaving
	Credit             float64
	SaveBlocked        bool
	SaveWaits          bool
	SaveRate, LoadRate float64
	Keeps              [][]ieg.BlockHash
}

// SavedFlight is a step in flight.
type SavedFlight struct {
	Active    bool
	Step      ieg.StepID
	Started   ieg.Time
	Limit     ieg.Time
	AbortAt   ieg.Time
	Predicted time.Duration
	Grant     int32
	Halted    bool
	Aborted   bool
	Load      cost.Step
	Work      []SavedFlying
	Copies    []SavedCopy
	Beside    bool
	Copying   float64
	// Orphans are sequences in flight whose request has ended.
	Orphans []SavedOrphan
}

// SavedFlying is the part of one sequence in a flight.
type SavedFlying struct {
	Seq ieg.SeqID
	N   int32
}

// SavedOrphan is a sequence without a request.
type SavedOrphan struct {
	ID       ieg.SeqID
	Kind     ieg.Kind
	Tokens   []ieg.Token
	Computed int32
	Slot     ieg.Slot
}

// SavedRequest is a live request with all its sequences. Spec is shared with
// the machine: it never changes.
type SavedRequest struct {
	Spec      *ieg.Request
	Engine    ieg.EngineID
	Paused    bool
	Deaths    int
	Times     ieg.RequestTimes
	Usage     ieg.Usage
	Until     ieg.Time
	ITLMax    ieg.Time
	Graph     graph.Graph
	Decisions []SavedDecision
	Seqs      []SavedSeq
}

// SavedDecision is the decision for a node that is not ready yet.
type SavedDecision struct {
	Node     ieg.NodeID
	Decision *ieg.Decision
}

// SavedSeq is a sequence. Generated follows the request's prompt; it is shared
// with the machine, which only appends to it.
type SavedSeq struct {
	ID        ieg.SeqID
	Choice    int32
	Key       sched.Key
	State     uint8
	Generated []ieg.Token
	Computed  int32
	Slot      ieg.Slot
	InFlight  bool
	Await     ieg.Slot
	AwaitSeq  ieg.SeqID
	AwaitN    int32
	Cached    int32
	Preempted int
	Yielded   int
	Counted   bool
	Begun     bool
	Decoding  bool
	Last      ieg.Time
	Busy      time.Duration
	Wants     []ieg.BlockHash
	Awaits    []ieg.BlockHash
	Until     ieg.Time
	Tried     int
	Short     bool
	Tokens    int32
	From      [ieg.NumTiers]int32
	// Rest is what is still to be copied to its row; nil: nothing.
	Rest *SavedRest
}

// SavedRest are tokens [Start, Start+N) that are brought for a sequence.
type SavedRest struct {
	Start, N int32
	Sum      uint64
	Blocks   []ieg.BlockHash
	Lease    kv.LeaseID
}

// Snapshot copies the machine. What never changes (prompts, tokens already
// known, specifications, decisions) is shared, so that it takes time for the
// number of live sequences and rows, not for their lengths. It must be called
// between two events; its reader may be another goroutine.
func (m *Machine) Snapshot() *Snapshot {
	s := &Snapshot{Config: m.cfg, Now: m.now, Draining: m.draining, NextSeq: m.nextSeq, NextStep: m.nextStep, Totals: m.totals,
		Requests: make([]SavedRequest, 0, len(m.order))}
	for _, d := range m.devices {
		s.Devices = append(s.Devices, SavedDevice{Spec: d.spec, Free: d.free, Turn: d.turn})
	}
	for _, e := range m.engines {
		s.Engines = append(s.Engines, e.save())
	}
	for _, r := range m.order {
		s.Requests = append(s.Requests, r.save())
	}
	s.KV = m.kv.save()
	return s
}

func (t *tiers) save() SavedKV {
	s := SavedKV{Spec: t.spec, NVMe: t.nvme, Why: t.why, Next: t.next, Expiry: t.expiry, Read: float64(t.read), Write: float64(t.write), Counts: t.counts, Since: t.since, Long: t.long, Ran: t.ran}
	if t.host == nil {
		return s
	}
	ledger := t.host.Ledger()
	s.Host = &ledger
	for q := range t.dirty {
		for _, k := range t.dirty[q] {
			if t.host.Get(k.Hash) == k {
				s.Dirty[q] = append(s.Dirty[q], k.Hash)
			}
		}
	}
	for _, v := range t.moves {
		s.Moves = append(s.Moves, SavedMove{v.id, v.kind, v.k.Hash, v.lease})
	}
	for _, q := range t.fetchers {
		s.Fetchers = append(s.Fetchers, q.id)
	}
	return s
}

func hashes(blocks []*kv.Known) (out []ieg.BlockHash) {
	for _, k := range blocks {
		out = append(out, k.Hash)
	}
	return out
}

func (sv *saving) save() *SavedSaving {
	if sv == nil {
		return nil
	}
	return &SavedSaving{sv.k.Hash, sv.slot, sv.done, sv.made, sv.lease}
}

func (b *brought) save() *SavedRest {
	if b.n == 0 {
		return nil
	}
	return &SavedRest{b.start, b.n, b.sum, hashes(b.blocks), b.lease}
}

func (e *engine) save() SavedEngine {
	s := SavedEngine{
		ID: e.id, Model: e.model, Device: e.device, Need: e.need, State: e.state, Reason: e.reason, Final: e.final, Info: e.info,
		Profile: e.profile, Flight: e.flight.save(), Drop: slices.Clone(e.drop), Served: e.served, Steps: e.steps,
		Young: e.young, Failed: e.failed, Aborts: e.aborts, Last: e.last, Doomed: e.doomed, Idle: e.idle, Solo: e.solo, Due: e.due, Tiled: e.tiled, Passes: e.passes,
		Blocked: e.blocked, Rent: e.rent, Closing: e.closing, Expect: e.expect,
		Saving: e.saving.save(), Credit: e.credit, SaveBlocked: e.saveBlocked, SaveWaits: e.saveWaits, SaveRate: float64(e.saveRate), LoadRate: float64(e.loadRate),
	}
	for _, blocks := range e.keeps {
		s.Keeps = append(s.Keeps, hashes(blocks))
	}
	if e.pool != nil {
		st := e.pool.State()
		for i := range st.Rows {
			if st.Rows[i].Owner != 0 {
				st.Rows[i].Tokens = nil
			}
		}
		s.Pool = &st
	}
	return s
}

func (f *flight) save() SavedFlight {
	s := SavedFlight{Active: f.active, Step: f.step, Started: f.started, Limit: f.limit, AbortAt: f.abortAt, Predicted: f.predicted,
		Grant: f.grant, Halted: f.halted, Aborted: f.aborted, Load: f.load}
	if !f.active {
		return s
	}
	s.Copying, s.Beside = f.copying, f.beside
	for _, c := range f.copies {
		sc := SavedCopy{Op: c.op, N: c.n, Bytes: c.bytes, Open: c.open, More: c.more, Save: c.save.save(), Slot: c.slot, Blocks: hashes(c.blocks), Lease: c.lease}
		if c.seq != nil {
			sc.Seq = c.seq.id
		}
		s.Copies = append(s.Copies, sc)
	}
	s.Work = make([]SavedFlying, len(f.work))
	for i, w := range f.work {
		s.Work[i] = SavedFlying{w.seq.id, w.n}
		if w.seq.req.live == 0 {
			s.Orphans = append(s.Orphans, SavedOrphan{ID: w.seq.id, Kind: w.seq.req.spec.Kind, Tokens: w.seq.tokens, Computed: w.seq.computed, Slot: w.seq.slot})
		}
	}
	return s
}

func (r *request) save() SavedRequest {
	s := SavedRequest{Spec: r.spec, Engine: r.engine.id, Paused: r.paused, Deaths: r.deaths, Times: r.times, Usage: r.usage,
		Until: r.until, ITLMax: r.itlMax, Graph: *r.graph, Seqs: make([]SavedSeq, len(r.seqs))}
	s.Graph.Nodes, s.Graph.Edges, s.Graph.Journal = slices.Clone(r.graph.Nodes), slices.Clone(r.graph.Edges), slices.Clone(r.graph.Journal)
	for _, d := range r.decisions {
		s.Decisions = append(s.Decisions, SavedDecision{d.Node, d.Decision})
	}
	for i, q := range r.seqs {
		s.Seqs[i] = SavedSeq{ID: q.id, Choice: q.choice, Key: q.key, State: uint8(q.state), Generated: q.tokens[len(r.spec.Prompt):],
			Computed: q.computed, Slot: q.slot, InFlight: q.inFlight, Await: q.await, AwaitSeq: q.awaitSeq, AwaitN: q.awaitN,
			Cached: q.cached, Preempted: q.preempted, Yielded: q.yielded, Counted: q.counted, Begun: q.begun, Decoding: q.decoding,
			Last: q.last, Busy: q.busy, Wants: hashes(q.wants), Awaits: hashes(q.fetch.awaits), Until: q.fetch.until, Tried: q.fetch.tried, Short: q.fetch.short, Tokens: q.fetch.tokens, From: q.from, Rest: q.rest.save()}
	}
	return s
}
