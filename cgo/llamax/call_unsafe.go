package llamax

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Version is the library's version, such as "0.5.0".
func (l *Lib) Version() string {
	r, _, _ := purego.SyscallN(l.version)
	return goString(r, 64)
}

// Tokenize writes the tokens of text into dst, without begin-of-text token.
// It returns their number, or minus the number needed if dst is too small.
// Unlike the binding's it takes text that holds zero bytes. It reads the
// vocabulary only and may run beside a decode.
func (l *Lib) Tokenize(vocab uintptr, text string, special bool, dst []int32) int {
	if len(text) > math.MaxInt32 || len(text) == 0 {
		return 0
	}
	sp := uintptr(0)
	if special {
		sp = 1
	}
	r, _, _ := purego.SyscallN(l.tokenize, vocab,
		uintptr(unsafe.Pointer(unsafe.StringData(text))), uintptr(len(text)),
		uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(len(dst)), 0, sp)
	return int(int32(r))
}

// Logits returns the rows of logits of the last decode in the order of the
// batch's outputs, in place: the memory is the context's and is valid until
// its next decode. The caller may write to it.
func (l *Lib) Logits(ctx uintptr, rows, vocab int) []float32 {
	r, _, _ := purego.SyscallN(l.getLogits, ctx)
	if r == 0 || rows <= 0 {
		return nil
	}
	return unsafe.Slice((*float32)(pointer(r)), rows*vocab)
}

// Flag asks a decode to stop. Set and Clear may be called from any goroutine.
type Flag struct{ word *uint32 }

// NewFlag makes a cleared flag.
func NewFlag() *Flag { return &Flag{word: new(uint32)} }

// Set raises the flag.
func (f *Flag) Set() { atomic.StoreUint32(f.word, 1) }

// Clear lowers it.
func (f *Flag) Clear() { atomic.StoreUint32(f.word, 0) }

// IsSet tells whether it is raised.
func (f *Flag) IsSet() bool { return atomic.LoadUint32(f.word) != 0 }

// AbortOn makes decodes of the context end with code 2 soon after the flag is
// raised. The flag must outlive the context.
//
// The callback runs once per operation of the compute graph, so it must not
// cross into Go. libc's strlen has the wanted form: given the address of the
// flag's word it returns 0 while the first byte is zero, and 1 when it is one.
func (l *Lib) AbortOn(ctx uintptr, f *Flag) {
	purego.SyscallN(l.setAbort, ctx, l.strlen, uintptr(unsafe.Pointer(f.word)))
}

// pointer turns an address of C memory into a pointer.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// goString copies a C string of at most limit bytes.
func goString(addr uintptr, limit int) string {
	if addr == 0 {
		return ""
	}
	p := unsafe.Slice((*byte)(pointer(addr)), limit)
	n := 0
	for n < limit && p[n] != 0 {
		n++
	}
	return string(p[:n])
}
