package codec

import "github.com/klauspost/cpuid/v2"

//go:generate go run ./gen

// vector tells whether the vector code runs here.
var vector = cpuid.CPU.Supports(cpuid.AVX2, cpuid.F16C)

// choose takes the plain code, the vector code, or, for what is too large to
// stay in the caches and begins where that needs it, the vector code that writes
// past them.
func choose[F any](dst []byte, plain, cached, past F) F {
	switch {
	case !vector:
		return plain
	case len(dst) >= pastBytes && aligned(dst):
		return past
	}
	return cached
}

func packerF16(q []byte) packer {
	return choose[packer](q, packPlainF16, packAVX2F16, packPastAVX2F16)
}

func packerBF16(q []byte) packer {
	return choose[packer](q, packPlainBF16, packAVX2BF16, packPastAVX2BF16)
}

func unpackerF16(raw []byte) unpacker {
	return choose[unpacker](raw, unpackPlainF16, unpackAVX2F16, unpackPastAVX2F16)
}

func unpackerBF16(raw []byte) unpacker {
	return choose[unpacker](raw, unpackPlainBF16, unpackAVX2BF16, unpackPastAVX2BF16)
}
