package record

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"time"

	"ieg"
	"ieg/kernel"
)

// Header is the first frame of a segment.
type Header struct {
	// Build names the program that recorded; another one may decide otherwise.
	Build string `json:"build"`
	// Started is the wall clock at the snapshot, Unix nanoseconds.
	Started int64 `json:"started_unix_ns"`
	// Redacted: token ids and texts were replaced (see Redact).
	Redacted bool `json:"redacted,omitempty"`
	// Lost counts the events since the segment before that were not recorded.
	Lost int64 `json:"lost,omitempty"`
}

// event is the form in which an event is encoded: one field is set, none for
// Tick, Drain and NVMeUp, which are told by Name.
type event struct {
	Name    string
	Arrived *ieg.Request
	Cancel  *kernel.Cancel
	Request ieg.RequestID // Pause, Resume, Delivered
	Span    ieg.Span
	Device  *kernel.DeviceUp
	Load    *kernel.LoadEngine
	Unload  *kernel.UnloadEngine
	Ready   *ieg.EngineInfo
	Lost    *kernel.EngineLost
	Stalled *kernel.EngineStalled
	Host    *kernel.HostUp
	Reason  string // NVMeDown
	Moved   *ieg.MoveDone
	Control *kernel.KVControl
}

// wrap makes the encoded form; StepDone has its own.
func wrap(ev kernel.Event) (event, error) {
	switch ev := ev.(type) {
	case kernel.Arrived:
		return event{Name: "arrived", Arrived: ev.Request}, nil
	case kernel.Cancel:
		return event{Name: "cancel", Cancel: &ev}, nil
	case kernel.Pause:
		return event{Name: "pause", Request: ev.Request}, nil
	case kernel.Resume:
		return event{Name: "resume", Request: ev.Request}, nil
	case kernel.Delivered:
		return event{Name: "delivered", Request: ev.Request, Span: ev.Span}, nil
	case kernel.DeviceUp:
		return event{Name: "device", Device: &ev}, nil
	case kernel.LoadEngine:
		return event{Name: "load", Load: &ev}, nil
	case kernel.UnloadEngine:
		return event{Name: "unload", Unload: &ev}, nil
	case kernel.EngineReady:
		return event{Name: "ready", Ready: &ev.Info}, nil
	case kernel.EngineLost:
		return event{Name: "lost", Lost: &ev}, nil
	case kernel.EngineStalled:
		return event{Name: "stalled", Stalled: &ev}, nil
	case kernel.HostUp:
		return event{Name: "host", Host: &ev}, nil
	case kernel.NVMeUp:
		return event{Name: "nvme"}, nil
	case kernel.NVMeDown:
		return event{Name: "nonvme", Reason: ev.Reason}, nil
	case kernel.MoveDone:
		return event{Name: "moved", Moved: &ev.Done}, nil
	case kernel.KVControl:
		return event{Name: "control", Control: &ev}, nil
	case kernel.Drain:
		return event{Name: "drain"}, nil
	case kernel.Tick:
		return event{Name: "tick"}, nil
	}
	return event{}, fmt.Errorf("record: unknown event %T", ev)
}

