package codec

import (
	"fmt"

	"github.com/minio/crc64nvme"

	"ieg"
)

// The element types that CodecINT8 packs.
const (
	F16  = "f16"
	BF16 = "bf16"
)

// Digest continues a digest over b; it begins with 0. What the bytes are cut
// into does not matter.
func Digest(sum uint64, b []byte) uint64 { return crc64nvme.Update(sum, b) }

// Size is the length in bytes of n raw bytes under a codec. It panics if n is
// no whole number of groups.
func Size(c ieg.Codec, n int) int {
	switch c {
	case ieg.CodecRaw:
		return n
	case ieg.CodecINT8:
		if n < 0 || n%groupBytes != 0 {
			panic(fmt.Sprintf("codec: %d bytes are no whole groups of %d", n, groupBytes))
		}
		return n / groupBytes * packedBytes
	}
	panic(fmt.Sprintf("codec: unknown codec %d", uint8(c)))
}

// Encode packs src, elements of kvType, into dst, which is Size(c, len(src))
// long and does not overlap it. CodecRaw takes any type, CodecINT8 F16 and
// BF16. It panics at wrong lengths and types.
func Encode(c ieg.Codec, kvType string, dst, src []byte) {
	check(c, len(src), len(dst))
	if c == ieg.CodecRaw {
		copy(dst, src)
		return
	}
	groups := len(src) / groupBytes
	scales, q := dst[:groups*scaleBytes], dst[groups*scaleBytes:]
	for pack := encoder(kvType, q); groups > 0; {
		n := min(groups, callGroups)
		pack(scales[:n*scaleBytes], q[:n*groupElems], src[:n*groupBytes])
		scales, q, src = scales[n*scaleBytes:], q[n*groupElems:], src[n*groupBytes:]
		groups -= n
	}
}

// Decode is the inverse of Encode, up to the codec's loss: src is
// Size(c, len(dst)) long.
func Decode(c ieg.Codec, kvType string, dst, src []byte) {
	check(c, len(dst), len(src))
	if c == ieg.CodecRaw {
		copy(dst, src)
		return
	}
	groups := len(dst) / groupBytes
	scales, q := src[:groups*scaleBytes], src[groups*scaleBytes:]
	for unpack := decoder(kvType, dst); groups > 0; {
		n := min(groups, callGroups)
		unpack(dst[:n*groupBytes], scales[:n*scaleBytes], q[:n*groupElems])
		scales, q, dst = scales[n*scaleBytes:], q[n*groupElems:], dst[n*groupBytes:]
		groups -= n
	}
}

func check(c ieg.Codec, raw, packed int) {
	if want := Size(c, raw); packed != want {
		panic(fmt.Sprintf("codec: %d bytes are %d under codec %d, not %d", raw, want, uint8(c), packed))
	}
}

// packer packs whole groups, unpacker is its inverse: one scale, 64 bytes of q
// and 128 raw bytes for each.
type (
	packer   func(scales, q, raw []byte)
	unpacker func(raw, scales, q []byte)
)

// encoder is the code that writes q.
func encoder(kvType string, q []byte) packer {
	switch kvType {
	case F16:
		return packerF16(q)
	case BF16:
		return packerBF16(q)
	}
	panic(fmt.Sprintf("codec: int8 does not pack %q", kvType))
}

// decoder is the code that writes raw.
func decoder(kvType string, raw []byte) unpacker {
	switch kvType {
	case F16:
		return unpackerF16(raw)
	case BF16:
		return unpackerBF16(raw)
	}
	panic(fmt.Sprintf("codec: int8 does not pack %q", kvType))
}
