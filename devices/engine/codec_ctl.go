package engine

import (
	"encoding/binary"

	"ieg"
)

// call is a frame of the control plane, in either direction: a question or
// its answer, told by the frame's type.
type call struct {
	ID     uint64
	Parts  []Part      // frameTokenize
	Tokens []ieg.Token // frameDetokenize, frameTokens
	Text   string      // frameText
	Err    error       // frameRefused
}

func appendCall(b []byte, typ byte, c *call) []byte {
	b = binary.AppendUvarint(b, c.ID)
	switch typ {
	case frameTokenize:
		b = binary.AppendUvarint(b, uint64(len(c.Parts)))
		for _, p := range c.Parts {
			b = appendString(appendBool(b, p.Special), p.Text)
		}
	case frameDetokenize, frameTokens:
		b = appendTokens(b, c.Tokens)
	case frameText:
		b = appendString(b, c.Text)
	case frameRefused:
		b = appendError(b, c.Err)
	}
	return b
}

func decodeCall(typ byte, body []byte) (c call, err error) {
	r := reader{b: body}
	c.ID = r.uvarint()
	switch typ {
	case frameTokenize:
		if n := r.count(2, TextParts); n > 0 {
			c.Parts = make([]Part, n)
			for i := range c.Parts {
				c.Parts[i] = Part{Special: r.bool(), Text: r.string(FrameBytes)}
			}
		}
	case frameDetokenize, frameTokens:
		c.Tokens = r.tokens(FrameBytes)
	case frameText:
		c.Text = r.string(FrameBytes)
	case frameRefused:
		c.Err = readError(&r)
	default:
		r.fail("frame of type %d on the control plane", typ)
	}
	return c, r.done()
}
