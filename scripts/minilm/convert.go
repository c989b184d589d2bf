package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Token types of the file format.
const (
	tokenNormal  = 1
	tokenControl = 3

	poolingMean = 1
	mostlyF16   = 1
)

// Control tokens and the metadata key of each.
var control = []struct{ text, key string }{
	{"[PAD]", "padding_token_id"},
	{"[UNK]", "unknown_token_id"},
	{"[CLS]", "cls_token_id"},
	{"[SEP]", "seperator_token_id"}, // the format's spelling
	{"[MASK]", "mask_token_id"},
}

// Tensors outside and inside the layers: the package's name, the file's, and
// whether it is a matrix (f16).
var outer = []rename{
	{"embeddings.word_embeddings.weight", "token_embd.weight", true},
	{"embeddings.position_embeddings.weight", "position_embd.weight", false},
	{"embeddings.token_type_embeddings.weight", "token_types.weight", false},
	{"embeddings.LayerNorm.weight", "token_embd_norm.weight", false},
	{"embeddings.LayerNorm.bias", "token_embd_norm.bias", false},
}

var inner = []rename{
	{"attention.self.query.weight", "attn_q.weight", true},
	{"attention.self.query.bias", "attn_q.bias", false},
	{"attention.self.key.weight", "attn_k.weight", true},
	{"attention.self.key.bias", "attn_k.bias", false},
	{"attention.self.value.weight", "attn_v.weight", true},
	{"attention.self.value.bias", "attn_v.bias", false},
	{"attention.output.dense.weight", "attn_output.weight", true},
	{"attention.output.dense.bias", "attn_output.bias", false},
	{"attention.output.LayerNorm.weight", "attn_output_norm.weight", false},
	{"attention.output.LayerNorm.bias", "attn_output_norm.bias", false},
	{"intermediate.dense.weight", "ffn_up.weight", true},
	{"intermediate.dense.bias", "ffn_up.bias", false},
	{"output.dense.weight", "ffn_down.weight", true},
	{"output.dense.bias", "ffn_down.bias", false},
	{"output.LayerNorm.weight", "layer_output_norm.weight", false},
	{"output.LayerNorm.bias", "layer_output_norm.bias", false},
}

type rename struct {
	from, to string
	half     bool
}

// convert writes the model as one file.
func convert(src *source, out io.Writer) error {
	var f file
	if err := setMetadata(&f, src); err != nil {
		return err
	}
	add := func(prefix, toPrefix string, list []rename) error {
		for _, r := range list {
			t, ok := src.tensors[prefix+r.from]
			if !ok {
				return fmt.Errorf("tensor %s%s is missing", prefix, r.from)
			}
			f.tensors = append(f.tensors, outTensor{name: toPrefix + r.to, half: r.half, src: t})
		}
		return nil
	}
	if err := add("", "", outer); err != nil {
		return err
	}
	for i := range src.config.Layers {
		if err := add(fmt.Sprintf("encoder.layer.%d.", i), fmt.Sprintf("blk.%d.", i), inner); err != nil {
			return err
		}
	}
	return f.write(out)
}

func setMetadata(f *file, src *source) error {
	c := src.config
	f.set("general.architecture", "bert")
	f.set("general.name", "all-MiniLM-L6-v2")
	f.set("general.license", "apache-2.0")
	f.set("general.file_type", uint32(mostlyF16))
	f.set("bert.block_count", c.Layers)
	f.set("bert.context_length", c.Context)
	f.set("bert.embedding_length", c.Hidden)
	f.set("bert.feed_forward_length", c.FF)
	f.set("bert.attention.head_count", c.Heads)
	f.set("bert.attention.layer_norm_epsilon", c.Eps)
	f.set("bert.attention.causal", false)
	f.set("bert.pooling_type", uint32(poolingMean))

	f.set("tokenizer.ggml.model", "bert")
	f.set("tokenizer.ggml.token_type_count", c.Types)
	tokens, types := vocabulary(src.vocab)
	f.set("tokenizer.ggml.tokens", tokens)
	f.set("tokenizer.ggml.token_type", types)
	for _, t := range control {
		id := slices.Index(src.vocab, t.text)
		if id < 0 {
			return fmt.Errorf("vocab.txt has no %s", t.text)
		}
		f.set("tokenizer.ggml."+t.key, uint32(id))
	}
	return nil
}

// vocabulary turns WordPiece spellings into the engine's: a word begins with
// "▁" there, and its continuation is bare, where WordPiece writes "word" and
// "##tion".
func vocabulary(vocab []string) (tokens []string, types []int32) {
	for _, text := range vocab {
		kind := int32(tokenNormal)
		for _, t := range control {
			if text == t.text {
				kind = tokenControl
			}
		}
		rest, inside := strings.CutPrefix(text, "##")
		switch {
		case kind == tokenControl:
		case inside:
			text = rest
		default:
			text = "▁" + text
		}
		tokens, types = append(tokens, text), append(types, kind)
	}
	return tokens, types
}
