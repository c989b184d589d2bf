package engine

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"ieg"
)

// What a fuzz target accepts must be the only form of what it means: encoding
// it again gives the same bytes. What it refuses, it refuses as a protocol
// error.

func refused(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !errors.Is(err, ieg.ErrProtocol) {
		t.Fatalf("error %v has no identity", err)
	}
	return err != nil
}

func FuzzBatch(f *testing.F) {
	f.Add(appendBatch(nil, sampleBatch()))
	f.Add(appendBatch(nil, &ieg.Batch{}))
	used := &ieg.Batch{}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !refused(t, decodeBatch(body, used)) && !bytes.Equal(appendBatch(nil, used), body) {
			t.Fatalf("% x is another form of %+v", body, used)
		}
	})
}

func FuzzDone(f *testing.F) {
	f.Add(appendDone(nil, sampleDone()))
	f.Add(appendDone(nil, &ieg.StepDone{Outcome: ieg.StepFailed, Err: "x"}))
	used := &ieg.StepDone{}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !refused(t, decodeDone(body, used)) && !bytes.Equal(appendDone(nil, used), body) {
			t.Fatalf("% x is another form of %+v", body, used)
		}
	})
}

func FuzzCall(f *testing.F) {
	for typ, c := range sampleCalls() {
		f.Add(typ, appendCall(nil, typ, c))
	}
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		c, err := decodeCall(typ, body)
		if !refused(t, err) && typ != frameRefused && !bytes.Equal(appendCall(nil, typ, &c), body) {
			t.Fatalf("% x is another form of %+v", body, c)
		}
	})
}

func FuzzSmall(f *testing.F) {
	f.Add(byte(frameHello), appendHello(nil, hello{Version: protocolVersion, Plane: stepPlane, Engine: 1, Epoch: 2}))
	f.Add(byte(frameHalt), appendStepRef(nil, stepRef{Epoch: 1, Step: 2}))
	f.Add(byte(frameProgress), appendF64(nil, 0.5))
	f.Add(byte(frameFailed), appendError(nil, ieg.ErrUnsupported))
	f.Add(byte(frameLoad), []byte(`{"backend":"synth","synth":{"seed":1}}`))
	f.Add(byte(frameReady), []byte(`{"Info":{"id":1},"EOG":[1]}`))
	f.Fuzz(func(t *testing.T, typ byte, body []byte) {
		var again []byte
		var err error
		switch typ {
		case frameHello:
			var h hello
			h, err = decodeHello(body)
			again = appendHello(nil, h)
		case frameHalt:
			var s stepRef
			s, err = decodeStepRef(body)
			again = appendStepRef(nil, s)
		case frameProgress:
			var p float64
			p, err = decodeProgress(body)
			again = appendF64(nil, p)
		case frameFailed:
			_, err = decodeError(body)
			again = body // its text may name another identity
		case frameLoad:
			_, err = decodeSpec(body)
			again = body
		case frameReady:
			_, err = decodeInfo(body)
			again = body
		default:
			return
		}
		if !refused(t, err) && !bytes.Equal(again, body) {
			t.Fatalf("frame %d: % x is another form of % x", typ, body, again)
		}
	})
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 8, 3, 0, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := newFrameReader(bytes.NewReader(stream))
		read := 0
		for {
			_, body, err := r.next()
			if err == io.EOF && read == len(stream) {
				return
			}
			if err != nil {
				if err != io.ErrUnexpectedEOF && !errors.Is(err, ieg.ErrProtocol) {
					t.Fatalf("after %d of %d bytes: %v", read, len(stream), err)
				}
				return
			}
			read += headBytes + 1 + len(body)
		}
	})
}
