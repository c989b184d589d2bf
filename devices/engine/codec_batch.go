package engine

import (
	"encoding/binary"
	"fmt"

	"ieg"
)

// checkBatch refuses a batch that the other side would not take.
func checkBatch(b *ieg.Batch) error {
	if len(b.Work) > BatchSeqs || len(b.New) > BatchSeqs || len(b.Drop) > BatchOps || len(b.Ops) > BatchOps {
		return fmt.Errorf("%w: batch of %d work, %d new, %d dropped, %d operations is over the limits (%d, %d, %d, %d)",
			ieg.ErrProtocol, len(b.Work), len(b.New), len(b.Drop), len(b.Ops), BatchSeqs, BatchSeqs, BatchOps, BatchOps)
	}
	for i := range b.Ops {
		if err := checkOp(i, &b.Ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func checkOp(i int, op *ieg.KVOp) error {
	if len(op.Extents) > OpExtents {
		return fmt.Errorf("%w: operation %d has %d extents, the limit is %d", ieg.ErrProtocol, i, len(op.Extents), OpExtents)
	}
	for j := range op.Extents {
		if n := len(op.Extents[j].Pages); n > ExtentPages {
			return fmt.Errorf("%w: extent %d of operation %d has %d pages, the limit is %d", ieg.ErrProtocol, j, i, n, ExtentPages)
		}
	}
	return nil
}

func appendBatch(d []byte, b *ieg.Batch) []byte {
	d = binary.AppendUvarint(d, uint64(b.Engine))
	d = binary.AppendUvarint(d, uint64(b.Epoch))
	d = binary.AppendUvarint(d, uint64(b.Step))
	d = appendI32(d, b.Grant)
	d = binary.AppendUvarint(d, uint64(len(b.Drop)))
	for _, seq := range b.Drop {
		d = binary.AppendUvarint(d, uint64(seq))
	}
	d = binary.AppendUvarint(d, uint64(len(b.New)))
	for i := range b.New {
		d = appendSeqStart(d, &b.New[i])
	}
	d = binary.AppendUvarint(d, uint64(len(b.Ops)))
	for i := range b.Ops {
		d = appendOp(d, &b.Ops[i])
	}
	d = binary.AppendUvarint(d, uint64(len(b.Work)))
	for i := range b.Work {
		w := &b.Work[i]
		d = binary.AppendUvarint(d, uint64(w.Seq))
		d = appendI32(d, w.Slot)
		d = appendI32(d, w.Start)
		d = appendI32(d, w.N)
		d = appendBool(d, w.Sample)
	}
	return d
}

// The least bytes that an element of each list takes.
const (
	dropSize     = 1
	opSize       = 16
	extentSize   = 13
	workSize     = 5
	seqStartSize = 44
	resultSize   = 3
	copySize     = 12
)

// decodeBatch fills b, whose outer slices and those of Ops are used again. What New points to
// is made anew, so that a Runner may keep it.
func decodeBatch(body []byte, b *ieg.Batch) error {
	r := reader{b: body}
	b.Engine = ieg.EngineID(r.u32())
	b.Epoch = ieg.Epoch(r.u32())
	b.Step = ieg.StepID(r.uvarint())
	b.Grant = r.i32()
	b.Drop = resize(b.Drop, r.count(dropSize, BatchOps))
	for i := range b.Drop {
		b.Drop[i] = ieg.SeqID(r.uvarint())
	}
	b.New = resize(b.New, r.count(seqStartSize, BatchSeqs))
	for i := range b.New {
		b.New[i] = readSeqStart(&r)
	}
	b.Ops = resize(b.Ops, r.count(opSize, BatchOps))
	for i := range b.Ops {
		readOp(&r, &b.Ops[i])
	}
	b.Work = resize(b.Work, r.count(workSize, BatchSeqs))
	for i := range b.Work {
		b.Work[i] = ieg.Work{
			Seq: ieg.SeqID(r.uvarint()), Slot: ieg.Slot(r.i32()),
			Start: r.i32(), N: r.i32(), Sample: r.bool(),
		}
	}
	return r.done()
}

func appendOp(d []byte, op *ieg.KVOp) []byte {
	d = append(d, byte(op.Kind))
	d = appendI32(d, op.From)
	d = appendI32(d, op.To)
	d = appendI32(d, op.N)
	d = appendI32(d, op.Start)
	d = binary.LittleEndian.AppendUint64(d, op.Sum)
	d = appendBool(d, op.Next)
	d = appendBool(d, op.Open)
	d = binary.AppendUvarint(d, uint64(len(op.Extents)))
	for i := range op.Extents {
		d = appendExtent(d, &op.Extents[i])
	}
	return d
}

func readOp(r *reader, op *ieg.KVOp) {
	*op = ieg.KVOp{
		Kind: ieg.KVOpKind(r.u8(uint8(ieg.KVLoad))),
		From: ieg.Slot(r.i32()), To: ieg.Slot(r.i32()), N: r.i32(), Start: r.i32(), Sum: r.u64(), Next: r.bool(), Open: r.bool(),
		Extents: op.Extents[:0],
	}
	op.Extents = resize(op.Extents, r.count(extentSize, OpExtents))
	for i := range op.Extents {
		readExtent(r, &op.Extents[i])
	}
}

// A digest takes eight bytes: as a varint it would take nine or ten.
func appendExtent(d []byte, e *ieg.Extent) []byte {
	d = appendI32(d, e.Start)
	d = appendI32(d, e.N)
	d = append(d, byte(e.Codec))
	d = binary.AppendUvarint(d, uint64(e.Bytes))
	d = binary.LittleEndian.AppendUint64(d, e.Digest)
	d = binary.AppendUvarint(d, uint64(len(e.Pages)))
	for _, p := range e.Pages {
		d = binary.AppendUvarint(d, uint64(p))
	}
	return d
}

func readExtent(r *reader, e *ieg.Extent) {
	*e = ieg.Extent{
		Start: r.i32(), N: r.i32(), Codec: ieg.Codec(r.u8(uint8(ieg.NumCodecs - 1))),
		Bytes: int64(r.uvarint()), Digest: r.u64(), Pages: e.Pages[:0],
	}
	e.Pages = resize(e.Pages, r.count(1, ExtentPages))
	for i := range e.Pages {
		e.Pages[i] = ieg.Page(r.u32())
	}
}

func appendSeqStart(d []byte, s *ieg.SeqStart) []byte {
	d = binary.AppendUvarint(d, uint64(s.Seq))
	d = appendI32(d, s.Slot)
	d = appendTokens(d, s.Tokens)
	d = appendI32(d, s.Prompt)
	d = appendI32(d, s.MaxTokens)
	d = appendBool(d, s.Embed)
	return appendSampling(d, &s.Sampling)
}

func readSeqStart(r *reader) (s ieg.SeqStart) {
	s.Seq = ieg.SeqID(r.uvarint())
	s.Slot = ieg.Slot(r.i32())
	s.Tokens = r.tokens(FrameBytes)
	s.Prompt = r.i32()
	s.MaxTokens = r.i32()
	s.Embed = r.bool()
	readSampling(r, &s.Sampling)
	return s
}

func appendSampling(d []byte, s *ieg.Sampling) []byte {
	d = appendF32(d, s.Temperature)
	d = appendI32(d, s.TopK)
	d = appendF32(d, s.TopP)
	d = appendF32(d, s.MinP)
	d = appendF32(d, s.RepetitionPenalty)
	d = appendF32(d, s.PresencePenalty)
	d = appendF32(d, s.FrequencyPenalty)
	d = binary.AppendUvarint(d, uint64(len(s.LogitBias)))
	for _, x := range s.LogitBias {
		d = appendF32(appendI32(d, x.Token), x.Bias)
	}
	d = appendTokens(d, s.AllowedTokens)
	d = binary.AppendUvarint(d, s.Seed)
	d = appendI32(d, s.Choice)
	d = appendI32(d, s.Logprobs)
	d = appendString(d, s.Grammar)
	d = appendStrings(d, s.GrammarTriggers)
	d = appendTokens(d, s.StopTokens)
	d = appendStrings(d, s.Stop)
	d = appendBool(d, s.IncludeStop)
	d = appendBool(d, s.IgnoreEOS)
	d = appendI32(d, s.MinTokens)
	return appendBool(d, s.KeepSpecial)
}

func readSampling(r *reader, s *ieg.Sampling) {
	s.Temperature = r.f32()
	s.TopK = r.i32()
	s.TopP = r.f32()
	s.MinP = r.f32()
	s.RepetitionPenalty = r.f32()
	s.PresencePenalty = r.f32()
	s.FrequencyPenalty = r.f32()
	if n := r.count(5, FrameBytes); n > 0 {
		s.LogitBias = make([]ieg.TokenBias, n)
		for i := range s.LogitBias {
			s.LogitBias[i] = ieg.TokenBias{Token: ieg.Token(r.i32()), Bias: r.f32()}
		}
	}
	s.AllowedTokens = r.tokens(FrameBytes)
	s.Seed = r.uvarint()
	s.Choice = r.i32()
	s.Logprobs = r.i32()
	s.Grammar = r.string(FrameBytes)
	s.GrammarTriggers = r.strings(FrameBytes)
	s.StopTokens = r.tokens(FrameBytes)
	s.Stop = r.strings(FrameBytes)
	s.IncludeStop = r.bool()
	s.IgnoreEOS = r.bool()
	s.MinTokens = r.i32()
	s.KeepSpecial = r.bool()
}
