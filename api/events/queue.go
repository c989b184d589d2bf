package events

import "sync"

// queue hands values from one goroutine to another, bounded in number and
// bytes.
type queue[T any] struct {
	mu       sync.Mutex
	more     sync.Cond
	items    []sized[T]
	bytes    int
	maxItems int
	maxBytes int
	closed   bool
}

type sized[T any] struct {
	value T
	bytes int
}

func newQueue[T any](maxItems, maxBytes int) *queue[T] {
	q := &queue[T]{maxItems: maxItems, maxBytes: maxBytes}
	q.more.L = &q.mu
	return q
}

// room tells whether a value of so many bytes fits. With one writer it fits
// until that writes.
func (q *queue[T]) room(bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fits(bytes)
}

// fits: a value that is larger than the queue fits when that is empty.
func (q *queue[T]) fits(bytes int) bool {
	return !q.closed && len(q.items) < q.maxItems && (q.bytes+bytes <= q.maxBytes || len(q.items) == 0)
}

// put appends a value unless there is no room. It does not wait.
func (q *queue[T]) put(v T, bytes int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.fits(bytes) {
		return false
	}
	q.items, q.bytes = append(q.items, sized[T]{v, bytes}), q.bytes+bytes
	q.more.Signal()
	return true
}

// get takes the first value, waiting for one; false once the queue is closed.
func (q *queue[T]) get() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return v, false
	}
	first := q.items[0]
	q.items[0] = sized[T]{} // the list keeps its array for a while
	q.items, q.bytes = q.items[1:], q.bytes-first.bytes
	return first.value, true
}

// close drops what waits and ends get.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items, q.bytes, q.closed = nil, 0, true
	q.more.Broadcast()
}