// unwrap is the inverse.
func (e *event) unwrap() (kernel.Event, error) {
	switch {
	case e.Name == "arrived" && e.Arrived != nil:
		return kernel.Arrived{Request: e.Arrived}, nil
	case e.Name == "cancel" && e.Cancel != nil:
		return *e.Cancel, nil
	case e.Name == "pause":
		return kernel.Pause{Request: e.Request}, nil
	case e.Name == "resume":
		return kernel.Resume{Request: e.Request}, nil
	case e.Name == "delivered":
		return kernel.Delivered{Request: e.Request, Span: e.Span}, nil
	case e.Name == "device" && e.Device != nil:
		return *e.Device, nil
	case e.Name == "load" && e.Load != nil:
		return *e.Load, nil
	case e.Name == "unload" && e.Unload != nil:
		return *e.Unload, nil
	case e.Name == "ready" && e.Ready != nil:
		return kernel.EngineReady{Info: *e.Ready}, nil
	case e.Name == "lost" && e.Lost != nil:
		return *e.Lost, nil
	case e.Name == "stalled" && e.Stalled != nil:
		return *e.Stalled, nil
	case e.Name == "host" && e.Host != nil && arena(e.Host.Pages):
		return *e.Host, nil
	case e.Name == "nvme":
		return kernel.NVMeUp{}, nil
	case e.Name == "nonvme":
		return kernel.NVMeDown{Reason: e.Reason}, nil
	case e.Name == "moved" && e.Moved != nil:
		return kernel.MoveDone{Done: *e.Moved}, nil
	case e.Name == "control" && e.Control != nil:
		return *e.Control, nil
	case e.Name == "drain":
		return kernel.Drain{}, nil
	case e.Name == "tick":
		return kernel.Tick{}, nil
	}
	return nil, fmt.Errorf("%w: an event %q without its content", ErrCorrupt, e.Name)
}

// arena tells whether a number of pages may be an arena's: a ledger takes
// memory for each.
func arena(pages int32) bool { return pages >= 0 && pages <= PagesMax }

// mark is what precedes the body of an event or report.
type mark struct {
	now ieg.Time
	// judged tells that digest is known; it is not for an event during which
	// the machine stopped.
	judged bool
	digest kernel.Digest
}

func appendMark(b []byte, m mark) []byte {
	b = binary.AppendVarint(b, int64(m.now))
	if !m.judged {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.BigEndian.AppendUint64(b, m.digest.Shape)
	return binary.BigEndian.AppendUint64(b, m.digest.Content)
}

// Flags of a result in a report.
const (
	flagSampled = 1 << iota
	flagVector
	flagStop
)

// appendReport appends what decisions depend on of a step's report.
func appendReport(b []byte, d *ieg.StepDone) []byte {
	b = binary.AppendUvarint(b, uint64(d.Engine))
	b = binary.AppendUvarint(b, uint64(d.Epoch))
	b = binary.AppendUvarint(b, uint64(d.Step))
	b = binary.AppendUvarint(b, uint64(uint32(d.Repeat)))
	last := byte(0)
	if d.Last {
		last = 1
	}
	b = append(b, last, byte(d.Outcome))
	b = binary.AppendUvarint(b, uint64(len(d.Err)))
	b = append(b, d.Err...)
	b = binary.AppendVarint(b, int64(d.Took))
	b = binary.AppendUvarint(b, uint64(len(d.Results)))
	for i := range d.Results {
		r := &d.Results[i]
		flags := byte(0)
		if r.Sampled {
			flags |= flagSampled
		}
		if r.Vector != nil {
			flags |= flagVector
		}
		if r.Stop != ieg.NotStopped {
			flags |= flagStop
		}
		b = append(b, flags)
		b = binary.AppendUvarint(b, uint64(r.Seq))
		b = binary.AppendVarint(b, int64(r.Computed))
		b = binary.AppendVarint(b, int64(r.Token))
		if r.Stop != ieg.NotStopped {
			b = append(b, byte(r.Stop))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(d.Copies)))
	for i := range d.Copies {
		c := &d.Copies[i]
		b = binary.AppendUvarint(b, uint64(uint32(c.Op)))
		b = binary.BigEndian.AppendUint64(b, c.Digest)
		b = binary.AppendUvarint(b, uint64(uint32(c.Bad)))
		b = binary.AppendVarint(b, int64(c.Took))
		b = binary.AppendVarint(b, int64(c.Ran))
	}
	return b
}

// reader takes varints off a frame's body.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) mark() (m mark) {
	m.now = ieg.Time(r.varint())
	if m.judged = r.byte() == 1; m.judged {
		if b := r.take(16); b != nil {
			m.digest = kernel.Digest{Shape: binary.BigEndian.Uint64(b), Content: binary.BigEndian.Uint64(b[8:])}
		}
	}
	return m
}

