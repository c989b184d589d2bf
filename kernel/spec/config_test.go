package spec

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ieg"
	"ieg/kernel/graph"
)

func TestDefaultsRoundTrip(t *testing.T) {
	c := Default()
	again, err := Parse([]byte(c.String()))
	if err != nil {
		t.Fatal(err)
	}
	sameConfig(t, c, again)
	if again.Limits != graph.DefaultLimits {
		t.Errorf("limits %+v, want the graph's defaults", again.Limits)
	}
}

// TestEffective: what a node prints of its configuration, it takes back.
func TestEffective(t *testing.T) {
	c, err := Parse([]byte("dag_constraints: {max_depth: 7}\nkv_transfer_config: {pipeline_depth: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.NotYet(); !errors.Is(err, ErrNotYet) || !errors.Is(err, ErrSpec) {
		t.Fatalf("NotYet = %v, want a refusal", err)
	}
	again, err := Parse([]byte(c.Effective()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.NotYet(); err != nil {
		t.Errorf("the effective configuration is refused: %v", err)
	}
	if again.Limits.MaxDepth != 7 {
		t.Errorf("max_depth %d, want 7", again.Limits.MaxDepth)
	}
}

// TestExtra reads keys of another part along with the blocks.
func TestExtra(t *testing.T) {
	var listen string
	var models []string
	server := Group("server", String("listen", &listen), Words("models", &models))
	c, err := Parse([]byte("server: {listen: \"127.0.0.1:9430\", models: [a.gguf]}\ntermination_policy: {timeout: 5s}"), server)
	if err != nil || listen != "127.0.0.1:9430" || !slices.Equal(models, []string{"a.gguf"}) {
		t.Fatalf("listen %q, models %q, %v", listen, models, err)
	}
	if g := c.Given[1]; g != (Given{"server.listen", 1, 10}) {
		t.Errorf("second key given: %+v", g)
	}
	_, err = Parse([]byte("server: {lisen: x}"), server)
	var e *Error
	if !errors.As(err, &e) || e.Line != 1 || e.Column != 10 || e.Suggestion != "listen" || e.Path != "server.lisen" {
		t.Errorf("a misspelt extra key gives %v", err)
	}
}

// TestEveryKey checks the keys of the specification one by one: each is read,
// and one letter more is refused with a suggestion.
func TestEveryKey(t *testing.T) {
	c := Default()
	c.NodeSpecs = []ieg.NodeSpec{{ID: "a"}}
	seen := map[string]bool{}
	var walk func(path string, fields []Field)
	walk = func(path string, fields []Field) {
		for _, f := range fields {
			seen[join(path, f.Key)] = true
			switch v := f.value.(type) {
			case group:
				walk(join(path, f.Key), v)
			case silent:
				walk(join(path, f.Key), v.value.(group))
			}
		}
	}
	walk("", c.Fields())
	walk("node", NodeFields(&ieg.NodeSpec{}))
	walk("device", DeviceFields(&ieg.ResourceSpec{}))
	for _, key := range strings.Fields(`
		node.id node.type node.model node.priority node.compute.flops node.compute.precision
		node.memory.vram node.memory.kv_cache_size node.memory.bytes_moved node.io.bytes node.latency_sla
		node.parallelism.strategy node.parallelism.degree
		node.affinity.kv_cache_location node.affinity.required node.affinity.preferred
		device.id device.type device.vendor device.model device.series
		device.compute.fp16_flops device.compute.int8_flops device.compute.precision_support
		device.memory.vram device.memory.bandwidth device.io.read_bw device.io.write_bw device.io.net_bw
		device.interconnect.type device.interconnect.bandwidth
		device.topology.host device.topology.nvlink_domain device.topology.rack device.topology.site
		device.price device.utilization.compute device.utilization.memory
		dag_constraints.max_depth dag_constraints.max_nodes dag_constraints.max_tool_calls
		dag_constraints.max_agent_rounds dag_constraints.max_token_budget dag_constraints.max_kv_cache_size
		dag_constraints.max_compute_time
		termination_policy.timeout termination_policy.budget_exhaustion termination_policy.graceful_stop
		preemption_config.enabled preemption_config.min_priority_gap preemption_config.preemption_overhead
		preemption_config.resume_policy preemption_config.max_preempt_per_request
		state_transitions kv_transfer_config.chunk_size kv_transfer_config.pipeline_depth
		kv_transfer_config.overlap_compute kv_transfer_config.compression
		profiling_matrix execution_path_registry fallback_policy node_specs resource_specs`) {
		if !seen[key] {
			t.Errorf("the key %s of the specification is not read", key)
		}
		if block, name, nested := strings.Cut(key, "."); nested && block != "node" && block != "device" {
			_, err := Parse([]byte(block + ": {" + name + "x: 1}"))
			var e *Error
			if !errors.As(err, &e) || e.Suggestion != name {
				t.Errorf("%sx is answered by %v, want a suggestion of %s", key, err, name)
			}
		}
	}
}

func TestOverlay(t *testing.T) {
	found := ieg.ResourceSpec{ID: "cpu0", Type: "CPU", Model: "EPYC"}
	found.Memory.VRAM = 16e9
	given, err := ParseDevice([]byte("id: cpu0\nprice: 0.3\ncompute: {fp16_flops: 400G}\ntopology: {rack: r2}"))
	if err != nil {
		t.Fatal(err)
	}
	got := Overlay(found, given)
	if got.Model != "EPYC" || got.Memory.VRAM != 16e9 || got.Price != 0.3 || got.Compute.FP16 != 400e9 || got.Topology.Rack != "r2" {
		t.Errorf("overlay is %+v", got)
	}
}

func TestFreeBytes(t *testing.T) {
	d, err := ParseDevice([]byte("id: gpu-node-03\nmemory: {vram: 80GB}\nutilization: {memory: 62%}"))
	if err != nil {
		t.Fatal(err)
	}
	if free := FreeBytes(&d); free != 30_400_000_000 {
		t.Errorf("80GB at 62 %% leave %d, want 30.4GB", free)
	}
}

func TestTooLong(t *testing.T) {
	if _, err := Parse(make([]byte, MaxBytes+1)); !errors.Is(err, ErrSpec) {
		t.Errorf("a text of %d bytes gives %v", MaxBytes+1, err)
	}
}

// FuzzParse: no text panics, every error has a place inside the text, and
// what is accepted prints to something that reads back the same.
func FuzzParse(f *testing.F) {
	scripts, err := filepath.Glob("testdata/scripts/*")
	if err != nil || len(scripts) == 0 {
		f.Fatal("no scripts", err)
	}
	for _, s := range scripts {
		text, err := os.ReadFile(s)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n\n") {
			if body, _, found := strings.Cut(part, "----"); found {
				_, body, _ = strings.Cut(body, "\n")
				f.Add([]byte(body))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Column < 1 {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		printed := c.String()
		again, err := Parse([]byte(printed))
		if err != nil {
			t.Fatalf("printed text is refused: %v\n%s", err, printed)
		}
		sameConfig(t, c, again)
	})
}
