// Package codec proves and packs the bytes of KV blocks: a digest, and what
// each ieg.Codec does to a piece. The node and its engines use the same code,
// and the NVMe tier and other hosts hold what it wrote, so the bytes it makes
// do not depend on the machine.
//
// The digest is CRC-64/NVME. It finds damage, not malice.
//
// CodecRaw keeps bytes as they are. CodecINT8 takes a piece of f16 or bf16
// elements, a multiple of 128 bytes, as groups of 64. A packed piece of G
// groups is
//
//	G scales, 2 bytes each, in the piece's own type, least byte first
//	G × 64 signed bytes
//
// with element ≈ scale × byte. The scale is max|x|/127, rounded up, so a byte
// lies in [-127, 127] and none overflows. Division, product and roundings are
// those of float32, to the nearest even one but for the scale, so that vector
// code and plain Go make the same bytes.
//
// The corners, the same everywhere:
//   - a group of zeros has scale 0;
//   - NaN and infinities are packed as 0 and do not count for the scale;
//   - a magnitude above 65440 (f16) or 127 × 2^121 (bf16) is packed as that
//     one: what comes back is then finite;
//   - scales of bf16 are at least 2^-126, so that 1/scale is finite: groups
//     below that are lost;
//   - a scale that is NaN or infinite, which Encode does not write, decodes to
//     a group of zeros.
//
// Vector code is written by the command in gen (go generate).
package codec
