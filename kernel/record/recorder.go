package record

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"ieg"
	"ieg/kernel"
	"ieg/kernel/run"
)

// Config of a recorder. Zero fields take the defaults of limits.go.
type Config struct {
	// Dir holds the segments, one file each (mode 0600); it is made if it is
	// not there. "" keeps them in memory.
	Dir string
	// SegmentBytes and SegmentAge end a segment; Segments is the number kept.
	SegmentBytes int64
	SegmentAge   time.Duration
	Segments     int
	// Queue bounds the items that wait to be encoded.
	Queue int
	// Build names the program in each header.
	Build string
}

func (c *Config) fill() {
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = SegmentBytes
	}
	if c.SegmentAge <= 0 {
		c.SegmentAge = SegmentAge
	}
	if c.Segments <= 0 {
		c.Segments = Segments
	}
	if c.Queue <= 0 {
		c.Queue = QueueItems
	}
}

// item is one thing for the recorder's goroutine.
type item struct {
	start *kernel.Snapshot // begins a segment
	at    time.Time        // of start
	lost  int64            // events not recorded before start
	mark  mark
	ev    kernel.Event // nil: body is a report
	body  []byte
}

// Recorder records a machine. Before and Observe belong to the loop's
// goroutine; the other methods may be called from any.
type Recorder struct {
	cfg   Config
	queue chan item
	spare chan []byte
	done  chan struct{}
	size  atomic.Int64 // bytes of the open segment
	lost  atomic.Int64 // events that were not recorded

	// owned by the loop
	open    bool
	opened  ieg.Time
	retry   ieg.Time
	gap     int64
	pending bool
	now     ieg.Time
	ev      kernel.Event

	once  sync.Once
	mu    sync.Mutex // err, the store
	err   error
	store store
}

var _ run.Observer = (*Recorder)(nil)

// New starts a recorder. Close ends it.
func New(cfg Config) (*Recorder, error) {
	cfg.fill()
	r := &Recorder{cfg: cfg, queue: make(chan item, cfg.Queue), spare: make(chan []byte, 64), done: make(chan struct{})}
	if cfg.Dir == "" {
		r.store = &memory{keep: cfg.Segments}
	} else {
		d, err := newFolder(cfg.Dir, cfg.Segments)
		if err != nil {
			return nil, err
		}
		r.store = d
	}
	go r.write()
	return r, nil
}

// Before takes note of an event that is about to be applied; it is run.Config's
// Before.
func (r *Recorder) Before(now ieg.Time, ev kernel.Event, m *kernel.Machine) {
	if age := now.Sub(r.opened); r.open && (age >= r.cfg.SegmentAge || age >= SegmentAgeMin && r.size.Load() >= r.cfg.SegmentBytes) {
		r.open, r.retry = false, now
	}
	if !r.open && now >= r.retry {
		r.retry = now.Add(RetryAfter)
		// A queue that is nearly full would drop the segment at once.
		if len(r.queue) <= cap(r.queue)/2 && r.send(item{start: m.Snapshot(), at: time.Now(), lost: r.gap}) {
			r.open, r.opened, r.gap = true, now, 0
			r.size.Store(0)
		}
	}
	r.pending, r.now, r.ev = true, now, ev
}

// Observe records the event with what came of it; it is a run.Observer.
func (r *Recorder) Observe(now ieg.Time, ev kernel.Event, ready *kernel.Ready) {
	r.pending = false
	m := mark{now: now, judged: true}
	if r.open {
		m.digest = ready.Digest()
	}
	r.put(m, ev)
}

// put hands an event to the recorder's goroutine, or ends the segment.
func (r *Recorder) put(m mark, ev kernel.Event) {
	if r.open {
		it := item{mark: m, ev: ev}
		if done, ok := ev.(kernel.StepDone); ok {
			it.ev, it.body = nil, appendReport(appendMark(r.buffer(), m), done.Done)
		}
		if r.send(it) {
			return
		}
		r.open = false
	}
	r.gap++
	r.lost.Add(1)
}

func (r *Recorder) send(it item) bool {
	select {
	case r.queue <- it:
		return true
	default:
		return false
	}
}

// buffer returns memory for a report.
func (r *Recorder) buffer() []byte {
	select {
	case b := <-r.spare:
		return b[:0]
	default:
		return make([]byte, 0, 256)
	}
}

// Lost counts the events that were not recorded.
func (r *Recorder) Lost() int64 { return r.lost.Load() }

// Err is the first error of encoding or writing; recording goes on with the
// next segment.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close records an event that was begun and not ended (the machine stopped in
// it), writes what waits, and ends the goroutine. The loop must have ended.
func (r *Recorder) Close() error {
	r.once.Do(func() {
		if r.pending {
			r.put(mark{now: r.now}, r.ev)
		}
		close(r.queue)
	})
	<-r.done
	return r.Err()
}

// write is the recorder's goroutine.
func (r *Recorder) write() {
	defer close(r.done)
	var enc *encoder // nil: no segment is open
	for it := range r.queue {
		err := r.encode(&enc, it)
		if err == nil && enc != nil && (len(r.queue) == 0 || len(enc.out) > 64<<10) {
			err = r.flush(enc)
		}
		if err != nil {
			r.fail(err)
			enc = nil
		}
	}
	if enc != nil {
		enc.end()
		r.fail(r.flush(enc))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.finish(); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *Recorder) encode(enc **encoder, it item) error {
	if it.start != nil {
		if *enc != nil {
			(*enc).end()
			if err := r.flush(*enc); err != nil {
				return err
			}
		}
		*enc = newEncoder()
		h := Header{Build: r.cfg.Build, Started: it.at.UnixNano(), Lost: it.lost}
		if err := (*enc).header(h); err != nil {
			return err
		}
		r.mu.Lock()
		err := r.store.begin(it.at)
		r.mu.Unlock()
		if err != nil {
			return err
		}
		return (*enc).snapshot(it.start)
	}
	if *enc == nil {
		return nil // of a segment that failed
	}
	if it.ev != nil {
		return (*enc).event(it.mark, it.ev)
	}
	(*enc).report(it.body)
	select {
	case r.spare <- it.body:
	default:
	}
	return nil
}

// flush hands the encoded frames to the store.
func (r *Recorder) flush(enc *encoder) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.write(enc.out); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	r.size.Add(int64(len(enc.out)))
	r.store.count(enc.events)
	enc.out, enc.events = enc.out[:0], 0
	return nil
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// Segment describes a kept segment.
type Segment struct {
	Name   string
	Start  time.Time
	Bytes  int64
	Events int64 // 0: not known (from an earlier run)
	Open   bool  // it is still being written
}

// Segments lists what is kept, oldest first.
func (r *Recorder) Segments() ([]Segment, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.list()
}

// Open reads a segment as far as it has been written; ErrNotFound if there is
// none of that name. With redact it comes without the users' content.
func (r *Recorder) Open(name string, redact bool) (io.ReadCloser, error) {
	r.mu.Lock()
	in, err := r.store.open(name)
	r.mu.Unlock()
	if err != nil || !redact {
		return in, err
	}
	out, w := io.Pipe()
	go func() {
		defer in.Close()
		w.CloseWithError(Redact(w, in))
	}()
	return out, nil
}
