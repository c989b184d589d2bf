package engine

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"

	"ieg"
)

// A frame is a little-endian uint32 with the length of what follows, one byte
// of type, and the body.
const headBytes = 4

// protocolVersion changes whenever a frame changes. Node and child are the
// same binary; a difference means that one was replaced while the other ran.
const protocolVersion = 6

// The types of frames. Direction: > to the child, < to the node.
const (
	frameHello    = 1 // <> both planes: magic, version, plane, engine, epoch
	frameLoad     = 2 // > LoadSpec as JSON
	frameProgress = 3 // < fraction loaded
	frameReady    = 4 // < EngineInfo as JSON
	frameFailed   = 5 // < the load failed
	frameBatch    = 6 // >
	frameDone     = 7 // <
	frameHalt     = 8 // > epoch, step
	frameAbort    = 9 // > epoch, step
	frameClose    = 10

	frameTokenize   = 16 // > id, parts
	frameTokens     = 17 // < id, tokens
	frameDetokenize = 18 // > id, tokens
	frameText       = 19 // < id, text
	frameRefused    = 20 // < id, error
)

// openFrame appends the head of a frame; closeFrame fills in its length.
func openFrame(b []byte, typ byte) []byte { return append(b, 0, 0, 0, 0, typ) }

func closeFrame(b []byte, start int) ([]byte, error) {
	n := len(b) - start - headBytes
	if n > FrameBytes {
		return b[:start], fmt.Errorf("%w: frame of %d bytes is over the limit of %d", ieg.ErrProtocol, n, FrameBytes)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(n))
	return b, nil
}

// frameReader cuts a stream into frames.
type frameReader struct {
	r    *bufio.Reader
	skip int    // bytes of the last frame still in r
	big  []byte // holds a frame that r can't
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBytes)}
}

// next returns the next frame; body is valid until the call after. io.EOF
// means that the stream ended between two frames.
func (f *frameReader) next() (typ byte, body []byte, err error) {
	if f.skip > 0 {
		if _, err = f.r.Discard(f.skip); err != nil {
			return 0, nil, err
		}
		f.skip = 0
	}
	head, err := f.r.Peek(headBytes)
	if err != nil {
		if err == io.EOF && len(head) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint32(head))
	if n < 1 || n > FrameBytes {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, allowed are 1 to %d", ieg.ErrProtocol, n, FrameBytes)
	}
	if headBytes+n > readBytes {
		return f.nextBig(n)
	}
	p, err := f.r.Peek(headBytes + n)
	if err != nil {
		return 0, nil, unexpected(err)
	}
	f.skip = headBytes + n
	return p[headBytes], p[headBytes+1:], nil
}

// nextBig reads a frame of n bytes piece by piece, so that a wrong length
// can't take memory that no bytes stand for.
func (f *frameReader) nextBig(n int) (byte, []byte, error) {
	if _, err := f.r.Discard(headBytes); err != nil {
		return 0, nil, err
	}
	if cap(f.big) > keepBytes && n <= keepBytes {
		f.big = nil
	}
	p := f.big[:0]
	for len(p) < n {
		k := min(n-len(p), growBytes)
		p = append(p, make([]byte, k)...)
		if _, err := io.ReadFull(f.r, p[len(p)-k:]); err != nil {
			return 0, nil, unexpected(err)
		}
	}
	f.big = p
	return p[0], p[1:], nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
