package engine

import (
	"encoding/binary"
	"time"

	"ieg"
)

// The bits of a result's flags byte: which parts follow.
const (
	hasToken = 1 << iota
	hasText
	hasStop
	hasStopText
	hasLogprob
	hasVector
	allFlags = 1<<iota - 1
)

func appendDone(b []byte, d *ieg.StepDone) []byte {
	b = binary.AppendUvarint(b, uint64(d.Engine))
	b = binary.AppendUvarint(b, uint64(d.Epoch))
	b = binary.AppendUvarint(b, uint64(d.Step))
	b = appendI32(b, d.Repeat)
	b = appendBool(b, d.Last)
	b = append(b, byte(d.Outcome))
	b = appendString(b, cut(d.Err, MessageBytes))
	b = binary.AppendUvarint(b, uint64(d.Took))
	b = binary.AppendUvarint(b, uint64(len(d.Results)))
	for i := range d.Results {
		b = appendResult(b, &d.Results[i])
	}
	b = binary.AppendUvarint(b, uint64(len(d.Copies)))
	for i := range d.Copies {
		c := &d.Copies[i]
		b = appendI32(b, c.Op)
		b = binary.LittleEndian.AppendUint64(b, c.Digest)
		b = appendI32(b, c.Bad)
		b = binary.AppendUvarint(b, uint64(c.Took))
		b = binary.AppendUvarint(b, uint64(c.Ran))
	}
	return b
}

func appendResult(b []byte, s *ieg.SeqResult) []byte {
	b = binary.AppendUvarint(b, uint64(s.Seq))
	b = appendI32(b, s.Computed)
	at := len(b)
	b = append(b, 0)
	flags := byte(0)
	if s.Sampled {
		flags |= hasToken
		b = appendI32(b, s.Token)
	}
	if len(s.Text) > 0 {
		flags |= hasText
		b = appendBytes(b, s.Text)
	}
	if s.Stop != ieg.NotStopped {
		flags |= hasStop
		b = append(b, byte(s.Stop))
	}
	if s.StopText != "" {
		flags |= hasStopText
		b = appendString(b, s.StopText)
	}
	if s.Logprob != nil {
		flags |= hasLogprob
		b = appendLogprob(b, &s.Logprob.Chosen)
		top := s.Logprob.Top[:min(len(s.Logprob.Top), TopLogprobs)]
		b = binary.AppendUvarint(b, uint64(len(top)))
		for i := range top {
			b = appendLogprob(b, &top[i])
		}
	}
	if len(s.Vector) > 0 {
		flags |= hasVector
		b = binary.AppendUvarint(b, uint64(len(s.Vector)))
		for _, v := range s.Vector {
			b = appendF32(b, v)
		}
	}
	b[at] = flags
	return b
}

func appendLogprob(b []byte, l *ieg.TokenLogprob) []byte {
	return appendBytes(appendF32(appendI32(b, l.Token), l.Logprob), l.Bytes)
}

// decodeDone fills d, whose Results with their Texts and Copies are used again.
func decodeDone(body []byte, d *ieg.StepDone) error {
	r := reader{b: body}
	d.Engine = ieg.EngineID(r.u32())
	d.Epoch = ieg.Epoch(r.u32())
	d.Step = ieg.StepID(r.uvarint())
	d.Repeat = r.i32()
	d.Last = r.bool()
	d.Outcome = ieg.Outcome(r.u8(uint8(ieg.StepFailed)))
	d.Err = r.string(MessageBytes)
	d.Took = time.Duration(r.uvarint())
	d.Results = resize(d.Results, r.count(resultSize, BatchSeqs))
	for i := range d.Results {
		readResult(&r, &d.Results[i])
	}
	d.Copies = resize(d.Copies, r.count(copySize, BatchOps))
	for i := range d.Copies {
		d.Copies[i] = ieg.CopyDone{Op: r.i32(), Digest: r.u64(), Bad: r.i32(), Took: time.Duration(r.uvarint()), Ran: time.Duration(r.uvarint())}
		if bad := d.Copies[i].Bad; bad < 0 {
			r.fail("extent %d of copy %d is bad", bad, i)
		}
	}
	return r.done()
}

func readResult(r *reader, s *ieg.SeqResult) {
	*s = ieg.SeqResult{Seq: ieg.SeqID(r.uvarint()), Computed: r.i32(), Text: s.Text[:0]}
	flags := r.u8(allFlags)
	if flags&hasToken != 0 {
		s.Sampled, s.Token = true, ieg.Token(r.i32())
	}
	if flags&hasText != 0 {
		s.Text = append(s.Text, nonEmpty(r, r.raw(FrameBytes))...)
	}
	if flags&hasStop != 0 {
		s.Stop = ieg.StopReason(r.u8(uint8(ieg.StopLimit)))
		if s.Stop == ieg.NotStopped {
			r.fail("stop without a reason")
		}
	}
	if flags&hasStopText != 0 {
		s.StopText = string(nonEmpty(r, r.raw(FrameBytes)))
	}
	if flags&hasLogprob != 0 {
		s.Logprob = &ieg.Logprob{Chosen: readLogprob(r)}
		if n := r.count(6, TopLogprobs); n > 0 {
			s.Logprob.Top = make([]ieg.TokenLogprob, n)
			for i := range s.Logprob.Top {
				s.Logprob.Top[i] = readLogprob(r)
			}
		}
	}
	if flags&hasVector != 0 {
		s.Vector = make([]float32, r.count(4, FrameBytes))
		for i := range s.Vector {
			s.Vector[i] = r.f32()
		}
		if len(s.Vector) == 0 {
			r.fail("empty vector")
		}
	}
}

func readLogprob(r *reader) ieg.TokenLogprob {
	l := ieg.TokenLogprob{Token: ieg.Token(r.i32()), Logprob: r.f32()}
	if p := r.raw(FrameBytes); len(p) > 0 {
		l.Bytes = append([]byte(nil), p...)
	}
	return l
}

// nonEmpty keeps the form canonical: a part that is marked is not empty.
func nonEmpty(r *reader, p []byte) []byte {
	if len(p) == 0 {
		r.fail("a part is marked but empty")
	}
	return p
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
