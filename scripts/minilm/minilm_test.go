package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// widen is the inverse of half, by arithmetic instead of bits.
func widen(h uint16) float64 {
	sign, exp, mant := 1.0, int(h>>10&31), float64(h&1023)
	if h&0x8000 != 0 {
		sign = -1
	}
	switch exp {
	case 31:
		if mant != 0 {
			return math.NaN()
		}
		return sign * math.Inf(1)
	case 0:
		return sign * math.Ldexp(mant, -24)
	}
	return sign * math.Ldexp(1024+mant, exp-25)
}

func TestHalf(t *testing.T) {
	for h := range 1 << 16 {
		f := widen(uint16(h))
		got := half(math.Float32bits(float32(f)))
		if math.IsNaN(f) {
			if !math.IsNaN(widen(got)) {
				t.Fatalf("%#04x is no number, but becomes %v", h, widen(got))
			}
			continue
		}
		if got != uint16(h) {
			t.Fatalf("%#04x is %v, which becomes %#04x", h, f, got)
		}
		// Between two neighbours the nearer one wins, and an even one a tie.
		next := widen(uint16(h) + 1)
		if h&0x7fff >= 0x7bff || math.IsNaN(next) {
			continue
		}
		for part, want := range map[float64]uint16{0.25: uint16(h), 0.5: uint16(h + h&1), 0.75: uint16(h + 1)} {
			if got := half(math.Float32bits(float32(f + (next-f)*part))); got != want {
				t.Fatalf("%v of the way from %#04x: %#04x, want %#04x", part, h, got, want)
			}
		}
	}
	for f, want := range map[float32]uint16{65520: 0x7c00, -1e10: 0xfc00, 1e-10: 0, -1e-10: 0x8000} {
		if got := half(math.Float32bits(f)); got != want {
			t.Errorf("%v becomes %#04x, want %#04x", f, got, want)
		}
	}
}

func TestVocabulary(t *testing.T) {
	tokens, types := vocabulary([]string{"[PAD]", "[unused0]", "the", "##tion", "#"})
	if got := fmt.Sprint(tokens, types); got != "[[PAD] ▁[unused0] ▁the tion ▁#] [3 1 1 1 1]" {
		t.Error(got)
	}
}

// tiny writes a wheel with a model of one layer; change may spoil its parts.
func tiny(t *testing.T, change func(files map[string]string)) string {
	t.Helper()
	type head struct {
		Type  string   `json:"dtype"`
		Shape []int64  `json:"shape"`
		At    [2]int64 `json:"data_offsets"`
	}
	header, data := map[string]any{}, []byte{}
	put := func(name string, shape ...int64) {
		n := int64(1)
		for _, d := range shape {
			n *= d
		}
		at := int64(len(data))
		for i := range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i)/8))
		}
		header[name] = head{"F32", shape, [2]int64{at, int64(len(data))}}
	}
	for _, r := range outer {
		put(r.from, 6, 4)
	}
	for _, r := range inner {
		put("encoder.layer.0."+r.from, 4, 4)
	}
	raw, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"config.json":       `{"model_type":"bert","hidden_act":"gelu","position_embedding_type":"absolute","hidden_size":4,"intermediate_size":4,"num_attention_heads":2,"num_hidden_layers":1,"max_position_embeddings":8,"type_vocab_size":2,"vocab_size":6,"layer_norm_eps":1e-12}`,
		"vocab.txt":         "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n",
		"model.safetensors": string(binary.LittleEndian.AppendUint64(nil, uint64(len(raw)))) + string(raw) + string(data),
	}
	if change != nil {
		change(files)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, body := range files {
		w, err := z.Create("some_package/model/" + name)
		if err == nil {
			_, err = w.Write([]byte(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.whl")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConvertTiny(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.gguf")
	if err := run(tiny(t, nil), out); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	if string(first[:4]) != "GGUF" || le.Uint32(first[4:]) != 3 || le.Uint64(first[8:]) != uint64(len(outer)+len(inner)) {
		t.Errorf("head %q", first[:24])
	}
	// 6×4 f16 embeddings first: 48 bytes padded to 64, then f32 positions.
	at := bytes.Index(first, []byte("position_embd.weight"))
	if at < 0 || le.Uint64(first[at+20+4+16+4:]) != 64 {
		t.Error("positions don't lie at 64")
	}
	if err := run(tiny(t, nil), out); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(out); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same wheel gave other bytes (%v)", err)
	}
}

func TestConvertRefuses(t *testing.T) {
	for want, change := range map[string]func(map[string]string){
		"no model/vocab.txt": func(f map[string]string) { delete(f, "vocab.txt") },
		"config.json says 6": func(f map[string]string) { f["vocab.txt"] += "b\n" },
		"no [CLS]":           func(f map[string]string) { f["vocab.txt"] = strings.Replace(f["vocab.txt"], "[CLS]", "x", 1) },
		"no model of this":   func(f map[string]string) { f["config.json"] = `{"model_type":"gpt2"}` },
		"tensor encoder.layer.1.attention.self.query.weight is missing": func(f map[string]string) {
			f["config.json"] = strings.Replace(f["config.json"], `"num_hidden_layers":1`, `"num_hidden_layers":2`, 1)
		},
		"bad tensor file": func(f map[string]string) { f["model.safetensors"] = f["model.safetensors"][:500] },
	} {
		out := filepath.Join(t.TempDir(), "out.gguf")
		err := run(tiny(t, change), out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) != 0 {
			t.Errorf("%s: left %q", want, left)
		}
	}
}

func FuzzTensors(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"))
	f.Add([]byte("\x45\x00\x00\x00\x00\x00\x00\x00" + `{"a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"__metadata__":{}}` + "1234"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := parseTensors(raw)
		if err != nil && !errors.Is(err, errTensors) {
			t.Fatalf("error without identity: %v", err)
		}
		for name, x := range list {
			n := int64(4)
			for _, d := range x.shape {
				n *= d
			}
			if n != int64(len(x.data)) {
				t.Fatalf("%s: shape %v, %d bytes", name, x.shape, len(x.data))
			}
		}
	})
}
