//go:build !amd64

package codec

func packF16(scales, q, raw []byte)    { packPlainF16(scales, q, raw) }
func packBF16(scales, q, raw []byte)   { packPlainBF16(scales, q, raw) }
func unpackF16(raw, scales, q []byte)  { unpackPlainF16(raw, scales, q) }
func unpackBF16(raw, scales, q []byte) { unpackPlainBF16(raw, scales, q) }