func (r *reader) report() (*ieg.StepDone, error) {
	d := &ieg.StepDone{Engine: ieg.EngineID(r.uvarint()), Epoch: ieg.Epoch(r.uvarint()), Step: ieg.StepID(r.uvarint()), Repeat: int32(r.uvarint())}
	d.Last, d.Outcome = r.byte() == 1, ieg.Outcome(r.byte())
	d.Err = string(r.take(r.uvarint()))
	d.Took = time.Duration(r.varint())
	n := r.uvarint()
	if r.bad || n > ResultsMax || d.Outcome > ieg.StepFailed {
		return nil, fmt.Errorf("%w: a report of outcome %d with %d results", ErrCorrupt, d.Outcome, n)
	}
	for range n {
		flags := r.byte()
		res := ieg.SeqResult{Seq: ieg.SeqID(r.uvarint()), Computed: int32(r.varint()), Token: ieg.Token(r.varint()), Sampled: flags&flagSampled != 0}
		if flags&flagVector != 0 {
			res.Vector = []float32{}
		}
		if flags&flagStop != 0 {
			res.Stop = ieg.StopReason(r.byte())
		}
		if r.bad || res.Stop > ieg.StopLimit {
			return nil, fmt.Errorf("%w: a report ends early or stops for reason %d", ErrCorrupt, res.Stop)
		}
		d.Results = append(d.Results, res)
	}
	return d, r.copies(d)
}

// copies takes off what a report tells of copies.
func (r *reader) copies(d *ieg.StepDone) error {
	n := r.uvarint()
	if r.bad || n > CopiesMax {
		return fmt.Errorf("%w: a report with %d copies", ErrCorrupt, n)
	}
	for range n {
		c := ieg.CopyDone{Op: int32(r.uvarint())}
		if b := r.take(8); b != nil {
			c.Digest = binary.BigEndian.Uint64(b)
		}
		c.Bad, c.Took, c.Ran = int32(r.uvarint()), time.Duration(r.varint()), time.Duration(r.varint())
		if r.bad || c.Op < 0 || c.Bad < 0 {
			return fmt.Errorf("%w: a report ends early, or copies with operation %d and block %d", ErrCorrupt, c.Op, c.Bad)
		}
		d.Copies = append(d.Copies, c)
	}
	return nil
}

// encoder makes the frames of one segment.
type encoder struct {
	out    []byte // frames, taken by the caller
	events int64  // in out
	body   bytes.Buffer
	gob    *gob.Encoder
}

func newEncoder() *encoder {
	e := &encoder{out: []byte(magic)}
	e.gob = gob.NewEncoder(&e.body)
	return e
}

func (e *encoder) snapshot(s *kernel.Snapshot) error {
	e.body.Reset()
	if err := e.gob.Encode(s); err != nil {
		return fmt.Errorf("record: the snapshot can't be encoded: %w", err)
	}
	e.out = appendFrame(e.out, kindSnapshot, e.body.Bytes())
	return nil
}

func (e *encoder) event(m mark, ev kernel.Event) error {
	w, err := wrap(ev)
	if err != nil {
		return err
	}
	e.body.Reset()
	var head [64]byte
	e.body.Write(appendMark(head[:0], m))
	if err := e.gob.Encode(&w); err != nil {
		return fmt.Errorf("record: %T can't be encoded: %w", ev, err)
	}
	e.out = appendFrame(e.out, kindEvent, e.body.Bytes())
	e.events++
	return nil
}

func (e *encoder) header(h Header) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	e.out = appendFrame(e.out, kindHeader, b)
	return nil
}

func (e *encoder) report(body []byte) {
	e.out = appendFrame(e.out, kindReport, body)
	e.events++
}

func (e *encoder) end() { e.out = appendFrame(e.out, kindEnd, nil) }
