package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// magic names the format and its version.
const magic = "IEGREC6\n"

// Kinds of frames.
const (
	kindHeader   = 'H'
	kindSnapshot = 'S'
	kindEvent    = 'E'
	kindReport   = 'R'
	kindEnd      = 'Z'
)

// Errors of a segment that can't be read on. They tell where.
var (
	// ErrTruncated: the bytes end inside a frame, or before the end mark. What
	// came before is whole.
	ErrTruncated = errors.New("the segment is cut short")
	// ErrCorrupt: a checksum, a length or a content is wrong.
	ErrCorrupt = errors.New("the segment is damaged")
	// ErrFormat: these are not a segment's bytes, or of an unknown version.
	ErrFormat = errors.New("not a flight recorder segment of this version")
)

// errNoEnd: the bytes end where a frame could begin.
var errNoEnd = fmt.Errorf("%w: it has no end mark", ErrTruncated)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame appends one frame around kind and body.
func appendFrame(dst []byte, kind byte, body []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(body)+1))
	sum := crc32.Update(crc32.Checksum([]byte{kind}, castagnoli), castagnoli, body)
	dst = binary.BigEndian.AppendUint32(dst, sum)
	dst = append(dst, kind)
	return append(dst, body...)
}

// frames reads a segment frame by frame.
type frames struct {
	r   io.Reader
	at  int64 // bytes read
	buf []byte
}

func newFrames(r io.Reader) (*frames, error) {
	var m [len(magic)]byte
	if _, err := io.ReadFull(r, m[:]); err != nil || string(m[:]) != magic {
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: it begins with %q", ErrFormat, m[:])
	}
	return &frames{r: r, at: int64(len(magic))}, nil
}

// next returns the next frame; its body is valid until the next call.
func (f *frames) next() (kind byte, body []byte, err error) {
	var head [8]byte
	if n, err := io.ReadFull(f.r, head[:]); err != nil {
		if n == 0 && errors.Is(err, io.EOF) {
			return 0, nil, errNoEnd
		}
		return 0, nil, f.short(int64(n), err)
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < 1 || size > FrameMax {
		return 0, nil, fmt.Errorf("%w at byte %d: a frame of %d bytes", ErrCorrupt, f.at, size)
	}
	if err := f.fill(int(size)); err != nil {
		return 0, nil, err
	}
	if sum := crc32.Checksum(f.buf, castagnoli); sum != binary.BigEndian.Uint32(head[4:]) {
		return 0, nil, fmt.Errorf("%w at byte %d: the checksum does not match", ErrCorrupt, f.at)
	}
	f.at += 8 + int64(size)
	return f.buf[0], f.buf[1:], nil
}

// fill reads size bytes, growing as they come: a wrong length costs no memory.
func (f *frames) fill(size int) error {
	const step = 1 << 20
	f.buf = f.buf[:0]
	for len(f.buf) < size {
		n := min(size-len(f.buf), step)
		at := len(f.buf)
		f.buf = append(f.buf, make([]byte, n)...)
		if got, err := io.ReadFull(f.r, f.buf[at:]); err != nil {
			return f.short(int64(8+at+got), err)
		}
	}
	return nil
}

// short is the error of bytes that end too early, n bytes into a frame.
func (f *frames) short(n int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the frame at byte %d ends after %d bytes", ErrTruncated, f.at, n)
	}
	return err
}
