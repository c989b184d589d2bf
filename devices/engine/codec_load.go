package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"ieg"
)

// The planes, as named in a hello.
const (
	stepPlane = 1
	ctlPlane  = 2
)

// helloMagic opens every connection.
const helloMagic = "ieg engine\n"

// hello is the first frame on a plane; the child answers with its own.
type hello struct {
	Version uint32
	Plane   uint8
	Engine  ieg.EngineID
	Epoch   ieg.Epoch
}

func appendHello(b []byte, h hello) []byte {
	b = append(b, helloMagic...)
	b = binary.AppendUvarint(b, uint64(h.Version))
	b = append(b, h.Plane)
	b = binary.AppendUvarint(b, uint64(h.Engine))
	return binary.AppendUvarint(b, uint64(h.Epoch))
}

// decodeHello reads a hello. Of another version it reads the version only,
// since nothing else is known of its form.
func decodeHello(body []byte) (h hello, err error) {
	rest, ok := bytes.CutPrefix(body, []byte(helloMagic))
	if !ok {
		return h, fmt.Errorf("%w: the other side is no engine of this program", ieg.ErrProtocol)
	}
	r := reader{b: rest}
	h.Version = r.u32()
	if r.err == nil && h.Version != protocolVersion {
		return h, fmt.Errorf("%w: the other side speaks version %d, this one %d: both must be the same build; restart the node",
			ieg.ErrProtocol, h.Version, protocolVersion)
	}
	h.Plane = r.u8(ctlPlane)
	h.Engine = ieg.EngineID(r.u32())
	h.Epoch = ieg.Epoch(r.u32())
	return h, r.done()
}

// stepRef is the body of Halt and Abort.
type stepRef struct {
	Epoch ieg.Epoch
	Step  ieg.StepID
}

func appendStepRef(b []byte, s stepRef) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(s.Epoch)), uint64(s.Step))
}

func decodeStepRef(body []byte) (stepRef, error) {
	r := reader{b: body}
	s := stepRef{Epoch: ieg.Epoch(r.u32()), Step: ieg.StepID(r.uvarint())}
	return s, r.done()
}

func decodeProgress(body []byte) (float64, error) {
	r := reader{b: body}
	f := r.f64()
	if r.err == nil && !(f >= 0 && f <= 1) {
		r.fail("progress %g is not between 0 and 1", f)
	}
	return f, r.done()
}

func appendSpec(b []byte, s *LoadSpec) ([]byte, error) {
	return appendJSON(b, s, SpecBytes)
}

func decodeSpec(body []byte) (s LoadSpec, err error) {
	return s, decodeJSON(body, &s, SpecBytes)
}

// wireInfo adds what people are not shown and the node needs.
type wireInfo struct {
	Info         ieg.EngineInfo
	ChatTemplate string
	EOG          []ieg.Token
	BOSText      string
	EOSText      string
	ControlText  []string
}

func appendInfo(b []byte, i *ieg.EngineInfo) ([]byte, error) {
	m := &i.Model
	return appendJSON(b, &wireInfo{*i, m.ChatTemplate, m.EOG, m.BOSText, m.EOSText, m.ControlText}, InfoBytes)
}

func decodeInfo(body []byte) (ieg.EngineInfo, error) {
	var w wireInfo
	err := decodeJSON(body, &w, InfoBytes)
	m := &w.Info.Model
	m.ChatTemplate, m.EOG, m.BOSText, m.EOSText, m.ControlText = w.ChatTemplate, w.EOG, w.BOSText, w.EOSText, w.ControlText
	return w.Info, err
}

func appendJSON(b []byte, v any, most int) ([]byte, error) {
	p, err := json.Marshal(v)
	if err != nil {
		return b, fmt.Errorf("%w: %T: %v", ieg.ErrProtocol, v, err)
	}
	if len(p) > most {
		return b, fmt.Errorf("%w: %T takes %d bytes, the limit is %d", ieg.ErrProtocol, v, len(p), most)
	}
	return append(b, p...), nil
}

func decodeJSON(body []byte, v any, most int) error {
	if len(body) > most {
		return fmt.Errorf("%w: %T takes %d bytes, the limit is %d", ieg.ErrProtocol, v, len(body), most)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %T: %v", ieg.ErrProtocol, v, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return fmt.Errorf("%w: %T: bytes left over", ieg.ErrProtocol, v)
	}
	return nil
}

// errPermanent marks a failure that loading again would meet again.
var errPermanent = errors.New("permanent")

// Permanent marks a Loader's error as one that a second try would meet again
// (a library is missing, the file is corrupt), so that the engine is given up
// at once. ieg.ErrUnsupported, fs.ErrNotExist and fs.ErrPermission need no
// mark.
func Permanent(err error) error { return permanentError{err} }

type permanentError struct{ error }

func (e permanentError) Unwrap() []error { return []error{e.error, errPermanent} }

func isPermanent(err error) bool {
	for _, e := range []error{errPermanent, ieg.ErrUnsupported, fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// identities are the errors that keep their identity across the wire; the
// index is their code. Only append to the list.
var identities = [...]error{
	nil, ieg.ErrUnsupported, ieg.ErrOutOfMemory, ieg.ErrProtocol, ieg.ErrContextLength,
	ieg.ErrCancelled, ieg.ErrBusy, fs.ErrNotExist, fs.ErrPermission,
}

// remoteError is an error that happened on the other side.
type remoteError struct {
	text      string
	identity  error
	permanent bool
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.identity }
func (e *remoteError) Is(t error) bool {
	return t == errPermanent && e.permanent
}

func appendError(b []byte, err error) []byte {
	code := byte(0)
	for i, e := range identities {
		if e != nil && errors.Is(err, e) {
			code = byte(i)
			break
		}
	}
	b = append(b, code)
	b = appendBool(b, isPermanent(err))
	return appendString(b, cut(err.Error(), MessageBytes))
}

func readError(r *reader) *remoteError {
	e := &remoteError{identity: identities[r.u8(uint8(len(identities)-1))]}
	e.permanent = r.bool()
	e.text = r.string(MessageBytes)
	return e
}

// decodeError returns the error in a Failed frame, or what is wrong with it.
func decodeError(body []byte) (*remoteError, error) {
	r := reader{b: body}
	e := readError(&r)
	return e, r.done()
}
