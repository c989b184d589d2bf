package llama

import (
	"path/filepath"
	"strings"

	"ieg"
	"ieg/devices/engine/llama/gguf"
)

// modelInfo reads what the file says of the model; the vocabulary adds the
// texts of its tokens later. elem is the bytes of a stored element of KV.
func modelInfo(m *modelFile, elem float64) ieg.ModelInfo {
	h := m.head
	arch := h.String("general.architecture")
	num := func(key string) int { n, _ := h.Uint(arch + "." + key); return int(n) }
	info := ieg.ModelInfo{
		Path: m.paths[0], Digest: m.digest, Arch: arch, Quant: h.Quant(),
		Params: m.params, ActiveParams: m.params, WeightBytes: m.bytes,
		Layers: num("block_count"), DModel: num("embedding_length"),
		ContextTrain: int32(num("context_length")),
		ChatTemplate: h.String("tokenizer.chat_template"),
	}
	if heads, ok := h.PerLayer(arch+".attention.head_count", info.Layers); ok {
		for _, n := range heads {
			info.Heads = max(info.Heads, n)
		}
	}
	if experts, used := num("expert_count"), num("expert_used_count"); experts > 0 && used > 0 {
		info.ActiveParams = m.params - m.expert + int64(float64(m.expert)*float64(used)/float64(experts))
	}
	causal, told := h.Bool(arch + ".attention.causal")
	encoder := told && !causal || strings.HasSuffix(arch, "bert") || arch == "t5encoder"
	info.Generative = !encoder
	info.Pooling = [...]string{"", "mean", "cls", "last"}[min(num("pooling_type"), 3)]
	info.Embedding = encoder || info.Pooling != ""
	if info.Generative {
		info.KV = kvGroups(h, arch, info, elem)
	}
	return info
}

// kvGroups groups the layers by the KV they keep.
func kvGroups(h *gguf.File, arch string, info ieg.ModelInfo, elem float64) []ieg.KVGroup {
	num := func(key string) int { n, _ := h.Uint(arch + "." + key); return int(n) }
	heads, ok := h.PerLayer(arch+".attention.head_count_kv", info.Layers)
	if !ok {
		heads = make([]int, info.Layers)
		for i := range heads {
			heads[i] = info.Heads
		}
	}
	if rank := num("attention.kv_lora_rank"); rank > 0 {
		return []ieg.KVGroup{{Kind: ieg.LatentAttention, Layers: info.Layers, Latent: rank + num("rope.dimension_count"), ElemBytes: elem}}
	}
	dim := num("attention.key_length")
	if dim == 0 && info.Heads > 0 {
		dim = info.DModel / info.Heads
	}
	if v := num("attention.value_length"); v > 0 {
		dim = (dim + v) / 2
	}
	window := num("attention.sliding_window")
	slides := slidingLayers(h, arch, info.Layers)
	var groups []ieg.KVGroup
	for i, n := range heads {
		g := ieg.KVGroup{Kind: ieg.FullAttention, KVHeads: n, HeadDim: dim, ElemBytes: elem}
		switch {
		case n == 0:
			g = ieg.KVGroup{Kind: ieg.NoAttention, ElemBytes: elem}
		case window > 0 && slides(i):
			g.Kind, g.Window = ieg.SlidingWindow, window
		}
		groups = addLayer(groups, g)
	}
	return groups
}

// addLayer counts a layer in its group.
func addLayer(groups []ieg.KVGroup, g ieg.KVGroup) []ieg.KVGroup {
	for i := range groups {
		same := groups[i]
		same.Layers = 0
		if same == g {
			groups[i].Layers++
			return groups
		}
	}
	g.Layers = 1
	return append(groups, g)
}

// patterns gives, per architecture, after how many layers one attends to all
// tokens, where the file doesn't tell; 1 means that the window isn't used.
var patterns = map[string]int{
	"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt-oss": 2, "cohere2": 4, "exaone4": 4, "llama": 1, "qwen2": 1, "phi3": 1,
}

// slidingLayers tells which layers have a sliding window.
func slidingLayers(h *gguf.File, arch string, layers int) func(int) bool {
	key := arch + ".attention.sliding_window_pattern"
	if n, ok := h.Uint(key); ok && n > 0 {
		return func(i int) bool { return i%int(n) < int(n)-1 }
	}
	if per, ok := h.PerLayer(key, layers); ok {
		return func(i int) bool { return per[i] != 0 }
	}
	if n := patterns[arch]; n > 0 {
		return func(i int) bool { return i%n < n-1 }
	}
	return func(int) bool { return true }
}

// kvBytes is the memory of one token in all layers, as the library lays it
// out: sliding layers keep all tokens too, since only so can a slot be cut and
// copied.
func kvBytes(groups []ieg.KVGroup) int64 {
	sum := 0.0
	for _, g := range groups {
		switch g.Kind {
		case ieg.LatentAttention:
			sum += float64(g.Layers*g.Latent) * g.ElemBytes
		case ieg.NoAttention:
		default:
			sum += 2 * float64(g.Layers*g.KVHeads*g.HeadDim) * g.ElemBytes
		}
	}
	return int64(sum)
}

// shortName is a model's name when none was given: its file's.
func shortName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".gguf")
}
