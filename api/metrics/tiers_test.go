package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ieg"
	"ieg/api/admin"
	"ieg/kernel"
	"ieg/kernel/meter"
)

// fullTiers has another figure everywhere.
func fullTiers() admin.KVTiers {
	t := admin.KVTiers{
		Engines: []ieg.EngineStatus{
			{Info: ieg.EngineInfo{ID: 1, Device: "cpu", KVToken: 128, Model: ieg.ModelInfo{Name: "small"}}, SaveRate: 3e9, LoadRate: 4e9},
			{Info: ieg.EngineInfo{ID: 2, Device: "cpu", KVNote: "recurrent", Model: ieg.ModelInfo{Name: "stays"}}},
		},
		Host:   admin.KVHost{Bytes: 1 << 30},
		NVMe:   admin.KVNVMe{Up: true, State: admin.NVMeUp, Blocks: 12, Bytes: 13, Size: 14, Disk: 15, Free: 16, WrittenToday: 17, Evicted: 18, Corrupt: 19, ReadRate: 20, WriteRate: 21},
		Tokens: admin.KVTokens{Device: 22, Host: 23, NVMe: 24, Computed: 25},
	}
	k := &t.Kernel
	k.Pages, k.FreePages, k.PageBytes, k.Blocks, k.Evicted, k.Moves, k.Queued = 10, 7, 1000, 26, 27, 28, 2
	k.Leases = [3]int{31, 32, 33}
	k.Counts = ieg.KVCounts{Saves: 34, SavedBytes: 35, Loads: 36, LoadedBytes: 37, Stores: 38, StoredBytes: 39, Fetches: 40, FetchedBytes: 41,
		SavesRefused: 42, StoresRefused: 43, FetchesFailed: 44, BringsDeclined: 45, FetchesDeclined: 46, FetchesLate: 47, Corrupt: 48, Diverged: 49, LongestCopy: 1500 * time.Microsecond}
	return t
}

