package record

import "time"

// Defaults and bounds.
const (
	// SegmentAge and SegmentBytes end a segment; Segments is the number kept,
	// the open one included.
	SegmentAge   = time.Minute
	SegmentBytes = 8 << 20
	Segments     = 6
	// SegmentAgeMin: a segment is not cut for its size before: each costs a
	// snapshot.
	SegmentAgeMin = 2 * time.Second
	// QueueItems bounds what waits for the recorder's goroutine.
	QueueItems = 4096
	// FrameMax bounds a frame: a snapshot of 256 sequences of 128k tokens is
	// about 200 MB.
	FrameMax = 256 << 20
	// HeaderMax bounds the header's JSON in bytes.
	HeaderMax = 64 << 10
	// RetryAfter is the least time between two tries to begin a segment.
	RetryAfter = 250 * time.Millisecond
	// ResultsMax bounds the results of one report.
	ResultsMax = 1 << 16
	// CopiesMax bounds the copies of one report.
	CopiesMax = 1 << 16
	// PagesMax bounds the pages of an arena.
	PagesMax = 1 << 24
)
