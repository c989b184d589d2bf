package tinygguf

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Config says what to write. The zero Config is a model of 2 layers, 64
// elements, 4 heads over 2 KV heads and 4,096 tokens of context, in about
// 0.6 MB.
type Config struct {
	Seed    uint64
	Layers  int
	DModel  int
	Heads   int
	KVHeads int
	Context int
	// Window > 0 gives the layers a sliding window (in metadata only).
	Window int
	// Pooling is "mean", "cls", "last" or "".
	Pooling string
	// NoTemplate leaves the chat template out.
	NoTemplate bool
}

// The control tokens, after the words of the vocabulary.
var control = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// userDefined tokens are text, though written as one token.
var userDefined = []string{"<tool_call>", "</tool_call>"}

// merges of the byte-level vocabulary; each makes a token of its own.
var merges = []string{"t h", "th e", "Ġ the", "i n", "Ġ a", "e r", "o n", "Ġ w", "Ã ©", "â Ĥ", "âĤ ¬", `" :`, `{ "`}

const template = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"

// Bytes is a model file.
func Bytes(c Config) []byte {
	c = c.withDefaults()
	w := &Writer{}
	c.metadata(w)
	vocab := c.vocabulary(w)
	c.tensors(w, vocab)
	return w.Bytes()
}

// Write writes a model into dir and returns its path.
func Write(dir string, c Config) (string, error) {
	path := filepath.Join(dir, fmt.Sprintf("tiny-%d.gguf", c.Seed))
	if err := os.WriteFile(path, Bytes(c), 0o644); err != nil {
		return "", fmt.Errorf("write a tiny model: %w", err)
	}
	return path, nil
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v   *int
		def int
	}{{&c.Layers, 2}, {&c.DModel, 64}, {&c.Heads, 4}, {&c.KVHeads, 2}, {&c.Context, 4096}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	return c
}

func (c Config) metadata(w *Writer) {
	w.String("general.architecture", "llama")
	w.String("general.name", "tiny random")
	w.Uint("general.file_type", 0)
	w.Uint("llama.block_count", uint32(c.Layers))
	w.Uint("llama.context_length", uint32(c.Context))
	w.Uint("llama.embedding_length", uint32(c.DModel))
	w.Uint("llama.feed_forward_length", uint32(2*c.DModel))
	w.Uint("llama.attention.head_count", uint32(c.Heads))
	w.Uint("llama.attention.head_count_kv", uint32(c.KVHeads))
	w.Float("llama.attention.layer_norm_rms_epsilon", 1e-5)
	w.Uint("llama.rope.dimension_count", uint32(c.DModel/c.Heads))
	w.Float("llama.rope.freq_base", 10000)
	if c.Window > 0 {
		w.Uint("llama.attention.sliding_window", uint32(c.Window))
	}
	if p := map[string]uint32{"mean": 1, "cls": 2, "last": 3}[c.Pooling]; p > 0 {
		w.Uint("llama.pooling_type", p)
	}
}

// vocabulary writes the tokenizer and returns the number of tokens.
func (c Config) vocabulary(w *Writer) int {
	var tokens []string
	var kinds []int32
	add := func(kind int32, s ...string) {
		for _, t := range s {
			tokens, kinds = append(tokens, t), append(kinds, kind)
		}
	}
	for b := range 256 {
		add(1, string(byteRune(b)))
	}
	for _, m := range merges {
		add(1, strings.ReplaceAll(m, " ", ""))
	}
	add(3, control...)
	add(4, userDefined...)
	w.String("tokenizer.ggml.model", "gpt2")
	w.String("tokenizer.ggml.pre", "gpt-2")
	w.Strings("tokenizer.ggml.tokens", tokens)
	w.Ints("tokenizer.ggml.token_type", kinds)
	w.Strings("tokenizer.ggml.merges", merges)
	first := uint32(256 + len(merges))
	w.Uint("tokenizer.ggml.bos_token_id", first)
	w.Uint("tokenizer.ggml.eos_token_id", first+2)
	w.Bool("tokenizer.ggml.add_bos_token", false)
	if !c.NoTemplate {
		w.String("tokenizer.chat_template", template)
	}
	return len(tokens)
}

// byteRune is the character by which byte-level vocabularies write a byte:
// itself if it prints, else one from U+0100 on.
func byteRune(b int) rune {
	prints := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if prints(b) {
		return rune(b)
	}
	n := rune(0x100)
	for i := range b {
		if !prints(i) {
			n++
		}
	}
	return n
}

func (c Config) tensors(w *Writer, vocab int) {
	r := rand.New(rand.NewPCG(c.Seed, 1))
	d, kv, ff := c.DModel, c.DModel/c.Heads*c.KVHeads, 2*c.DModel
	random := func(name string, in, out int, gain float64) {
		v := make([]float32, in*out)
		for i := range v {
			v[i] = float32(r.NormFloat64() * gain / math.Sqrt(float64(in)))
		}
		w.Tensor(name, []uint64{uint64(in), uint64(out)}, v)
	}
	ones := func(name string) {
		v := make([]float32, d)
		for i := range v {
			v[i] = 1
		}
		w.Tensor(name, []uint64{uint64(d)}, v)
	}
	random("token_embd.weight", d, vocab, math.Sqrt(float64(d)))
	for i := range c.Layers {
		p := fmt.Sprintf("blk.%d.", i)
		ones(p + "attn_norm.weight")
		random(p+"attn_q.weight", d, d, 1.5)
		random(p+"attn_k.weight", d, kv, 1.5)
		random(p+"attn_v.weight", d, kv, 1.5)
		random(p+"attn_output.weight", d, d, 1.5)
		ones(p + "ffn_norm.weight")
		random(p+"ffn_gate.weight", d, ff, 1.5)
		random(p+"ffn_up.weight", d, ff, 1.5)
		random(p+"ffn_down.weight", ff, d, 1.5)
	}
	ones("output_norm.weight")
	random("output.weight", d, vocab, 3)
}
