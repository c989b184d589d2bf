package cost

import (
	"math"

	"ieg"
)

// Work says what a node computes, in the model's terms.
type Work struct {
	Stage ieg.Stage
	// Tokens to compute: the uncached prompt (prefill, embed) or the expected
	// output (decode).
	Tokens int32
	// Past tokens have their KV already.
	Past int32
	// Batch is the number of equal sequences computed together; 0 means 1.
	Batch int32
	// Degree is the number of devices that share the work; 0 means 1.
	Degree int32
	// IO bytes from or to network and disk (tool, retrieval), or of KV on the
	// move (migrate).
	IO int64
	// FLOPs of a tool on the CPU.
	FLOPs float64
}

// Demand is σ(v): the demand of work w of model m (nil for tool, retrieval and
// control nodes). Compute stages follow
//
//	prefill: C = 2·active·tokens·batch + attention, B = weights touched + KV written and read
//	decode:  C = the same per step,     B = steps·weights touched + Σ over steps of KV read
//
// with attention = 4·layers·d_model·Σ(context of each token)·batch — for a
// whole prompt the 2·layers·d_model·tokens²·batch of the specification — once
// the context is longer than LongPromptTokens. FLOPs, Bytes and IO are those
// of the whole node; Memory is per device.
func Demand(m *ieg.ModelInfo, w Work) ieg.Demand {
	switch w.Stage {
	case ieg.StagePrefill, ieg.StageEmbed:
		return prefill(m, w)
	case ieg.StageDecode:
		return decode(m, w)
	case ieg.StageMigrate:
		return ieg.Demand{Bytes: float64(w.IO), IO: float64(w.IO), KV: w.IO, Memory: w.IO}
	case ieg.StageTool, ieg.StageRetrieval:
		return ieg.Demand{FLOPs: w.FLOPs, IO: float64(w.IO)}
	}
	return ieg.Demand{FLOPs: w.FLOPs}
}

func prefill(m *ieg.ModelInfo, w Work) ieg.Demand {
	batch, tokens := float64(max(w.Batch, 1)), float64(w.Tokens)
	d := ieg.Demand{FLOPs: 2 * float64(m.ActiveParams) * tokens * batch}
	if w.Past+w.Tokens > LongPromptTokens {
		d.FLOPs += attentionFLOPs(m, w.Past, w.Tokens) * batch
	}
	d.Bytes = WeightsTouched(m, tokens*batch)
	kv := KVBytes(m, w.Past+w.Tokens)
	if w.Stage == ieg.StagePrefill {
		// Past KV is read, the whole is what the pass leaves behind.
		d.Bytes += float64(kv) * batch
		d.KV = kv * int64(batch)
	}
	d.Memory = perDevice(m.WeightBytes+d.KV, w.Degree)
	return d
}

func decode(m *ieg.ModelInfo, w Work) ieg.Demand {
	batch, steps := float64(max(w.Batch, 1)), float64(w.Tokens)
	d := ieg.Demand{FLOPs: 2 * float64(m.ActiveParams) * steps * batch}
	if w.Past+w.Tokens > LongPromptTokens {
		d.FLOPs += attentionFLOPs(m, w.Past, w.Tokens) * batch
	}
	written := KVBytes(m, w.Past+w.Tokens) - KVBytes(m, w.Past)
	d.Bytes = steps*WeightsTouched(m, batch) + batch*(kvRead(m, w.Past, w.Tokens)+float64(written))
	d.KV = KVBytes(m, w.Past+w.Tokens) * int64(batch)
	d.Memory = perDevice(m.WeightBytes+d.KV, w.Degree)
	return d
}

func perDevice(bytes int64, degree int32) int64 {
	n := int64(max(degree, 1))
	return (bytes + n - 1) / n
}

// WeightsTouched is the expected bytes of weights that one pass over tokens
// reads: all of a dense model; of a mixture of experts the share that at least
// one token picks, 1 − (1 − active/params)^tokens.
func WeightsTouched(m *ieg.ModelInfo, tokens float64) float64 {
	if m.ActiveParams >= m.Params || m.Params == 0 {
		return float64(m.WeightBytes)
	}
	active := float64(m.ActiveParams) / float64(m.Params)
	return float64(m.WeightBytes) * (1 - math.Pow(1-active, max(tokens, 1)))
}

