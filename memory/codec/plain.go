package codec

import (
	"encoding/binary"
	"math"
)

// group is a raw group.
type group [groupElems]uint16

func readGroup(raw []byte) (x group) {
	for i := range x {
		x[i] = binary.LittleEndian.Uint16(raw[2*i:])
	}
	return x
}

// tame replaces what can't be packed and returns the largest magnitude.
func (x *group) tame(finite, limit uint16) uint16 {
	var top uint16
	for i, h := range x {
		a := h & signless
		if a > limit {
			if a > finite {
				a = 0
			} else {
				a = limit
			}
			x[i] = a | h&^signless
		}
		top = max(top, a)
	}
	return top
}

// toByte rounds v, at most 127.4 in magnitude, to the nearest even integer:
// the sum's last bits are the integer's.
func toByte(v float32) byte { return byte(math.Float32bits(v + 0x1.8p23)) }

func packPlainF16(scales, q, raw []byte) {
	for ; len(raw) > 0; scales, q, raw = scales[scaleBytes:], q[groupElems:], raw[groupBytes:] {
		x := readGroup(raw)
		scale := f16Up(f16ToF32(x.tame(f16Finite, f16Limit)) / 127)
		binary.LittleEndian.PutUint16(scales, scale)
		inv := 1 / max(f16ToF32(scale), 0x1p-24)
		for i, h := range x {
			q[i] = toByte(float32(f16ToF32(h) * inv))
		}
	}
}

func packPlainBF16(scales, q, raw []byte) {
	for ; len(raw) > 0; scales, q, raw = scales[scaleBytes:], q[groupElems:], raw[groupBytes:] {
		x := readGroup(raw)
		top := x.tame(bf16Finite, bf16Limit)
		scale := max(bf16Up(bf16ToF32(top)/127), bf16MinScale)
		inv := 1 / bf16ToF32(scale)
		if top == 0 {
			scale = 0
		}
		binary.LittleEndian.PutUint16(scales, scale)
		for i, h := range x {
			q[i] = toByte(float32(bf16ToF32(h) * inv))
		}
	}
}

func unpackPlainF16(raw, scales, q []byte) {
	for ; len(raw) > 0; scales, q, raw = scales[scaleBytes:], q[groupElems:], raw[groupBytes:] {
		scale := f16ToF32(finiteOr0(binary.LittleEndian.Uint16(scales), f16Finite))
		for i, b := range q[:groupElems] {
			binary.LittleEndian.PutUint16(raw[2*i:], f16FromF32(float32(int8(b))*scale))
		}
	}
}

func unpackPlainBF16(raw, scales, q []byte) {
	for ; len(raw) > 0; scales, q, raw = scales[scaleBytes:], q[groupElems:], raw[groupBytes:] {
		scale := bf16ToF32(finiteOr0(binary.LittleEndian.Uint16(scales), bf16Finite))
		for i, b := range q[:groupElems] {
			binary.LittleEndian.PutUint16(raw[2*i:], bf16FromF32(float32(int8(b))*scale))
		}
	}
}

func finiteOr0(h, finite uint16) uint16 {
	if h&signless > finite {
		return 0
	}
	return h
}
