package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"ieg/api/admin"
	"ieg/cmd/ieg/config"
	"ieg/kernel/record"
)

// flight is the flight recorder as the admin socket sees it.
type flight struct{ *record.Recorder }

// newFlight starts the recorder in the data folder; nil if it is switched off.
func newFlight(e *config.Effective) (*flight, error) {
	if !e.Recorder.Enabled {
		return nil, nil
	}
	r, err := record.New(record.Config{
		Dir: filepath.Join(e.DataDir, "recorder"), SegmentAge: time.Duration(e.Recorder.SegmentEvery),
		Segments: e.Recorder.Segments, Build: version,
	})
	if err != nil {
		return nil, err
	}
	return &flight{r}, nil
}

// Segments lists what is kept.
func (f *flight) Segments() ([]admin.Segment, error) {
	segs, err := f.Recorder.Segments()
	out := make([]admin.Segment, len(segs))
	for i, s := range segs {
		out[i] = admin.Segment{Name: s.Name, Start: s.Start, Bytes: s.Bytes, Events: s.Events, Open: s.Open}
	}
	return out, err
}

// OpenSegment reads one, redacted on demand.
func (f *flight) OpenSegment(name string, redact bool) (io.ReadCloser, error) {
	body, err := f.Open(name, redact)
	if errors.Is(err, record.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w; see 'ieg recorder ls'", admin.ErrNotFound, err)
	}
	return body, err
}
