package codec

import "math"

// Patterns of the two types without their signs: the largest finite number,
// and the largest whose group still decodes to finite numbers.
const (
	f16Finite, f16Limit   = 0x7bff, 0x7bfd
	bf16Finite, bf16Limit = 0x7f7f, 0x7f7e
	signless              = 0x7fff
	// bf16MinScale is 2^-126.
	bf16MinScale = 0x0080
)

// f16ToF32 widens a finite f16.
func f16ToF32(h uint16) float32 {
	// The fields of both types line up after the shift, but for the bias of
	// the exponent: 112 more. Subnormals come out right by the same product.
	v := math.Float32bits(math.Float32frombits(uint32(h&signless)<<13) * 0x1p112)
	return math.Float32frombits(v | uint32(h&^signless)<<16)
}

// f16FromF32 rounds to the nearest even f16; v is no NaN.
func f16FromF32(v float32) uint16 {
	u := math.Float32bits(v)
	sign := uint16(u >> 16 &^ signless)
	u &^= 1 << 31
	switch v = math.Float32frombits(u); {
	case v < 0x1p-14: // subnormal: the addition rounds to multiples of 2^-24
		return sign | uint16(math.Float32bits(v+0.5)-math.Float32bits(0.5))
	case v >= 65520:
		return sign | (f16Finite + 1)
	}
	u += 0xfff + u>>13&1
	return sign | uint16(u>>13-112<<10)
}

// f16Up rounds v, neither negative nor above the largest f16, up.
func f16Up(v float32) uint16 {
	if v < 0x1p-14 {
		return uint16(math.Ceil(float64(v) * 0x1p24))
	}
	return uint16((math.Float32bits(v)+0x1fff)>>13 - 112<<10)
}

// bf16ToF32 widens a bf16.
func bf16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// bf16FromF32 rounds to the nearest even bf16; v is no NaN.
func bf16FromF32(v float32) uint16 {
	u := math.Float32bits(v)
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// bf16Up rounds v, not negative, up.
func bf16Up(v float32) uint16 { return uint16((math.Float32bits(v) + 0xffff) >> 16) }