// KVBytes is the size of the KV of one sequence of tokens:
//
//	grouped-query   2·kv_heads·head_dim·tokens·bytes
//	sliding window  the same with min(tokens, window)
//	MLA             latent·tokens·bytes
//	none            0
//
// summed over the layers of each group, each group rounded up to a byte.
func KVBytes(m *ieg.ModelInfo, tokens int32) int64 {
	var sum int64
	for i := range m.KV {
		g := &m.KV[i]
		n := float64(tokens)
		if g.Kind == ieg.SlidingWindow && g.Window > 0 {
			n = min(n, float64(g.Window))
		}
		sum += int64(math.Ceil(rowBytes(g) * n))
	}
	return sum
}

// KVBytesPerToken is what one more token adds while no window is full.
func KVBytesPerToken(m *ieg.ModelInfo) int64 { return KVBytes(m, 1) }

// rowBytes is the KV of one token in all layers of a group.
func rowBytes(g *ieg.KVGroup) float64 {
	switch g.Kind {
	case ieg.FullAttention, ieg.SlidingWindow:
		return 2 * float64(g.KVHeads) * float64(g.HeadDim) * float64(g.Layers) * g.ElemBytes
	case ieg.LatentAttention:
		return float64(g.Latent) * float64(g.Layers) * g.ElemBytes
	}
	return 0
}

// kvRead is the KV read by n steps that start with past tokens in the cache.
func kvRead(m *ieg.ModelInfo, past, n int32) float64 {
	var sum float64
	for i := range m.KV {
		g := &m.KV[i]
		sum += rowBytes(g) * attended(past, n, window(g))
	}
	return sum
}

// attentionFLOPs of n tokens after past ones: 4·d_model per layer and pair of
// a token with one that it sees (scores and weighted sum, 2 each).
func attentionFLOPs(m *ieg.ModelInfo, past, n int32) float64 {
	if len(m.KV) == 0 {
		return 4 * float64(m.Layers) * float64(m.DModel) * attended(past, n, 0)
	}
	var sum float64
	for i := range m.KV {
		g := &m.KV[i]
		if g.Kind != ieg.NoAttention {
			sum += 4 * float64(g.Layers) * float64(m.DModel) * attended(past, n, window(g))
		}
	}
	return sum
}

func window(g *ieg.KVGroup) int {
	if g.Kind == ieg.SlidingWindow {
		return g.Window
	}
	return 0
}

// Attended is Σ of the context lengths seen by n tokens that follow past ones:
// n·past + n²/2, the number of cells an attention layer reads for them.
func Attended(past, n int32) int64 { return int64(attended(past, n, 0)) }

// attended is Attended with a window (0: none), as the continuous sum
// ∫ min(x, window) from past to past+n.
func attended(past, n int32, window int) float64 {
	p, q := float64(past), float64(past)+float64(n)
	w := float64(window)
	if window <= 0 || q <= w {
		return (q*q - p*p) / 2
	}
	if p >= w {
		return w * (q - p)
	}
	return (w*w-p*p)/2 + w*(q-w)
}

// Sync is what the members of a device group exchange for one node.
type Sync struct {
	Bytes float64 // sent by each member
	Hops  float64 // messages one after the other
}

// Seconds over a link.
func (s Sync) Seconds(l ieg.Link) float64 {
	if s.Bytes == 0 && s.Hops == 0 {
		return 0
	}
	return s.Bytes/l.Bandwidth + s.Hops*l.Latency.Seconds()
}

// Strategies of a device group.
const (
	TensorParallel = "tensor_parallel"
	Pipeline       = "pipeline"
)

// SyncOf is the traffic inside a group of degree devices. Tensor parallelism
// makes two ring all-reduces a layer, each 2·(n−1)/n times the activations in
// 2·(n−1) hops; a pipeline hands activations over n−1 times a pass.
func SyncOf(m *ieg.ModelInfo, w Work, strategy string) Sync {
	n := float64(w.Degree)
	if m == nil || n < 2 {
		return Sync{}
	}
	passes, rows := 1.0, float64(w.Tokens)*float64(max(w.Batch, 1))
	if w.Stage == ieg.StageDecode {
		passes = float64(w.Tokens)
	}
	bytes := rows * float64(m.DModel) * activationBytes
	if strategy == Pipeline {
		return Sync{Bytes: (n - 1) * bytes, Hops: (n - 1) * passes}
	}
	layers := float64(m.Layers)
	return Sync{Bytes: 2 * layers * 2 * (n - 1) / n * bytes, Hops: 2 * layers * 2 * (n - 1) * passes}
}
