package spec

import (
	"math"

	"ieg"
	"ieg/kernel/graph"
)

var (
	prefillMetrics = []string{"p50", "p99", "tokens_per_s", "peak_memory"}
	decodeMetrics  = []string{"time_per_token_p50", "time_per_token_p99", "memory_per_token"}
	fallbackSteps  = []string{ieg.SameVendorSameSeries, ieg.SameVendorOtherSeries, ieg.OtherVendorSamePrecision, ieg.LowerPrecision}
	precisions     = []string{"fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4", "int4"}
)

// Fields binds the nine blocks under their top-level keys.
func (c *Config) Fields() []Field {
	return []Field{
		Items("node_specs", "", &c.NodeSpecs, NodeFields),
		Items("resource_specs", "device", &c.ResourceSpecs, DeviceFields),
		Group("dag_constraints", append(dagFields(&c.Limits), Silent(Group("termination_policy", terminationFields(c)...)))...),
		Group("termination_policy", terminationFields(c)...),
		Group("preemption_config", preemptionFields(&c.Preemption)...),
		Items("state_transitions", "", &c.Transitions, transitionFields),
		Group("kv_transfer_config", transferFields(&c.KVTransfer)...),
		Group("profiling_matrix", profilingFields(&c.Profiling)...),
		Entries("execution_path_registry", &c.Paths,
			func(p *ieg.ExecutionPaths) *string { return &p.Model }, pathFields),
		Group("fallback_policy",
			Words("order", &c.Fallback.Order, fallbackSteps...),
			Percent("max_latency_increase", &c.Fallback.MaxLatencyIncrease, 100)),
	}
}

// NodeFields binds one Node Spec.
func NodeFields(s *ieg.NodeSpec) []Field {
	if *s == (ieg.NodeSpec{}) { // about to be read
		s.Type, s.Stage = noType, noStage
		s.Parallel.Strategy, s.Parallel.Degree = "none", 1
	}
	return []Field{
		String("id", &s.ID),
		{"type", nodeType{s}},
		{"stage", nodeStage{s}},
		String("model", &s.Model),
		word("priority", &s.Priority, []string{"high", "medium", "low"}),
		Group("compute", Sparse(Count("flops", &s.Compute.FLOPs)), word("precision", &s.Compute.Precision, precisions)),
		Group("memory", Sparse(Bytes("vram", &s.Memory.VRAM)), Sparse(Bytes("kv_cache_size", &s.Memory.KVCache)),
			Sparse(Bytes("bytes_moved", &s.Memory.BytesMoved))),
		Group("io", Sparse(Bytes("bytes", &s.IO.Bytes))),
		Sparse(Span("latency_sla", &s.LatencySLA)),
		Group("parallelism", OneOf("strategy", &s.Parallel.Strategy, "tensor_parallel", "pipeline", "none"),
			Int("degree", &s.Parallel.Degree, 1, 1024)),
		Group("affinity", String("kv_cache_location", &s.Affinity.KVLocation),
			Sparse(Bool("required", &s.Affinity.Required)), Field{"preferred", preferred{s}}),
	}
}

// word is OneOf that is left out when empty.
func word(key string, to *string, words []string) Field { return Sparse(OneOf(key, to, words...)) }

// DeviceFields binds one Resource Spec (the inside of device).
func DeviceFields(s *ieg.ResourceSpec) []Field {
	return []Field{
		String("id", &s.ID), String("type", &s.Type), String("vendor", &s.Vendor),
		String("model", &s.Model), String("series", &s.Series),
		Group("compute", Sparse(Count("fp16_flops", &s.Compute.FP16)), Sparse(Count("int8_flops", &s.Compute.INT8)),
			Sparse(Words("precision_support", &s.Compute.Precisions, precisions...))),
		Group("memory", Sparse(Bytes("vram", &s.Memory.VRAM)), Sparse(Rate("bandwidth", &s.Memory.Bandwidth))),
		Group("io", Sparse(Rate("read_bw", &s.IO.Read)), Sparse(Rate("write_bw", &s.IO.Write)), Sparse(Rate("net_bw", &s.IO.Net))),
		Group("interconnect", String("type", &s.Interconnect.Type), Sparse(Rate("bandwidth", &s.Interconnect.Bandwidth))),
		Group("topology", String("host", &s.Topology.Host), String("nvlink_domain", &s.Topology.NVLinkDomain),
			String("rack", &s.Topology.Rack), String("site", &s.Topology.Site)),
		Sparse(Count("price", &s.Price)),
		Group("utilization", Sparse(Percent("compute", &s.Utilization.Compute, 1)), Sparse(Percent("memory", &s.Utilization.Memory, 1))),
	}
}

func dagFields(l *graph.Limits) []Field {
	return []Field{
		Int("max_depth", &l.MaxDepth, 0, graph.MaxNodes),
		Int("max_nodes", &l.MaxNodes, 0, graph.MaxNodes),
		Int("max_tool_calls", &l.MaxToolCalls, 0, graph.MaxNodes),
		Int("max_agent_rounds", &l.MaxAgentRounds, 0, 255),
		Int64("max_token_budget", &l.MaxTokens),
		Bytes("max_kv_cache_size", &l.MaxKV),
		Span("max_compute_time", &l.MaxCompute),
	}
}

func terminationFields(c *Config) []Field {
	return []Field{
		Span("timeout", &c.Limits.Timeout),
		OneOf("budget_exhaustion", &c.BudgetExhaustion, "abort"),
		Bool("graceful_stop", &c.Limits.Graceful),
	}
}

func preemptionFields(p *ieg.Preemption) []Field {
	return []Field{
		Bool("enabled", &p.Enabled),
		Int("min_priority_gap", &p.MinPriorityGap, 1, int(ieg.NumClasses)),
		Span("preemption_overhead", &p.Overhead),
		OneOf("resume_policy", &p.Resume, "immediate"),
		Int("max_preempt_per_request", &p.MaxPerRequest, 0, 255),
	}
}

func transferFields(t *ieg.KVTransfer) []Field {
	return []Field{
		Bytes("chunk_size", &t.ChunkSize),
		Int("pipeline_depth", &t.PipelineDepth, 1, 64),
		Bool("overlap_compute", &t.OverlapCompute),
		OneOf("compression", &t.Compression, ieg.CompressINT8, ieg.CompressNone, ieg.CompressAuto),
	}
}

func profilingFields(m *ieg.ProfilingMatrix) []Field {
	return []Field{
		Sparse(Words("models", &m.Models)), Sparse(Words("devices", &m.Devices)),
		Words("precisions", &m.Precisions, precisions...),
		Ints("batch_sizes", &m.Batches, 1, 4096),
		Ints("lengths", &m.Lengths, 1, math.MaxInt32),
		Words("prefill", &m.Prefill, prefillMetrics...),
		Words("decode", &m.Decode, decodeMetrics...),
		Items("absent", "", &m.Absent, func(a *ieg.AbsentCells) []Field {
			return []Field{
				String("model", &a.Model), String("device", &a.Device), word("precision", &a.Precision, precisions),
				Sparse(Int("batch", &a.Batch, 1, 4096)), Sparse(Int("length", &a.Length, 1, math.MaxInt32)),
				String("reason", &a.Reason),
			}
		}),
	}
}

func pathFields(p *ieg.ExecutionPaths) []Field {
	return []Field{Items("variants", "", &p.Variants, func(v *ieg.Variant) []Field {
		return []Field{
			word("precision", &v.Precision, precisions), String("backend", &v.Backend),
			Sparse(Words("compatible_devices", &v.Devices)), String("artifact_path", &v.Artifact),
		}
	})}
}
