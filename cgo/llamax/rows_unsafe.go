package llamax

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// ReadRows copies bytes of a stream's rows into dst, beginning with byte from
// of cell 0. No decode may run.
func (l *Lib) ReadRows(r *Rows, stream, from int, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	size := r.Bytes * r.Cells
	if stream < 0 || stream >= r.Streams || from < 0 || len(dst) > size-from {
		return fmt.Errorf("bytes [%d, %d) of stream %d; there are %d streams of %d bytes", from, from+len(dst), stream, r.Streams, size)
	}
	purego.SyscallN(l.tensorGet, r.tensor, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(stream*size+from), uintptr(len(dst)))
	return nil
}

// Memory is a stream's rows where they lie, or nil: a device has them, or the
// stream isn't there. It is valid as long as the context. No decode may run
// while it is used.
func (r *Rows) Memory(stream int) []byte {
	if r.data == 0 || stream < 0 || stream >= r.Streams {
		return nil
	}
	size := r.Bytes * r.Cells
	return unsafe.Slice((*byte)(pointer(r.data+uintptr(stream*size))), size)
}

// setTensor is the place in the library's ggml_backend_buffer of the function
// that writes to tensors.
const setTensor = 4 * unsafe.Sizeof(uintptr(0))

// HoldWrites keeps the library from writing to the tensors through their
// buffers until release is called, so that a state can be imported without its
// rows. The function that takes the writes is strlen: it has a string, the
// beginning of the buffer's own object, and does nothing. The caller makes sure
// that it works: were the place another, writes would go on.
func (l *Lib) HoldWrites(rows []Rows) (release func()) {
	held := map[uintptr]uintptr{}
	for i := range rows {
		at := rows[i].buffer + setTensor
		if _, ok := held[at]; !ok {
			held[at] = *(*uintptr)(pointer(at))
			*(*uintptr)(pointer(at)) = l.strlen
		}
	}
	return func() {
		for at, f := range held {
			*(*uintptr)(pointer(at)) = f
		}
	}
}
