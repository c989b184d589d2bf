package pager

import (
	"slices"

	"ieg"
	"ieg/memory/tier"
)

// int8Unit is the number of raw bytes that int8 packs together.
const int8Unit = 128

// growPacked makes room for the encoded blocks of a batch.
func (p *Pager) growPacked(jobs []ieg.Move) {
	var most int64
	for i := range jobs {
		most += jobs[i].Block.Bytes
	}
	if p.packed = p.packed[:0]; int64(cap(p.packed)) < most && p.cfg.Compression != CompressNone {
		p.packed = make([]byte, 0, most)
	}
}

// pack makes an item's bytes int8 where that is wanted and allowed.
func (p *Pager) pack(it *tier.Item) {
	b := &it.Block
	n := len(b.Tokens)
	if b.Codec != ieg.CodecRaw || b.Bytes%int64(n) != 0 || p.cfg.Compression == CompressNone {
		return
	}
	perToken := int(b.Bytes) / n
	piece, rest := perToken*ieg.PieceTokens, perToken*(n%ieg.PieceTokens)
	if n < ieg.PieceTokens {
		piece = rest
	}
	if piece%int8Unit != 0 || rest%int8Unit != 0 {
		return
	}
	size := 0
	for left := int(b.Bytes); left > 0; left -= piece {
		size += p.cfg.Arena.Size(ieg.CodecINT8, min(piece, left))
	}
	kvType, ok := p.pays(b.Root)
	if !ok || len(p.packed)+size > cap(p.packed) {
		return
	}
	at := len(p.packed)
	p.packed = p.packed[:at+size]
	out := p.packed[at:]
	p.encode(kvType, out, it.Data, piece, int(b.Bytes))
	b.Codec, b.Bytes, b.Digest = ieg.CodecINT8, int64(size), p.cfg.Arena.Digest(0, out)
	it.Data = [][]byte{out}
}

// pays tells whether blocks of a root are to be packed, and their elements'
// type.
func (p *Pager) pays(root ieg.BlockHash) (kvType string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.known.roots[root]
	if !r.INT8 {
		return "", false
	}
	if p.cfg.Compression == CompressAuto && p.known.index.Bytes() < p.cfg.Size/2 {
		return "", false
	}
	return r.KVType, true
}

// encode packs the parts piece by piece.
func (p *Pager) encode(kvType string, dst []byte, parts [][]byte, piece, left int) {
	parts = slices.Clone(parts)
	var joined []byte
	for ; left > 0; left -= piece {
		n := min(piece, left)
		var src []byte
		if len(parts[0]) >= n {
			src, parts[0] = parts[0][:n], parts[0][n:]
		} else {
			joined = joined[:0]
			for len(joined) < n {
				k := min(n-len(joined), len(parts[0]))
				joined = append(joined, parts[0][:k]...)
				if parts[0] = parts[0][k:]; len(parts[0]) == 0 {
					parts = parts[1:]
				}
			}
			src = joined
		}
		for len(parts) > 0 && len(parts[0]) == 0 {
			parts = parts[1:]
		}
		size := p.cfg.Arena.Size(ieg.CodecINT8, n)
		p.cfg.Arena.Encode(ieg.CodecINT8, kvType, dst[:size], src)
		dst = dst[size:]
	}
}
