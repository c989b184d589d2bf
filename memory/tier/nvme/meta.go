package nvme

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ieg"
	"ieg/memory/tier"
)

// The first byte of an index key says what it names.
const (
	keyBlock  = 'b' // hash → entry
	keyTokens = 't' // hash → tokens
	keyPlace  = 'x' // file, offset → hash and stored size
	keyFile   = 'f' // file → record
	keyDay    = 'd' // → tier.Day
)

const (
	nonceBytes = 12
	// entryBytes is the length of an encoded entry without its nonce.
	entryBytes = 16 + 16 + 4 + 4 + 1 + 8 + 8 + 8 + 8 + 8
	recordSize = 4 * 8
	spotBytes  = 16 + 8
)

var errEncoding = errors.New("not an entry of the index")

// entry is what the index holds of a block.
type entry struct {
	meta tier.Meta
	file uint64
	off  int64
	// sealed tells that the bytes are encrypted, under nonce.
	sealed bool
	nonce  [nonceBytes]byte
}

// size is the length of the block's bytes in its file.
func (e *entry) size() int64 {
	if e.sealed {
		return e.meta.Bytes + sealBytes
	}
	return e.meta.Bytes
}

// at tells whether both are the same bytes.
func (e *entry) at(o *entry) bool { return e.file == o.file && e.off == o.off }

func (e *entry) encode() []byte {
	m, le := &e.meta, binary.LittleEndian
	b := make([]byte, 0, entryBytes+nonceBytes)
	b = append(b, m.Parent[:]...)
	b = append(b, m.Root[:]...)
	b = le.AppendUint32(b, uint32(m.Start))
	b = le.AppendUint32(b, uint32(m.N))
	b = append(b, byte(m.Codec))
	b = le.AppendUint64(b, uint64(m.Bytes))
	b = le.AppendUint64(b, m.Digest)
	b = le.AppendUint64(b, uint64(m.Stored))
	b = le.AppendUint64(b, e.file)
	b = le.AppendUint64(b, uint64(e.off))
	if e.sealed {
		b = append(b, e.nonce[:]...)
	}
	return b
}

func decodeEntry(h ieg.BlockHash, b []byte) (entry, error) {
	var e entry
	switch len(b) {
	case entryBytes:
	case entryBytes + nonceBytes:
		e.sealed = true
		copy(e.nonce[:], b[entryBytes:])
	default:
		return e, fmt.Errorf("%w: %d bytes", errEncoding, len(b))
	}
	m, le := &e.meta, binary.LittleEndian
	m.Hash = h
	copy(m.Parent[:], b)
	copy(m.Root[:], b[16:])
	b = b[32:]
	m.Start = int32(le.Uint32(b))
	m.N = int32(le.Uint32(b[4:]))
	m.Codec = ieg.Codec(b[8])
	b = b[9:]
	m.Bytes = int64(le.Uint64(b))
	m.Digest = le.Uint64(b[8:])
	m.Stored = int64(le.Uint64(b[16:]))
	e.file = le.Uint64(b[24:])
	e.off = int64(le.Uint64(b[32:]))
	if err := checkMeta(m); err != nil {
		return entry{}, fmt.Errorf("%w: %w", errEncoding, err)
	}
	if e.off < 0 || e.off%alignBytes != 0 {
		return entry{}, fmt.Errorf("%w: offset %d", errEncoding, e.off)
	}
	return e, nil
}

func checkMeta(m *tier.Meta) error {
	switch {
	case m.Start < 0:
		return fmt.Errorf("the block starts at token %d", m.Start)
	case m.N < 1 || m.N > ieg.BlockTokens:
		return fmt.Errorf("the block has %d tokens, not 1 to %d", m.N, ieg.BlockTokens)
	case m.Codec >= ieg.NumCodecs:
		return fmt.Errorf("the block has the unknown codec %d", m.Codec)
	case m.Bytes < 1 || m.Bytes > BlockBytes:
		return fmt.Errorf("the block has %d bytes, not 1 to %d", m.Bytes, int64(BlockBytes))
	}
	return nil
}

func encodeTokens(ts []ieg.Token) []byte {
	b := make([]byte, 0, 4*len(ts))
	for _, t := range ts {
		b = binary.LittleEndian.AppendUint32(b, uint32(t))
	}
	return b
}

func decodeTokens(b []byte, n int32) ([]ieg.Token, error) {
	if int64(len(b)) != 4*int64(n) {
		return nil, fmt.Errorf("%w: %d bytes for %d tokens", errEncoding, len(b), n)
	}
	ts := make([]ieg.Token, n)
	for i := range ts {
		ts[i] = ieg.Token(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return ts, nil
}

// record is what the index holds of an extent file.
type record struct {
	end    int64 // what lies beyond belongs to nobody
	blocks int64 // live ones
	live   int64 // their bytes with what aligns them: what a copy would take
	bytes  int64 // their bytes as the seam counts them
}

func (r *record) encode() []byte {
	b := make([]byte, 0, recordSize)
	for _, v := range []int64{r.end, r.blocks, r.live, r.bytes} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func decodeRecord(b []byte) (record, error) {
	if len(b) != recordSize {
		return record{}, fmt.Errorf("%w: %d bytes for a file", errEncoding, len(b))
	}
	var v [4]int64
	for i := range v {
		v[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
		if v[i] < 0 {
			return record{}, fmt.Errorf("%w: a negative count", errEncoding)
		}
	}
	return record{v[0], v[1], v[2], v[3]}, nil
}

// spot is one block in an extent file.
type spot struct {
	off  int64
	size int64
	hash ieg.BlockHash
}

func encodeSpot(h ieg.BlockHash, size int64) []byte {
	return binary.LittleEndian.AppendUint64(append(make([]byte, 0, spotBytes), h[:]...), uint64(size))
}

func decodeSpot(key, b []byte) (spot, error) {
	if len(key) != 1+8+8 || len(b) != spotBytes {
		return spot{}, fmt.Errorf("%w: %d and %d bytes for a place", errEncoding, len(key), len(b))
	}
	s := spot{off: int64(binary.BigEndian.Uint64(key[9:])), size: int64(binary.LittleEndian.Uint64(b[16:]))}
	copy(s.hash[:], b)
	if s.off < 0 || s.size < 1 || s.size > BlockBytes+sealBytes {
		return spot{}, fmt.Errorf("%w: %d bytes at %d", errEncoding, s.size, s.off)
	}
	return s, nil
}

func hashKey(kind byte, h ieg.BlockHash) []byte { return append([]byte{kind}, h[:]...) }

func fileKey(id uint64) []byte { return binary.BigEndian.AppendUint64([]byte{keyFile}, id) }

func placeKey(id uint64, off int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{keyPlace}, id), uint64(off))
}

// align is the first border at or behind n.
func align(n int64) int64 { return (n + alignBytes - 1) &^ (alignBytes - 1) }
