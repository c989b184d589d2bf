package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
)

// tensor is a view of one f32 tensor, row-major, little-endian.
type tensor struct {
	shape []int64 // outermost first
	data  []byte
}

var errTensors = errors.New("bad tensor file")

// parseTensors reads the safetensors format: an 8-byte length, a JSON header
// with name → type, shape and byte range, then the data. Tensors that aren't
// f32 (position ids) are left out.
func parseTensors(raw []byte) (map[string]tensor, error) {
	if len(raw) < 8 {
		return nil, fmt.Errorf("%w: %d bytes", errTensors, len(raw))
	}
	n := binary.LittleEndian.Uint64(raw)
	if n > maxHeaderBytes || n > uint64(len(raw)-8) {
		return nil, fmt.Errorf("%w: header of %d bytes in a file of %d", errTensors, n, len(raw))
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(raw[8:8+n], &header); err != nil {
		return nil, fmt.Errorf("%w: %v", errTensors, err)
	}
	data := raw[8+n:]
	out := make(map[string]tensor)
	for name, text := range header {
		if name == "__metadata__" {
			continue
		}
		var h struct {
			Type  string   `json:"dtype"`
			Shape []int64  `json:"shape"`
			At    [2]int64 `json:"data_offsets"`
		}
		if err := json.Unmarshal(text, &h); err != nil {
			return nil, fmt.Errorf("%w: %s: %v", errTensors, name, err)
		}
		if h.Type != "F32" {
			continue
		}
		if h.At[0] < 0 || h.At[0] > h.At[1] || h.At[1] > int64(len(data)) {
			return nil, fmt.Errorf("%w: %s lies at %v of %d bytes", errTensors, name, h.At, len(data))
		}
		bytes := h.At[1] - h.At[0]
		want := int64(4)
		for _, d := range h.Shape {
			if d <= 0 || want > maxModelBytes/d {
				return nil, fmt.Errorf("%w: %s has shape %v", errTensors, name, h.Shape)
			}
			want *= d
		}
		if want != bytes {
			return nil, fmt.Errorf("%w: %s has %d bytes for shape %v", errTensors, name, bytes, h.Shape)
		}
		out[name] = tensor{shape: h.Shape, data: data[h.At[0]:h.At[1]]}
	}
	return out, nil
}
