package events

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"ieg"
)

// batch is the content of one message.
type batch struct {
	seq    uint64
	at     time.Time
	model  string
	clear  bool // what was told before is void
	events []ieg.KVEvent
}

var media = [ieg.NumTiers]string{ieg.TierDevice: "GPU", ieg.TierHost: "CPU", ieg.TierNVMe: "STORAGE"}

// change is one event as it is published: blocks of one tier that follow each
// other, of equal size.
type change struct {
	kind   ieg.KVEventKind
	tier   ieg.Tier
	blocks []ieg.KVEvent
}

// changes joins neighbours that one event can tell.
func changes(events []ieg.KVEvent) (out []change) {
	for i := range events {
		e := &events[i]
		if n := len(out); n > 0 && joins(out[n-1].blocks, e) {
			out[n-1].blocks = events[i-len(out[n-1].blocks) : i+1]
			continue
		}
		out = append(out, change{e.Kind, e.Tier, events[i : i+1]})
	}
	return out
}

func joins(blocks []ieg.KVEvent, e *ieg.KVEvent) bool {
	last := &blocks[len(blocks)-1]
	if last.Kind != e.Kind || last.Tier != e.Tier {
		return false
	}
	return e.Kind == ieg.KVRemoved || e.Block.Parent == last.Block.Hash && len(e.Block.Tokens) == len(last.Block.Tokens)
}

// short is a block's hash as it is published.
func short(h ieg.BlockHash) uint64 { return binary.BigEndian.Uint64(h[8:]) }

// encoder writes payloads. Its methods return no error: the buffer takes
// everything, and numbers and strings can all be written.
type encoder struct {
	form Form
	buf  bytes.Buffer
	msg  *msgpack.Encoder
}

func newEncoder(f Form) *encoder {
	e := &encoder{form: f}
	e.msg = msgpack.NewEncoder(&e.buf)
	return e
}

// payload is the third frame; the caller owns it.
func (e *encoder) payload(b *batch) []byte {
	e.buf.Reset()
	list := changes(b.events)
	n := len(list)
	if b.clear {
		n++
	}
	e.array(3)
	_ = e.msg.EncodeFloat64(float64(b.at.UnixNano()) / 1e9)
	e.array(n)
	if b.clear {
		e.begin("AllBlocksCleared", 0)
	}
	for i := range list {
		if list[i].kind == ieg.KVStored {
			e.stored(&list[i])
		} else {
			e.removed(&list[i])
		}
	}
	e.number(0) // the rank: a node is one
	return bytes.Clone(e.buf.Bytes())
}

func (e *encoder) stored(c *change) {
	first := &c.blocks[0].Block
	e.begin("BlockStored", 11)
	e.hashes(c)
	e.field("parent_block_hash")
	if first.Parent == first.Root {
		e.null()
	} else {
		e.number(short(first.Parent))
	}
	e.field("token_ids")
	e.array(len(c.blocks) * len(first.Tokens))
	for i := range c.blocks {
		for _, t := range c.blocks[i].Block.Tokens {
			e.number(uint64(uint32(t)))
		}
	}
	e.field("block_size")
	e.number(uint64(len(first.Tokens)))
	e.field("lora_id")
	e.null()
	e.text("medium", media[c.tier])
	e.field("lora_name")
	e.null()
	e.field("extra_keys")
	e.null()
	e.field("group_idx")
	e.number(0)
	// One group holds all layers: a block is whole, whatever they attend to.
	e.text("kv_cache_spec_kind", "full_attention")
	e.field("kv_cache_spec_sliding_window")
	e.null()
	e.locality()
}

func (e *encoder) removed(c *change) {
	e.begin("BlockRemoved", 3)
	e.hashes(c)
	e.text("medium", media[c.tier])
	e.field("group_idx")
	e.number(0)
	e.locality()
}

// begin opens an event of n fields that both forms have; maps add locality to
// those that have any.
func (e *encoder) begin(tag string, n int) {
	switch {
	case e.form == Arrays:
		e.array(1 + n)
	case n == 0:
		_ = e.msg.EncodeMapLen(1)
	default:
		_ = e.msg.EncodeMapLen(n + 2)
	}
	e.text("type", tag)
}

func (e *encoder) field(name string) {
	if e.form == Maps {
		_ = e.msg.EncodeString(name)
	}
}

func (e *encoder) text(name, value string) {
	e.field(name)
	_ = e.msg.EncodeString(value)
}

func (e *encoder) hashes(c *change) {
	e.field("block_hashes")
	e.array(len(c.blocks))
	for i := range c.blocks {
		e.number(short(c.blocks[i].Block.Hash))
	}
}

func (e *encoder) locality() {
	if e.form == Maps {
		e.text("locality", "LOCAL")
	}
}

func (e *encoder) array(n int)     { _ = e.msg.EncodeArrayLen(n) }
func (e *encoder) number(n uint64) { _ = e.msg.EncodeUint(n) }
func (e *encoder) null()           { _ = e.msg.EncodeNil() }