func TestTiers(t *testing.T) {
	h, err := Handler(Config{Snapshot: story().Snapshot, KV: fullTiers, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	body := scrape(t, h)
	for _, line := range strings.Split(strings.TrimSpace(`
ieg_kv_tier_bytes{tier="host"} 3000
ieg_kv_tier_bytes{tier="nvme"} 13
ieg_kv_tier_size_bytes{tier="nvme"} 14
ieg_kv_tier_blocks{tier="host"} 26
ieg_kv_nvme_up 1
ieg_kv_nvme_down 0
ieg_kv_nvme_disk_bytes{state="free"} 16
ieg_kv_nvme_written_today_bytes 17
ieg_kv_nvme_bytes_per_second{direction="write"} 21
ieg_kv_leases{kind="pin"} 33
ieg_kv_moves_waiting 30
ieg_kv_copy_seconds_max 0.0015
ieg_kv_hit_tokens_total{tier="device"} 22
ieg_kv_hit_tokens_total{tier="nvme"} 24
ieg_kv_diverged_tokens_total 49
ieg_kv_moves_total{kind="fetch"} 40
ieg_kv_moved_bytes_total{kind="save"} 35
ieg_kv_declined_total{kind="load"} 45
ieg_kv_declined_total{kind="fetch"} 46
ieg_kv_refused_total{kind="store"} 43
ieg_kv_fetches_late_total 47
ieg_kv_fetches_failed_total 44
ieg_kv_corrupt_total{tier="host"} 48
ieg_kv_corrupt_total{tier="nvme"} 19
ieg_kv_evicted_total{tier="host"} 27
ieg_kv_save_bytes_per_second{device="cpu",engine="1",model="small"} 3e+09
ieg_kv_load_bytes_per_second{device="cpu",engine="1",model="small"} 4e+09`), "\n") {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(body, `model="stays"`) {
		t.Error("an engine whose KV can't leave it has speeds")
	}
	var own strings.Builder
	for line := range strings.Lines(ours(body)) {
		if !strings.Contains(line, "vllm:") {
			own.WriteString(line)
		}
	}
	problems, err := promlint.New(strings.NewReader(own.String())).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// watchEngine is a tap that knows an engine, and what tells it of events, one a
// millisecond.
func watchEngine() (*Tap, func(kernel.Event, kernel.Ready)) {
	tap, now := NewTap(meter.DefaultConfig()), ieg.Time(0)
	observe := func(ev kernel.Event, r kernel.Ready) {
		now = now.Add(time.Millisecond)
		tap.Observe(now, ev, &r)
	}
	observe(kernel.EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: 1, KVToken: 100, Cells: 4096, Model: ieg.ModelInfo{Name: "m"}}}, kernel.Ready{})
	return tap, observe
}

// What is brought from below the device is no hit of the device.
func TestBroughtTokens(t *testing.T) {
	tap, observe := watchEngine()
	b := &ieg.Batch{Engine: 1, Epoch: 1, Step: 7, New: []ieg.SeqStart{{Seq: 1}},
		Ops:  []ieg.KVOp{{Kind: ieg.KVCopy, To: 3, N: 256}, {Kind: ieg.KVLoad, To: 3, Start: 256, N: 512}, {Kind: ieg.KVSave, From: 2, N: 64}},
		Work: []ieg.Work{{Seq: 1, Slot: 3, Start: 768, N: 232, Sample: true}}}
	observe(kernel.Arrived{Request: &ieg.Request{ID: 1, Model: "m", N: 1, Prompt: make([]ieg.Token, 1000)}},
		kernel.Ready{Admits: []kernel.Admit{{Request: 1, Seq: 1}}, Batches: []*ieg.Batch{b}})
	if body := scrape(t, handler(t, tap.Snapshot)); !strings.Contains(body, `vllm:prompt_tokens_total{engine="1",model_name="m"} 0`) {
		t.Error("what is being brought is counted before it is there")
	}
	done := &ieg.StepDone{Engine: 1, Epoch: 1, Step: 7, Copies: []ieg.CopyDone{{Op: 1, Took: 2 * time.Second}, {Op: 2, Took: time.Second}, {Op: 9}}}
	observe(kernel.StepDone{Done: done}, kernel.Ready{})
	body := scrape(t, handler(t, tap.Snapshot))
	for _, line := range strings.Split(strings.TrimSpace(`
vllm:prefix_cache_queries_total{engine="1",model_name="m"} 1000
vllm:prefix_cache_hits_total{engine="1",model_name="m"} 256
vllm:external_prefix_cache_queries_total{engine="1",model_name="m"} 744
vllm:external_prefix_cache_hits_total{engine="1",model_name="m"} 512
vllm:prompt_tokens_cached_total{engine="1",model_name="m"} 768
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="local_compute"} 232
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="local_cache_hit"} 256
vllm:prompt_tokens_by_source_total{engine="1",model_name="m",source="external_kv_transfer"} 512
vllm:kv_offload_load_bytes_total{engine="1",model_name="m"} 51200
vllm:kv_offload_store_bytes_total{engine="1",model_name="m"} 6400
vllm:kv_offload_load_time_total{engine="1",model_name="m"} 2
vllm:kv_offload_store_time_total{engine="1",model_name="m"} 1`), "\n") {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

// What comes up in parts was all brought.
func TestBroughtInParts(t *testing.T) {
	tap, observe := watchEngine()
	ready := kernel.Ready{Admits: []kernel.Admit{{Request: 1, Seq: 1}}}
	var next kernel.Event = kernel.Arrived{Request: &ieg.Request{ID: 1, Model: "m", N: 1, Prompt: make([]ieg.Token, 500)}}
	for step, start := range []int32{0, 64, 128} {
		b := &ieg.Batch{Engine: 1, Epoch: 1, Step: ieg.StepID(step + 1), Ops: []ieg.KVOp{{Kind: ieg.KVLoad, To: 3, Start: start, N: 64, Open: true}}}
		if step == 0 {
			b.New = []ieg.SeqStart{{Seq: 1, Slot: 3}}
		}
		if step == 2 {
			b.Ops[0].N, b.Ops[0].Open = 272, false
			b.Work = []ieg.Work{{Seq: 1, Slot: 3, Start: 400, N: 100, Sample: true}}
		}
		ready.Batches = []*ieg.Batch{b}
		observe(next, ready)
		ready = kernel.Ready{}
		next = kernel.StepDone{Done: &ieg.StepDone{Engine: 1, Epoch: 1, Step: b.Step, Copies: []ieg.CopyDone{{Op: 0}}}}
	}
	observe(next, kernel.Ready{})
	if e := tap.Snapshot().Engines[0]; e.PromptTokens != 500 || e.CachedTokens != 400 || e.BroughtTokens != 400 || e.Loads.Bytes != 40000 {
		t.Errorf("%d prompt tokens, %d cached, %d brought in %d bytes; want 500, 400, 400 in 40000", e.PromptTokens, e.CachedTokens, e.BroughtTokens, e.Loads.Bytes)
	}
}

// What was brought and is wrong was neither cached nor brought.
func TestBroughtInVain(t *testing.T) {
	tap, watch := watchEngine()
	observe := func(ev kernel.Event, batches ...*ieg.Batch) {
		r := kernel.Ready{Batches: batches}
		if _, ok := ev.(kernel.Arrived); ok {
			r.Admits = []kernel.Admit{{Request: 1, Seq: 1}}
		}
		watch(ev, r)
	}
	observe(kernel.Arrived{Request: &ieg.Request{ID: 1, Model: "m", N: 1, Prompt: make([]ieg.Token, 1000)}},
		&ieg.Batch{Engine: 1, Epoch: 1, Step: 7, New: []ieg.SeqStart{{Seq: 1}}, Ops: []ieg.KVOp{{Kind: ieg.KVLoad, To: 3, N: 768}},
			Work: []ieg.Work{{Seq: 1, Slot: 3, Start: 768, N: 232, Sample: true}}})
	observe(kernel.StepDone{Done: &ieg.StepDone{Engine: 1, Epoch: 1, Step: 7, Outcome: ieg.StepFailed, Copies: []ieg.CopyDone{{Op: 0, Bad: 2}}}},
		&ieg.Batch{Engine: 1, Epoch: 1, Step: 8, Work: []ieg.Work{{Seq: 1, Slot: 3, N: 1000, Sample: true}}})
	observe(kernel.StepDone{Done: &ieg.StepDone{Engine: 1, Epoch: 1, Step: 8, Results: []ieg.SeqResult{{Seq: 1, Computed: 1000}}}})
	e := tap.Snapshot().Engines[0]
	if e.PromptTokens != 1000 || e.CachedTokens != 0 || e.BroughtTokens != 0 || e.Loads.Bytes != 0 || e.KVTokens != 1000 || e.ComputedSize.Sum != 1000 || e.ComputedSize.Count != 1 {
		t.Errorf("%+v", e)
	}
}

// Counters never fall; gauges may.
func TestCountersRise(t *testing.T) {
	now := fullTiers()
	h, err := Handler(Config{Snapshot: story().Snapshot, KV: func() admin.KVTiers { return now }, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		host int64
		want string
	}{{23, "23"}, {20, "23"}, {24, "24"}} {
		now.Tokens.Host, now.Kernel.Blocks = row.host, int(row.host)
		body := scrape(t, h)
		if !strings.Contains(body, `ieg_kv_hit_tokens_total{tier="host"} `+row.want+"\n") {
			t.Errorf("%d hits: not %s", row.host, row.want)
		}
		if !strings.Contains(body, fmt.Sprintf("ieg_kv_tier_blocks{tier=\"host\"} %d\n", row.host)) {
			t.Errorf("%d blocks are not told", row.host)
		}
	}
}
