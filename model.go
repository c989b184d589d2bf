package ieg

// AttentionKind is the kind of attention of a group of layers, as far as KV
// is concerned.
type AttentionKind uint8

// The kinds of attention.
const (
	FullAttention   AttentionKind = iota // keys and values of all tokens (MHA, GQA)
	SlidingWindow                        // of the last Window tokens
	LatentAttention                      // MLA: one latent row a token
	NoAttention                          // recurrent or pooled: no KV per token
)

// KVGroup describes the KV of layers that are alike.
type KVGroup struct {
	Kind    AttentionKind `json:"kind"`
	Layers  int           `json:"layers"`
	KVHeads int           `json:"kv_heads,omitempty"`
	HeadDim int           `json:"head_dim,omitempty"`
	// Latent is the elements per token and layer of MLA (512+64 for
	// DeepSeek-V3).
	Latent int `json:"latent,omitempty"`
	// Window is the number of tokens that a sliding layer keeps.
	Window int `json:"window,omitempty"`
	// ElemBytes is the size of a stored element (2 for f16).
	ElemBytes float64 `json:"elem_bytes"`
}

// ModelInfo is what is known of a model from its metadata.
type ModelInfo struct {
	Name    string   `json:"name"` // unique on this host
	Aliases []string `json:"aliases,omitempty"`
	Path    string   `json:"path,omitempty"`
	// Digest identifies the weights: hex of a hash over the file.
	Digest string `json:"digest,omitempty"`
	Arch   string `json:"arch"`
	Quant  string `json:"quant,omitempty"` // e.g. "Q4_1", from the file type

	Params       int64     `json:"params"`
	ActiveParams int64     `json:"active_params"` // = Params unless mixture of experts
	WeightBytes  int64     `json:"weight_bytes"`
	Layers       int       `json:"layers"`
	DModel       int       `json:"d_model"`
	Heads        int       `json:"heads"`
	KV           []KVGroup `json:"kv"`
	ContextTrain int32     `json:"context_train"`
	Vocab        int32     `json:"vocab"`

	Generative bool   `json:"generative"`
	Embedding  bool   `json:"embedding"`
	Pooling    string `json:"pooling,omitempty"` // "mean", "cls", "last"

	ChatTemplate string  `json:"-"`
	BOS          Token   `json:"bos"`
	EOS          Token   `json:"eos"`
	AddBOS       bool    `json:"add_bos"`
	AddEOS       bool    `json:"add_eos"` // plain texts end with EOS (BERT: [SEP])
	EOG          []Token `json:"-"`
	BOSText      string  `json:"-"`
	EOSText      string  `json:"-"`
	// ControlText lists the spellings of control tokens, which user text must
	// not turn into.
	ControlText []string `json:"-"`
}

// Layout is how an engine keeps the KV of its slots.
type Layout uint8

// The layouts of llama.cpp's KV cache.
const (
	// Unified: all slots share one buffer of cells; copies of a prefix are
	// free; every cell in it, idle or not, costs time in each step.
	Unified Layout = iota
	// Streams: a buffer per slot; copies move bytes; idle slots cost nothing,
	// but slots computed in one step should be neighbours.
	Streams
)

// String returns "unified" or "streams".
func (l Layout) String() string {
	if l == Streams {
		return "streams"
	}
	return "unified"
}

// MarshalText writes the layout's name.
func (l Layout) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// EngineInfo is what an engine says of itself once it has loaded its model.
type EngineInfo struct {
	ID      EngineID  `json:"id"`
	Epoch   Epoch     `json:"epoch"`
	Model   ModelInfo `json:"model"`
	Device  string    `json:"device"`  // id of the device it runs on
	Backend string    `json:"backend"` // "CPU", "Vulkan", "CUDA", "synthetic" …
	Library string    `json:"library"` // name and version of the library

	Layout    Layout `json:"layout"`
	FlashAttn bool   `json:"flash_attention"`
	KVType    string `json:"kv_type"`
	// Slots is the number of rows of KV.
	Slots int32 `json:"slots"`
	// SlotTokens is the most tokens that one slot can hold: the context.
	SlotTokens int32 `json:"slot_tokens"`
	// Cells is the number of tokens that all slots together can hold.
	Cells int32 `json:"cells"`
	// StepTokens is the most tokens of a batch; UBatch of one pass inside it.
	StepTokens int32 `json:"step_tokens"`
	UBatch     int32 `json:"ubatch"`
	// Tile is the chunk size in whose multiples a sequence's prompt is
	// cheapest to compute, by a wide margin in long contexts; 0: any size.
	Tile     int32 `json:"tile,omitempty"`
	Threads  int   `json:"threads"`
	Prefixes bool  `json:"prefixes"` // slots may be trimmed and copied
	// KVToken is the bytes of one token's KV as blocks hold them; 0: the KV
	// can't leave the engine, and KVNote says why, or what else is amiss.
	KVToken int64  `json:"kv_bytes_per_token,omitempty"`
	KVNote  string `json:"kv_note,omitempty"`
	// KVName tells KV apart that must not be mixed: model digest, adapter, KV
	// type, order of rows and the version that wrote them. Engines with the
	// same name can use each other's blocks.
	KVName string `json:"kv_name,omitempty"`
	// KVINT8 tells that blocks may be kept as int8.
	KVINT8 bool `json:"kv_int8,omitempty"`
	// KVPieces tells that a Load takes the time of what it adds, whatever its
	// slot holds, so that rows may come up piece by piece.
	KVPieces bool `json:"kv_pieces,omitempty"`

	WeightBytes  int64 `json:"weight_bytes_resident"`
	KVBytes      int64 `json:"kv_bytes"`
	ComputeBytes int64 `json:"compute_bytes"`

	// Probe holds the measured candidates of the layout choice.
	Probe []LayoutProbe `json:"probe,omitempty"`
}

// LayoutProbe is one measured candidate of the KV layout.
type LayoutProbe struct {
	Layout     Layout  `json:"layout"`
	FlashAttn  bool    `json:"flash_attention"`
	KVType     string  `json:"kv_type"`
	DecodeTPS  float64 `json:"decode_tokens_per_s"`
	PrefillTPS float64 `json:"prefill_tokens_per_s"`
	Chosen     bool    `json:"chosen"`
}
