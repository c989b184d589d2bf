package record

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ieg"
	"ieg/kernel"
)

// ErrDiverged: the machine decided otherwise than recorded.
var ErrDiverged = errors.New("the machine decides otherwise than recorded")

// Report tells of a replay.
type Report struct {
	Header Header `json:"header"`
	// Events were applied; Judged of them had a digest to compare.
	Events int `json:"events"`
	Judged int `json:"judged"`
	Steps  int `json:"steps"`
	Tokens int `json:"tokens"`
	// From and To are the times of the snapshot and of the last event on the
	// node's clock.
	From ieg.Time `json:"from_ns"`
	To   ieg.Time `json:"to_ns"`
	// Complete: the segment has its end mark. One that is still being written,
	// or whose program was killed, has not.
	Complete bool `json:"complete"`
	// Diverged is the first event with other decisions, "" if none.
	Diverged string        `json:"diverged,omitempty"`
	Took     time.Duration `json:"took_ns"`
}

// segment reads a segment's frames and decodes them.
type segment struct {
	frames *frames
	feed   bytes.Buffer
	gob    *gob.Decoder
	header Header
	snap   *kernel.Snapshot
}

func newSegment(r io.Reader) (*segment, error) {
	f, err := newFrames(r)
	if err != nil {
		return nil, err
	}
	s := &segment{frames: f}
	s.gob = gob.NewDecoder(&s.feed)
	kind, body, err := f.next()
	if err != nil {
		return nil, err
	}
	if kind != kindHeader || len(body) > HeaderMax {
		return nil, fmt.Errorf("%w: the first frame is %q, not a header", ErrFormat, kind)
	}
	if err := json.Unmarshal(body, &s.header); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	if kind, body, err = f.next(); err != nil {
		return nil, err
	}
	if kind != kindSnapshot {
		return nil, fmt.Errorf("%w: the second frame is %q, not a snapshot", ErrFormat, kind)
	}
	s.snap = &kernel.Snapshot{}
	return s, s.decode(body, s.snap)
}

// decode takes one value off the gob stream, which must end with it.
func (s *segment) decode(body []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w at byte %d: %v", ErrCorrupt, s.frames.at, p)
		}
	}()
	s.feed.Write(body)
	if err := s.gob.Decode(into); err != nil {
		return fmt.Errorf("%w at byte %d: %w", ErrCorrupt, s.frames.at, err)
	}
	if s.feed.Len() != 0 {
		return fmt.Errorf("%w at byte %d: %d bytes too many", ErrCorrupt, s.frames.at, s.feed.Len())
	}
	return nil
}

// next returns the next event; io.EOF at the end mark.
func (s *segment) next() (mark, kernel.Event, error) {
	kind, body, err := s.frames.next()
	if err != nil {
		return mark{}, nil, err
	}
	r := reader{b: body}
	switch kind {
	case kindEnd:
		return mark{}, nil, io.EOF
	case kindReport:
		m := r.mark()
		d, err := r.report()
		if err == nil && (r.bad || len(r.b) != 0) {
			err = fmt.Errorf("%w at byte %d: a report of the wrong length", ErrCorrupt, s.frames.at)
		}
		return m, kernel.StepDone{Done: d}, err
	case kindEvent:
		m := r.mark()
		if r.bad {
			return m, nil, fmt.Errorf("%w at byte %d: an event without its time", ErrCorrupt, s.frames.at)
		}
		var e event
		if err := s.decode(r.b, &e); err != nil {
			return m, nil, err
		}
		ev, err := e.unwrap()
		return m, ev, err
	}
	return mark{}, nil, fmt.Errorf("%w at byte %d: a frame of kind %q", ErrCorrupt, s.frames.at, kind)
}

// Replay runs a segment again and compares what the machine decides. The error
// is nil only if all that is there was decided as recorded; the report covers
// what came before an error.
func Replay(in io.Reader) (rep Report, err error) {
	began := time.Now()
	s, err := newSegment(in)
	if err != nil {
		return rep, err
	}
	rep.Header, rep.From, rep.To = s.header, s.snap.Now, s.snap.Now
	m, err := restore(s.snap)
	if err != nil {
		return rep, fmt.Errorf("%w: the snapshot: %w", ErrCorrupt, err)
	}
	defer func() { rep.Took = time.Since(began) }()
	for {
		mk, ev, err := s.next()
		if errors.Is(err, io.EOF) {
			rep.Complete = true
			return rep, nil
		}
		if errors.Is(err, errNoEnd) {
			return rep, nil
		}
		if err != nil {
			return rep, err
		}
		if err := rep.apply(m, mk, ev); err != nil {
			return rep, err
		}
	}
}

// restore shields from a snapshot that was made up.
func restore(s *kernel.Snapshot) (m *kernel.Machine, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if h := s.KV.Host; h != nil && !arena(h.Config.Pages) {
		return nil, fmt.Errorf("an arena of %d pages", h.Config.Pages)
	}
	return kernel.Restore(s)
}

// apply applies one event and compares. A panic of the machine is an error: the
// recording may be of the event that caused it.
func (rep *Report) apply(m *kernel.Machine, mk mark, ev kernel.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("event %d (%T at %s): the machine panics: %v", rep.Events, ev, time.Duration(mk.now), p)
		}
	}()
	m.Apply(mk.now, ev)
	rep.Events, rep.To = rep.Events+1, mk.now
	if done, ok := ev.(kernel.StepDone); ok {
		rep.Steps++
		rep.Tokens += len(done.Done.Results)
	}
	if !mk.judged {
		return nil
	}
	rep.Judged++
	got := m.Ready().Digest()
	if got.Shape == mk.digest.Shape && (rep.Header.Redacted || got.Content == mk.digest.Content) {
		return nil
	}
	rep.Diverged = fmt.Sprintf("event %d, %T at %s", rep.Events, ev, time.Duration(mk.now))
	return fmt.Errorf("%w: %s: now %s", ErrDiverged, rep.Diverged, sketch(m.Ready()))
}

// sketch names what a Ready wants, in numbers.
func sketch(r *kernel.Ready) string {
	s := fmt.Sprintf("%d admits, %d emits, %d finishes, %d aborts, %d halts, %d kills, %d loads, %d unloads, %d refusals, %d moves",
		len(r.Admits), len(r.Emits), len(r.Finishes), len(r.Aborts), len(r.Halts), len(r.Kills), len(r.Loads), len(r.Unloads), len(r.Refusals), len(r.Moves))
	for _, b := range r.Batches {
		s += fmt.Sprintf("; step %d of engine %d: %d new, %d operations, %d work, grant %d", b.Step, b.Engine, len(b.New), len(b.Ops), len(b.Work), b.Grant)
	}
	return s
}
