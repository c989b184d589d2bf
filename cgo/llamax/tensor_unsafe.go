package llamax

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Rows is a tensor of a context's KV cache: in each stream Cells rows of Bytes
// bytes, one for each token. It is valid as long as its context.
type Rows struct {
	Value   bool // V, not K
	Layer   int
	Type    int32 // of its elements, as the library numbers them
	Bytes   int
	Cells   int
	Streams int
	tensor  uintptr
	data    uintptr // where the process can read and write it, or 0
	buffer  uintptr
}

// tensor is the library's ggml_tensor.
type tensor struct {
	kind     int32
	_        int32
	buffer   uintptr
	ne       [4]int64
	nb       [4]uint64
	op       int32
	params   [16]int32
	flags    int32
	src      [10]uintptr
	viewSrc  uintptr
	viewOffs uint64
	data     uintptr
	name     [64]byte
}

// Watch sees the operations of a context's decodes until it is taken out, and
// so finds the tensors of the KV cache, of which no function tells.
type Watch struct {
	word  *[2]uint64 // its address is what the callback gets
	mu    sync.Mutex
	calls int
	found map[uintptr]Rows
}

// Callbacks can't be freed, so that all watches share one.
var (
	watchOnce     sync.Once
	watchCallback uintptr
	watches       sync.Map // of *Watch by the address of its word
)

// NewWatch makes a watch for one context.
func NewWatch() *Watch {
	watchOnce.Do(func() {
		watchCallback = purego.NewCallback(func(t, _, data uintptr) uintptr {
			if w, ok := watches.Load(data); ok {
				w.(*Watch).see(t)
			}
			return 0
		})
	})
	w := &Watch{word: new([2]uint64), found: map[uintptr]Rows{}}
	_, data := w.Callback()
	watches.Store(data, w)
	return w
}

// Callback is what a context is made with: function and data of its evaluation
// callback.
func (w *Watch) Callback() (function, data uintptr) {
	return watchCallback, uintptr(unsafe.Pointer(w.word))
}

// Calls is the number of operations seen.
func (w *Watch) Calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls
}

// see follows an operation's inputs to the tensors they are views of.
func (w *Watch) see(t uintptr) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	w.root(t)
	for _, s := range (*tensor)(pointer(t)).src {
		w.root(s)
	}
}

func (w *Watch) root(at uintptr) {
	for depth := 0; at != 0 && depth < viewDepth; depth++ {
		t := (*tensor)(pointer(at))
		if t.viewSrc != 0 {
			at = t.viewSrc
			continue
		}
		if r, ok := rowsOf(t); ok {
			r.tensor = at
			w.found[at] = r
		}
		return
	}
}

// rowsOf reads a tensor's shape if its name is that of a KV cache.
func rowsOf(t *tensor) (Rows, bool) {
	end := bytes.IndexByte(t.name[:], 0)
	if end < 0 {
		return Rows{}, false
	}
	kind, layer, ok := strings.Cut(string(t.name[:end]), "_l")
	if !ok || kind != "cache_k" && kind != "cache_v" {
		return Rows{}, false
	}
	n, err := strconv.Atoi(layer)
	if err != nil || n < 0 {
		return Rows{}, false
	}
	r := Rows{Value: kind == "cache_v", Layer: n, Type: t.kind, Bytes: int(t.nb[1]), Cells: int(t.ne[1]), Streams: int(t.ne[2]), data: t.data, buffer: t.buffer}
	return r, t.nb[2] == t.nb[1]*uint64(t.ne[1]) && t.ne[3] == 1 && r.Bytes > 0 && t.data != 0 && t.buffer != 0
}

// Found returns the tensors seen: all K by layer, then all V.
func (w *Watch) Found(l *Lib) []Rows {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Rows
	for _, r := range w.found {
		if host, _, _ := purego.SyscallN(l.isHost, r.buffer); host&0xff == 0 {
			r.data = 0
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rows) int {
		if a.Value != b.Value {
			if b.Value {
				return -1
			}
			return 1
		}
		return a.Layer - b.Layer
	})
	return out
}
