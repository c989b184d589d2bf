package metrics

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/meter"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden file")

// story is a chat of three tokens, a rejection and a queued request.
func story() *Tap {
	tap := NewTap(meter.DefaultConfig())
	now := ieg.Time(0)
	observe := func(ev kernel.Event, r kernel.Ready) {
		now = now.Add(10 * time.Millisecond)
		tap.Observe(now, ev, &r)
	}
	spec := ieg.ResourceSpec{ID: "cpu"}
	spec.Compute.FP16, spec.Memory.Bandwidth = 1e12, 50e9
	observe(kernel.DeviceUp{Spec: spec}, kernel.Ready{})
	observe(kernel.LoadEngine{Engine: 1, Model: "small", Device: "cpu"}, kernel.Ready{Loads: []ieg.EngineID{1}})
	observe(kernel.EngineReady{Info: ieg.EngineInfo{ID: 1, Epoch: 1, Device: "cpu", KVType: "f16", Prefixes: true, Slots: 4, Cells: 4096,
		Model: ieg.ModelInfo{Name: "small", ActiveParams: 1.35e8, WeightBytes: 1e8, KV: []ieg.KVGroup{{Layers: 30, KVHeads: 3, HeadDim: 64, ElemBytes: 2}}}}}, kernel.Ready{})

	chat := &ieg.Request{ID: 1, Model: "small", Class: ieg.P0, N: 1, Prompt: make([]ieg.Token, 20), MaxTokens: 3, Received: now}
	batch := func(start, n int32) []*ieg.Batch {
		b := &ieg.Batch{Engine: 1, Epoch: 1, Work: []ieg.Work{{Seq: 1, Start: start, N: n, Sample: true}}}
		if start < 20 {
			b.New = []ieg.SeqStart{{Seq: 1}}
		}
		return []*ieg.Batch{b}
	}
	observe(kernel.Arrived{Request: chat}, kernel.Ready{Admits: []kernel.Admit{{Request: 1, Seq: 1}}, Batches: batch(8, 12)})
	times := ieg.RequestTimes{Received: chat.Received, Arrived: now, Admitted: now}
	for i := range int32(3) {
		done := &ieg.StepDone{Engine: 1, Epoch: 1, Took: 8 * time.Millisecond, Results: []ieg.SeqResult{{Seq: 1, Computed: 12, Sampled: true}}}
		r := kernel.Ready{Emits: []kernel.Emit{{Request: 1, Result: &done.Results[0]}}}
		if i > 0 {
			done.Results[0].Computed = 1
		} else {
			times.FirstToken = now.Add(10 * time.Millisecond)
		}
		if i < 2 {
			r.Batches = batch(20+i, 1)
		} else {
			times.Last = now.Add(10 * time.Millisecond)
			for _, choice := range []int32{0, ieg.AllChoices} {
				r.Finishes = append(r.Finishes, ieg.Finish{Request: 1, Choice: choice, Reason: ieg.StopLength, Usage: ieg.Usage{Prompt: 20, Cached: 8, Generated: 3}, Times: times})
			}
		}
		observe(kernel.StepDone{Done: done}, r)
	}
	refused := &ieg.Request{ID: 2, Model: "small", Class: ieg.P1, N: 1, Prompt: make([]ieg.Token, 9000)}
	observe(kernel.Arrived{Request: refused}, kernel.Ready{Finishes: []ieg.Finish{{Request: 2, Choice: ieg.AllChoices, Reason: ieg.StopError, Err: ieg.ErrContextLength}}})
	queued := &ieg.Request{ID: 3, Model: "small", Class: ieg.P2, N: 2, Prompt: make([]ieg.Token, 5)}
	observe(kernel.Arrived{Request: queued}, kernel.Ready{Admits: []kernel.Admit{{Request: 3, Seq: 2}, {Request: 3, Choice: 1, Seq: 3}}})
	return tap
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", w.Code, err, body)
	}
	return string(body)
}

