package llamax

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// errWatch: the context doesn't keep its callback as expected.
var errWatch = errors.New("the callback's place in the context was not found")

// Unwatch takes the watch out of its context: a callback would be asked about
// each operation of each decode. It must be found in the context by its value,
// at one place only; else the context must be closed.
func (w *Watch) Unwatch(ctx uintptr) error {
	function, data := w.Callback()
	mem, err := os.Open("/proc/self/mem") // gives an error where plain reading would end the process
	if err != nil {
		return fmt.Errorf("%w: %w", errWatch, err)
	}
	defer mem.Close()
	head := make([]byte, contextHead)
	if _, err := mem.ReadAt(head, int64(ctx)); err != nil {
		return fmt.Errorf("%w: %w", errWatch, err)
	}
	want := binary.NativeEndian.AppendUint64(nil, uint64(function))
	want = binary.NativeEndian.AppendUint64(want, uint64(data))
	at := bytes.Index(head, want)
	if at < 0 || at%8 != 0 || bytes.Contains(head[at+8:], want) {
		return errWatch
	}
	*(*[2]uint64)(pointer(ctx + uintptr(at))) = [2]uint64{}
	return nil
}

// Close forgets the watch. Its context must be closed, or the watch taken out.
func (w *Watch) Close() {
	_, data := w.Callback()
	watches.Delete(data)
}
