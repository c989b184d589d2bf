package llama

import (
	"fmt"
	"strings"

	yz "github.com/hybridgroup/yzma/pkg/llama"

	"ieg"
	"ieg/cgo/llamax"
)

// shape is how a context is built.
type shape struct {
	layout     ieg.Layout
	flash      bool
	kv         yz.GGMLType
	slots      int32
	slotTokens int32 // of one slot in streams; of all together when unified: cells
	cells      int32
	batch      int32
	ubatch     int32
	threads    int
	device     bool // another device than the CPU computes
	pooling    yz.PoolingType
	embed      bool
	// spare sequences beside the slots, in the unified layout.
	spare int32
	watch *llamax.Watch // of the first decodes, or nil
}

// engineContext is a context of the library with its threads and its batch.
type engineContext struct {
	lib   *library
	shape shape
	ctx   yz.Context
	mem   yz.Memory // 0 for models that keep no KV
	pool  yz.Threadpool
	batch *batch
	abort *llamax.Flag
}

// newContext builds a context; its abort flag is shared by all of an engine.
func newContext(lib *library, model yz.Model, s shape, abort *llamax.Flag) (*engineContext, error) {
	p := yz.ContextDefaultParams()
	p.NCtx, p.NSeqMax = uint32(s.cells), uint32(s.slots+s.spare)
	p.NBatch, p.NUbatch = uint32(s.batch), uint32(s.ubatch)
	p.NThreads, p.NThreadsBatch = int32(s.threads), int32(s.threads)
	p.TypeK, p.TypeV = s.kv, s.kv
	p.KVUnified, p.SwaFull, p.NoPerf = 0, 1, 1
	if s.layout == ieg.Unified {
		p.KVUnified = 1
	}
	p.FlashAttentionType = yz.FlashAttentionTypeDisabled
	if s.flash {
		p.FlashAttentionType = yz.FlashAttentionTypeEnabled
	}
	if s.embed {
		p.Embeddings, p.PoolingType = 1, s.pooling
	} else {
		// Rows of logits are reserved for one token of each slot only.
		p.NOutputsMax = p.NSeqMax
	}
	if s.watch != nil {
		p.CbEval, p.CbEvalUserData = s.watch.Callback()
	}
	lib.log.Take()
	c := &engineContext{lib: lib, shape: s, abort: abort, batch: newBatch(int(s.batch))}
	var err error
	if c.ctx, err = yz.InitFromModel(model, p); err != nil {
		return nil, contextError(s, lib.log.Take())
	}
	c.mem, _ = yz.GetMemory(c.ctx)
	tp := yz.ThreadpoolParamsDefault(int32(s.threads))
	if c.pool, err = yz.ThreadpoolNew(&tp); err != nil {
		c.close()
		return nil, fmt.Errorf("start %d engine threads: %w", s.threads, err)
	}
	yz.AttachThreadpool(c.ctx, uintptr(c.pool), uintptr(c.pool))
	lib.x.AbortOn(uintptr(c.ctx), abort)
	return c, nil
}

// contextError tells a lack of memory from a shape the model refuses.
func contextError(s shape, log string) error {
	low := strings.ToLower(log)
	if strings.Contains(low, "alloc") || strings.Contains(low, "memory") || strings.Contains(low, "buffer") {
		return fmt.Errorf("%w: no room for %d tokens of KV in %d slots (%s); ask for a smaller context or fewer slots", ieg.ErrOutOfMemory, s.cells, s.slots, log)
	}
	return fmt.Errorf("%w: the model refuses the context (%s layout, flash attention %v): %s", ieg.ErrUnsupported, s.layout, s.flash, log)
}

func (c *engineContext) close() {
	if c == nil {
		return
	}
	if c.ctx != 0 {
		_ = yz.Free(c.ctx)
	}
	yz.ThreadpoolFree(c.pool)
}

// The codes of a decode.
const (
	decodeOK      = 0
	decodeNoRoom  = 1
	decodeAborted = 2
)

// decode runs the batch.
func (c *engineContext) decode() int32 {
	b := c.batch
	r, err := yz.Decode(c.ctx, yz.Batch{BatchData: yz.BatchData{
		NTokens: int32(b.n), Token: &b.token[0], Pos: &b.pos[0],
		NSeqId: &b.one[0], SeqId: &b.seqs[0], Logits: &b.output[0],
	}})
	if err != nil {
		return -1
	}
	return r
}

// logits is the row of the i-th output of the last decode, of rows.
func (c *engineContext) logits(rows, vocab int) []float32 {
	return c.lib.x.Logits(uintptr(c.ctx), rows, vocab)
}

// trim keeps the first n tokens of a slot.
func (c *engineContext) trim(slot, n int32) bool {
	if c.mem == 0 {
		return true
	}
	ok, err := yz.MemorySeqRm(c.mem, yz.SeqId(slot), yz.Pos(n), -1)
	return ok && err == nil
}

// held is the number of tokens that the library says a slot holds.
func (c *engineContext) held(slot int32) int32 {
	if c.mem == 0 {
		return 0
	}
	p, err := yz.MemorySeqPosMax(c.mem, yz.SeqId(slot))
	if err != nil {
		return 0
	}
	return int32(p) + 1
}

// export writes the library's state of a sequence into buf, which may be nil
// or too small.
func (c *engineContext) export(seq int32, buf []byte) ([]byte, error) {
	size := yz.StateSeqGetSize(c.ctx, yz.SeqId(seq))
	buf = sized(buf, int(size))
	if got := yz.StateSeqGetData(c.ctx, buf, yz.SeqId(seq)); got != size {
		return buf, fmt.Errorf("exported %d of %d bytes", got, size)
	}
	return buf, nil
}

// batch is a llama_batch in Go memory, one sequence a row.
type batch struct {
	n      int
	token  []yz.Token
	pos    []yz.Pos
	seq    []yz.SeqId
	output []int8
	one    []int32
	seqs   []*yz.SeqId
}

func newBatch(rows int) *batch {
	b := &batch{
		token: make([]yz.Token, rows), pos: make([]yz.Pos, rows), seq: make([]yz.SeqId, rows),
		output: make([]int8, rows), one: make([]int32, rows), seqs: make([]*yz.SeqId, rows+1),
	}
	for i := range rows {
		b.one[i], b.seqs[i] = 1, &b.seq[i]
	}
	return b
}

// add appends a row; the caller keeps to the batch's size.
func (b *batch) add(token ieg.Token, pos, seq int32, output bool) {
	b.token[b.n], b.pos[b.n], b.seq[b.n], b.output[b.n] = yz.Token(token), yz.Pos(pos), yz.SeqId(seq), 0
	if output {
		b.output[b.n] = 1
	}
	b.n++
}

// kvTypes are the element types that KV may have.
var kvTypes = map[string]yz.GGMLType{
	"": yz.GGMLTypeF16, "f16": yz.GGMLTypeF16, "f32": yz.GGMLTypeF32, "bf16": yz.GGMLTypeBF16,
	"q8_0": yz.GGMLTypeQ8_0, "q5_1": yz.GGMLTypeQ5_1, "q5_0": yz.GGMLTypeQ5_0,
	"q4_1": yz.GGMLTypeQ4_1, "q4_0": yz.GGMLTypeQ4_0, "iq4_nl": yz.GGMLTypeIQ4_NL,
}
