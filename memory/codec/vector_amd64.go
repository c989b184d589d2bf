package codec

import "github.com/klauspost/cpuid/v2"

//go:generate go run ./gen

// vector tells whether the vector code runs here.
var vector = cpuid.CPU.Supports(cpuid.AVX2, cpuid.F16C)

func packF16(scales, q, raw []byte) {
	if vector {
		packAVX2F16(scales, q, raw)
	} else {
		packPlainF16(scales, q, raw)
	}
}

func packBF16(scales, q, raw []byte) {
	if vector {
		packAVX2BF16(scales, q, raw)
	} else {
		packPlainBF16(scales, q, raw)
	}
}

func unpackF16(raw, scales, q []byte) {
	if vector {
		unpackAVX2F16(raw, scales, q)
	} else {
		unpackPlainF16(raw, scales, q)
	}
}

func unpackBF16(raw, scales, q []byte) {
	if vector {
		unpackAVX2BF16(raw, scales, q)
	} else {
		unpackPlainBF16(raw, scales, q)
	}
}
