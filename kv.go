package ieg

import (
	"encoding/hex"
	"fmt"
	"time"
)

// Tier is a level of KV memory.
type Tier uint8

// The tiers, from the fastest down (L0, L1, L2 of the specification).
const (
	TierDevice Tier = iota // the engine's own cells
	TierHost               // pages of the node's arena
	TierNVMe               // the data folder
	NumTiers
)

var tierNames = [...]string{"device", "host", "nvme"}

// String is the name used in code, metrics and commands.
func (t Tier) String() string { return tierNames[t] }

// MarshalText writes the name.
func (t Tier) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// BlockTokens is the number of tokens of a full KV block, and PieceTokens that
// of a piece: what one copy between an engine and the arena moves at least.
const (
	BlockTokens = 256
	PieceTokens = 64
)

// BlockHash names the content of a KV block: a hash over the name of the block
// before it and its tokens. The name before the first block, the root, is a
// hash over all else that decides what KV holds: the model's digest, adapter,
// KV type, layout and tenant (memory/kv makes both).
type BlockHash [16]byte

// String is the name in hex.
func (h BlockHash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the name in hex.
func (h BlockHash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a name in hex.
func (h *BlockHash) UnmarshalText(b []byte) error {
	if len(b) != 2*len(h) {
		return fmt.Errorf("the name of a block has %d hexadecimal digits, not %d", 2*len(h), len(b))
	}
	_, err := hex.Decode(h[:], b)
	return err
}

// Page numbers a page of the arena.
type Page uint32

// Codec says how the bytes of a block are kept.
type Codec uint8

// The codecs.
const (
	CodecRaw  Codec = iota // as the engine has them
	CodecINT8              // f16 or bf16 in groups of 64: one scale, 64 signed bytes
	NumCodecs
)

var codecNames = [...]string{"none", "int8"}

// String is the name used in the configuration.
func (c Codec) String() string { return codecNames[c] }

// MarshalText writes the name.
func (c Codec) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Block is a run of tokens with its KV, as it is kept below the device. Its
// bytes are the pieces of its tokens in order, PieceTokens each, the last one
// shorter; a piece holds, layer after layer, the rows of K of its tokens, then
// layer after layer the rows of V, and is encoded by itself.
type Block struct {
	Hash   BlockHash
	Parent BlockHash // the block before it, or the root
	Root   BlockHash
	Start  int32   // position of its first token: a multiple of BlockTokens
	Tokens []Token // BlockTokens, or less at the end of a text
	Codec  Codec
	Bytes  int64  // as kept
	Digest uint64 // of those bytes
}

// Extent is a block's place in the arena, as an engine needs it. It fills its
// pages in order.
type Extent struct {
	Start  int32 // position of the block's first token
	N      int32 // tokens of the block
	Codec  Codec
	Bytes  int64
	Digest uint64 // Load: of those bytes
	Pages  []Page
}

// CopyDone reports a KVSave or KVLoad.
type CopyDone struct {
	Op int32 // index in Batch.Ops
	// Digest is, after a Save or an open Load, that of the last extent's bytes up
	// to the end of what was copied.
	Digest uint64
	// Bad is, after a Load, one more than the index of the first extent whose
	// bytes are not what its digest says; the slot is then empty. 0: none.
	Bad  int32
	Took time.Duration
	// Ran is the processor time of the thread that runs steps in Took; where the
	// thread was not put off, they are the same.
	Ran time.Duration
}

// MoveID numbers a move of this host; counters, never reused.
type MoveID uint64

// MoveKind is the kind of a Move.
type MoveKind uint8

// The kinds of moves between the arena and the NVMe tier.
const (
	MoveStore MoveKind = iota // arena → NVMe
	MoveFetch                 // NVMe → arena
)

// Move asks for a block to be copied between the arena and the NVMe tier. Its
// pages are pinned until its MoveDone.
type Move struct {
	ID    MoveID
	Kind  MoveKind
	Block Block // of a Fetch: as it was promised by Stored
	Pages []Page
}

// MoveDone is the end of a move.
type MoveDone struct {
	ID MoveID
	// Err is "" when the block is where it should be. Gone tells that it is not
	// in the NVMe tier (any more), or was not what its digest says.
	Err  string
	Gone bool
	// Codec, Bytes and Digest are of the copy in the NVMe tier.
	Codec  Codec
	Bytes  int64
	Digest uint64
	Took   time.Duration // without the time it waited for others
}

// Stored is the part of a prompt that the NVMe tier holds: blocks in order,
// each the parent of the next, the first one's parent the root. Only the first
// Tokens of the prompt are covered; the last block may hold more.
type Stored struct {
	Blocks []Block
	Tokens int32
}

// KVEventKind is what happened to a block.
type KVEventKind uint8

// The kinds of a KVEvent.
const (
	KVStored  KVEventKind = iota // a tier got it
	KVRemoved                    // a tier lost it
)

// KVEvent tells that a tier got or lost a block. The NVMe tier gives blocks up
// by itself, which is told when it is noticed, and may be told to have a block
// again.
type KVEvent struct {
	Kind  KVEventKind
	Tier  Tier
	Model string
	// Block has its names, Start and Tokens; of a removed one its Hash only.
	Block Block
}