func handler(t *testing.T, snapshot func() meter.Snapshot) http.Handler {
	t.Helper()
	h, err := Handler(Config{Snapshot: snapshot, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ours keeps the lines of our own metrics.
func ours(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if strings.HasPrefix(name, "ieg_") || strings.HasPrefix(name, "vllm:") {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestExposition(t *testing.T) {
	const golden = "testdata/metrics.txt"
	got := ours(scrape(t, handler(t, story().Snapshot)))
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the exposition differs from %s (-rewrite accepts it):\n%s", golden, got)
	}
}

// TestNames checks that every metric of the naming table which one host can
// feed is there, and the aliases that scrapers of vLLM look for.
func TestNames(t *testing.T) {
	body := scrape(t, handler(t, story().Snapshot))
	for _, name := range []string{
		"ieg_time_to_first_token_seconds", "ieg_inter_token_latency_seconds", "ieg_request_time_per_output_token_seconds",
		"ieg_e2e_request_latency_seconds", "ieg_request_queue_time_seconds", "ieg_goodput_requests_total", "ieg_slo_attainment_ratio",
		"ieg_prompt_tokens_total", "ieg_generation_tokens_total", "ieg_request_prefill_time_seconds", "ieg_request_decode_time_seconds",
		"ieg_step_tokens", "ieg_requests_waiting", "ieg_requests_running", "ieg_preemptions_total", "ieg_kv_cache_usage_ratio",
		"ieg_kv_blocks", "ieg_prefix_cache_queries_total", "ieg_prefix_cache_hits_total", "ieg_requests_rejected_total",
		"ieg_mfu_ratio", "ieg_mbu_ratio", "ieg_engine_deaths_total",
		"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:num_requests_waiting_by_reason", "vllm:kv_cache_usage_perc",
		"vllm:cache_config_info", "vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_total", "vllm:prompt_tokens_by_source_total",
		"vllm:generation_tokens_total", "vllm:request_success_total", "vllm:num_preemptions_total", "vllm:prefix_cache_queries_total",
		"vllm:prefix_cache_hits_total", "vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
		"vllm:request_time_per_output_token_seconds", "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
		"vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds", "vllm:request_inference_time_seconds",
		"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:iteration_tokens_total", "vllm:request_params_n",
		"vllm:request_params_max_tokens", "vllm:request_max_num_generation_tokens", "vllm:request_prefill_kv_computed_tokens",
		"go_goroutines", "process_cpu_seconds_total",
	} {
		if !strings.Contains(body, "# TYPE "+name+" ") {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestValues checks what the story says, where both names have it.
func TestValues(t *testing.T) {
	body := scrape(t, handler(t, story().Snapshot))
	for _, line := range []string{
		`ieg_generation_tokens_total{device="cpu",engine="1",model="small"} 3`,
		`vllm:generation_tokens_total{engine="1",model_name="small"} 3`,
		`ieg_prefix_cache_hits_total{device="cpu",engine="1",model="small"} 8`,
		`ieg_inter_token_latency_seconds_count{class="P0",device="cpu",engine="1",model="small"} 2`,
		`vllm:inter_token_latency_seconds_count{engine="1",model_name="small"} 2`,
		`ieg_requests_rejected_total{reason="context_length"} 1`,
		`ieg_slo_attainment_ratio{class="P0"} 1`,
		`ieg_slo_attainment_ratio{class="P1"} 0`,
		`ieg_requests_waiting 1`,
		`vllm:num_requests_waiting{engine="1",model_name="small"} 2`,
		`vllm:request_success_total{engine="1",finished_reason="length",model_name="small"} 1`,
		`vllm:cache_config_info{block_size="16",cache_dtype="f16",enable_prefix_caching="true",engine="1",model_name="small",num_gpu_blocks="256"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
}

// TestLint lets Prometheus' own linter look at our names.
func TestLint(t *testing.T) {
	var own strings.Builder
	for line := range strings.Lines(ours(scrape(t, handler(t, story().Snapshot)))) {
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

func TestEmpty(t *testing.T) {
	body := scrape(t, handler(t, NewTap(meter.DefaultConfig()).Snapshot))
	if !strings.Contains(body, "ieg_requests_running 0") || strings.Contains(body, "vllm:num_requests_running{") {
		t.Errorf("without engines:\n%s", ours(body))
	}
}

// TestScrapeWhileObserving lets the race detector look.
func TestScrapeWhileObserving(t *testing.T) {
	tap := story()
	h := handler(t, tap.Snapshot)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 20 {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if w.Code != http.StatusOK {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	done := &ieg.StepDone{Engine: 1, Epoch: 1, Took: time.Millisecond, Results: []ieg.SeqResult{{Seq: 1, Computed: 1}}}
	for i := range 2000 {
		tap.Observe(ieg.Time(i)+1e9, kernel.StepDone{Done: done}, &kernel.Ready{})
	}
	wg.Wait()
	if n := tap.Snapshot().Engines[0].Steps; n != 2003 {
		t.Errorf("%d steps", n)
	}
}
